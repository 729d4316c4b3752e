"""Watches that a program enters itself under `leakprobe run`: the run's watch gives way to them, as the
program says best what a step of it is.
"""

from typing import Any

from leakprobe import _core
from leakprobe.model.finding import Note
from leakprobe.model.report import Report
from leakprobe.probe import Probe

GAVE_WAY = (
    "the program entered a watch of its own at step {step:,} of that of `leakprobe run`, which ended there: "
    "warm-up, limit and steps are the program's"
)


class OwnWatches:
    """Around the program, in the watch that gives way; then report()."""

    def __init__(self, outer: Probe) -> None:
        self._outer = outer
        self._own: Probe | None = None  # the first that found growth, else the last

    def __enter__(self) -> "OwnWatches":
        self._outer._gave_way_to = self._hear  # type: ignore[attr-defined]
        _core.give_way(self._outer)
        return self

    def __exit__(self, *exc_info: object) -> None:
        _core.give_way(None)
        del self._outer._gave_way_to  # type: ignore[attr-defined]
        if self._own is not None:
            self._own.__exit__(*exc_info)

    def _hear(self, probe: Any) -> None:
        """A watch is entered: it records where the run's did, unless it has a place of its own."""
        if isinstance(probe, Probe) and not self._has_found():
            self._own = probe
            probe._record = probe._record or self._outer._record

    def _has_found(self) -> bool:
        return self._own is not None and self._own.report().verdict == "growing"

    def report(self) -> Report:
        """That of the program's own watch where steps came in it, unless only the run's found growth."""
        outer = self._outer.report()
        if self._own is None:
            return outer
        own = self._own.report()
        if own.as_of_step == 0 or (outer.verdict == "growing" and own.verdict != "growing"):
            return outer
        own.notes.append(Note(kind="gap", text=GAVE_WAY.format(step=outer.as_of_step), medium=None))
        return own
