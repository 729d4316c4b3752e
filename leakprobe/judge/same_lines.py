"""One line that several callers reach, and so several sites, is judged as one: what each caller has alone may
be too few births for a verdict.
"""

import dataclasses
import itertools
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

from leakprobe import _core
from leakprobe.evidence.cohorts import longest_life
from leakprobe.judge.looks import Unsettled
from leakprobe.judge.verdicts import judge
from leakprobe.model.frames import FIRST_SITE, FrameTuple
from leakprobe.model.history import History, Row, Spans, Survivors
from leakprobe.model.thresholds import HALF, LEAST_EVENTS, LEAST_RISES
from leakprobe.model.verdict import Judgement, Verdict

T = TypeVar("T")
#: (site, history, the verdict on it)
Part = tuple[int, History, Judgement]


def line_of_site(site: int) -> FrameTuple | int:
    """The line itself, without its callers; the site where that is not known."""
    frames = _core.site_frames(site) if site >= FIRST_SITE else ()
    return frames[0] if frames else site


def group_by(items: Iterable[T], key_of: Callable[[T], Hashable]) -> list[list[T]]:
    groups: dict[Hashable, list[T]] = {}
    for item in items:
        groups.setdefault(key_of(item), []).append(item)
    return list(groups.values())


def judged_together(histories: Sequence[History]) -> list[Judgement] | None:
    """Each site's share of the verdict on the line; None unless it is that the line leaks."""
    whole = summed(histories)
    if whole is None or whole.survivors is None:
        return None
    judgement = judge(whole)
    if judgement.verdict is not Verdict.LEAK or judgement.onset is None:
        return None
    onset = judgement.onset
    kept = [history.survivors.since(onset) for history in histories if history.survivors is not None]
    count, size = sum(one.count for one in kept), sum(one.bytes for one in kept)
    return [part_of(judgement, one.count / max(1, count), one.bytes / max(1, size)) for one in kept]


def unsettled_together(medium: str, parts: Sequence[Part]) -> Unsettled | None:
    """What several lines keep in turn, each of too few births for a verdict, where all of it together would
    be a leak; ``parts``: (site, history, judgement).  Lines that keep something in the same steps, as the
    state of layers that are unfrozen, have no more births together than alone.
    """
    few = [part for part in parts if is_of_few(part)]
    shares = judged_together([history for _, history, _ in few]) if len(few) > 1 else None
    if shares is None or shares[0].events < HALF * sum(judgement.events for *_, judgement in few):
        return None
    site, history, judgement = max(few, key=kept_bytes)
    early = dataclasses.replace(judgement, verdict=Verdict.TOO_EARLY)
    return Unsettled(medium, site, history.step, round(sum(map(kept_bytes, few))), early, len(few))


def is_of_few(part: Part) -> bool:
    _, _, judgement = part
    is_open = judgement.verdict in (Verdict.TURNOVER, Verdict.TOO_EARLY)
    return is_open and LEAST_RISES <= judgement.events < LEAST_EVENTS


def kept_bytes(part: Part) -> float:
    _, history, _ = part
    return history.kept_bytes


def part_of(judgement: Judgement, share: float, share_of_bytes: float) -> Judgement:
    """The same of a share of the items, and of another of their bytes."""
    rate, count = judgement.bytes_per_step, judgement.count_per_step
    return dataclasses.replace(
        judgement,
        bytes_per_step=None if rate is None else rate.times(share_of_bytes),
        count_per_step=None if count is None else count * share,
    )


def summed(histories: Sequence[History]) -> History | None:
    """Several sites as one; None where their counts are not of the same spans."""
    first, *others = histories
    if not others:
        return first
    spans = [history.spans for history in histories]
    if len({(one.first, one.width, len(one.lows)) for one in spans}) > 1:
        return None
    survivors = [history.survivors for history in histories if history.survivors is not None]
    if len(survivors) < len(histories):
        return None
    lines = [history.facts.line for history in histories if history.facts.line is not None]
    line = put_together(lines) if len(lines) == len(histories) else None
    return dataclasses.replace(
        first,
        facts=dataclasses.replace(first.facts, line=line),
        live=sum(history.live for history in histories),
        spans=Spans(
            spans[0].first,
            spans[0].width,
            tuple(map(sum, zip(*(one.lows for one in spans)))),
            tuple(map(sum, zip(*(one.highs for one in spans)))),
        ),
        deaths=sum(history.deaths for history in histories),
        survivors=put_together(survivors),
        earlier=(),
        sizes=(),
        age=max(map(longest_life, histories)),
        flight=max(history.flight for history in histories),
    )


def put_together(parts: Sequence[Survivors]) -> Survivors:
    """Survivors by birth steps, those of the same steps as one row."""
    rows: dict[tuple[float, float], tuple[float, float]] = {}
    for first, last, count, size in itertools.chain.from_iterable(part.rows for part in parts):
        before, bytes_before = rows.get((first, last), (0, 0))
        rows[first, last] = before + count, bytes_before + size
    found: list[Row] = [(*steps, *rows[steps]) for steps in sorted(rows)]
    return Survivors(max(part.step for part in parts), tuple(found))
