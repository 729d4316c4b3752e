"""What had grown by the last look and rests since, by the counts of the marks that followed: of what is let
go before it could be looked at again, as a function's locals are when it returns.
"""

import dataclasses
from collections.abc import Iterable

from leakprobe import _core
from leakprobe.evidence.cohorts import falls_short, is_unlike
from leakprobe.evidence.readings import spans_of
from leakprobe.judge.looks import Key, Look, Suspect, Walk
from leakprobe.model.history import Spans
from leakprobe.model.thresholds import HALF, LAG, RISK


@dataclasses.dataclass(frozen=True, slots=True)
class LetGo:
    """What had been found when it was seen, at ``step``, that most of it was gone, or these lines of it."""

    step: int
    look: Look | None
    walk: Walk | None
    lines: frozenset[Key] = frozenset()


def without_rested(look: Look | None, step: int) -> Look | None:
    """The look without what has not grown since, as of the mark ``step``, the last one before it was let
    go.
    """
    if look is None:
        return None
    kept = tuple(s for s in look.suspects if not has_rested(s, spans_of_line(s.key), step))
    crowds = tuple(s for s in look.crowds if not has_rested(s, spans_of_line(s.key), step))
    if len(kept) == len(look.suspects) and len(crowds) == len(look.crowds):
        return look
    keys = {s.key for s in kept}
    rested = tuple(s.key for s in look.suspects if s.key not in keys)
    return dataclasses.replace(
        look, step=step, suspects=kept, crowds=crowds, rested=rested, rising=frozenset()
    )


def spans_of_line(key: Key) -> Spans | None:
    """The live counts of a suspect's line, all types together."""
    kind, medium, site = key
    series = _core.site_series(site) if kind == "object" else _core.line_series(str(medium), site)
    return spans_of(_core.series_state(), series) if series is not None else None


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


def are_gone(suspects: Iterable[Suspect], *, in_loop: bool) -> bool:
    """True if most of what was alive at the last look is no more.  Behind the loop: of what was still there
    in its last steps, as what was given back before them was not let go with the loop.
    """
    suspects = list(suspects)
    then = [s.live_count if in_loop else live_behind(s) for s in suspects]
    return sum(live_now(suspects).values()) < HALF * sum(then)


def part_let_go(look: Look | None, walk: Walk | None, step: int) -> LetGo | None:
    """The lines of which this is true one by one, where it is not true of all together: what one function
    had is gone when it returns, and what a library keeps is there still.
    """
    rest = without_rested(look, step)
    if rest is None or walk is None:
        return None
    now = live_now(rest.suspects)
    gone = frozenset(s.key for s in rest.suspects if now[s.key] < HALF * live_behind(s))
    return LetGo(step, rest, walk, gone) if gone else None


def as_of_this_end(gone: LetGo | None, step: int) -> LetGo | None:
    """What went at an end before, after which the loop went on to ``step``, is none of this one."""
    return gone if gone is not None and gone.step >= step else None


def live_behind(suspect: Suspect) -> float:
    return min(suspect.live_count, live_in_last_steps(suspect))


def live_in_last_steps(suspect: Suspect) -> float:
    """How many of the line were alive at most at the last mark and in the steps before it that are never
    judged; as many as at the look where its counts are not kept.
    """
    spans = spans_of_line(suspect.key)
    if spans is None:
        return suspect.live_count
    before = -(-LAG // spans.width)
    return max(spans.highs[-1 - before :], default=0) + suspect.older_count


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
