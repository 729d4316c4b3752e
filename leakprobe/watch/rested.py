"""What had grown by the last look and rests since, by the counts of the marks that followed: of what is let
go before it could be looked at again, as a function's locals are when it returns.
"""

import dataclasses
from collections.abc import Iterable

from leakprobe import _core
from leakprobe.evidence.cohorts import falls_short, is_unlike
from leakprobe.evidence.readings import spans_of
from leakprobe.judge.looks import Key, Look, Suspect
from leakprobe.model.history import Spans
from leakprobe.model.thresholds import HALF, RISK


def without_rested(look: Look | None, step: int) -> Look | None:
    """The look without what has not grown since, as of the mark ``step``, the last one before it was let
    go.
    """
    if look is None:
        return None
    kept = tuple(s for s in look.suspects if not has_rested(s, spans_of_line(s.key), step))
    if len(kept) == len(look.suspects):
        return look
    return dataclasses.replace(look, step=step, suspects=kept)


def spans_of_line(key: Key) -> Spans | None:
    """The live counts of a suspect's line, all types together."""
    series = series_of_line(key)
    return spans_of(_core.series_state(), series) if series is not None else None


def series_of_line(key: Key) -> _core.SiteSeries | None:
    kind, medium, site = key
    return _core.site_series(site) if kind == "object" else _core.line_series(str(medium), site)


def has_rested(suspect: Suspect, spans: Spans | None, step: int) -> bool:
    """True if since the look the counts did not rise by half of what growth would have added, for longer
    than chance makes a pause: they stayed, or were given back within the loop.
    """
    judgement = suspect.judgement
    if spans is None or judgement.onset is None:
        return False
    # the span that the look lies in may have risen before it
    mark, span = judgement.step + spans.width, judgement.step - judgement.onset
    return falls_short(spans, mark, suspect.count_rate * (step - mark)) and is_unlike(
        step - mark, judgement.events, span, spans.width, RISK
    )


def are_gone(suspects: Iterable[Suspect], *, since_mark: bool) -> bool:
    """True if most of what was alive is no more: at the last look, or, ``since_mark``, at the last mark.

    What was given back within the loop was not let go with it, though the last look may be long ago.
    """
    suspects, now = list(suspects), live_now(suspects)
    before = {s.key: s.live_count for s in suspects}
    if since_mark:
        before = {s.key: min(before[s.key], live_at_mark(s)) for s in suspects}
    return sum(now.values()) < HALF * sum(before.values())


def live_at_mark(suspect: Suspect) -> int:
    """How many of the line were alive at the last mark; as many as at the look where its counts are not
    kept.
    """
    series = series_of_line(suspect.key)
    return suspect.live_count if series is None else series.live + suspect.older_count


def live_now(suspects: Iterable[Suspect]) -> dict[Key, int]:
    """How many of each line are alive; of objects all types together, but no more than were of this one."""
    suspects = list(suspects)
    counts = _core.live_of([s.site for s in suspects if s.key[0] == "object"])
    blocks = {(row.medium, row.site): row.count for row in _core.ledger_groups(0, 0, 0)}
    found = {}
    for s in suspects:
        kind, medium, site = s.key
        alive = counts[site] if kind == "object" else blocks.get((str(medium), site), 0)
        found[s.key] = min(alive + s.older_count, s.live_count)
    return found
