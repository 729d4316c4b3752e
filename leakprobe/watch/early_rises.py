"""Notes of totals that rise and have no verdict yet: the report is inconclusive then, not steady."""

from leakprobe.judge.rises import EarlyRise
from leakprobe.model.finding import Note
from leakprobe.model.units import format_size
from leakprobe.watch.count_findings import WORDS
from leakprobe.watch.resources import Resources


def early_rise_notes(resources: Resources) -> list[Note]:
    """One of each total that its last readings found higher each time."""
    return [note_of(medium, rise) for medium, rise in resources.early_rises().items()]


def note_of(medium: str, rise: EarlyRise) -> Note:
    what = f"{int(rise.total):,} more {WORDS[medium][0]}" if medium in WORDS else native_bytes(rise)
    return Note(
        kind="warm_up",
        text=f"{what} at step {rise.last[0]:,} than at step {rise.first[0]:,}, and more at each of "
        f"{rise.readings} readings: too few for a verdict, or over too few steps, run more steps",
        medium=medium,
        live_bytes=None if medium in WORDS else int(rise.total),
    )


def native_bytes(rise: EarlyRise) -> str:
    return f"{format_size(rise.total)} more of malloc, some of which may be Python's,"
