"""Training and evaluation, where torch marks the steps of both: a leak of one of them is told per step of
that one, however many steps of the other lie between.
"""

import array
import bisect
import dataclasses
from collections.abc import Iterable, Mapping

from leakprobe.model.bounds import MOST_PHASES, THINNING
from leakprobe.model.entry import Series
from leakprobe.model.thresholds import LITTLE


@dataclasses.dataclass(frozen=True, slots=True)
class Births:
    """What is kept by birth step; ``starts``: the first of the steps that are known together, by the last."""

    series: Series
    starts: Mapping[int, int]

    def ranges(self, since: int) -> Iterable[tuple[int, int, float]]:
        """(first step, last step, count) of what was born since then."""
        rows = ((self.starts.get(last, last), last, count) for last, count, _ in self.series)
        return (row for row in rows if row[0] >= since)


@dataclasses.dataclass(frozen=True, slots=True)
class Own:
    """Of what grows in training, or in evaluations only: the steps of that one since, and of how many in all.

    ``events``: steps of the optimizer, or batches; the first batches of an evaluation end no step.
    """

    is_evaluation: bool
    events: int
    steps: int

    @property
    def factor(self) -> float:
        """From the rate a step to that of its own."""
        return self.steps / self.events


class Phases:
    """Which birth steps were training and which evaluation, the last MOST_PHASES of them and of them
    half at least.
    """

    def __init__(self) -> None:
        # objects would grow the heap that is watched
        self._firsts, self._events = array.array("q"), array.array("q")
        self._kinds = array.array("b")  # 1: evaluation

    def add(self, step: int, batches: int | None) -> None:
        """The birth step ``step`` was one of training (None), or so many batches of an evaluation."""
        kind, events = int(batches is not None), 1 if batches is None else batches
        if self._kinds and self._kinds[-1] == kind:
            self._events[-1] += events
            return
        if len(self._kinds) == MOST_PHASES:
            for column in (self._firsts, self._events, self._kinds):
                del column[: MOST_PHASES // THINNING]
        self._firsts.append(step)
        self._events.append(events)
        self._kinds.append(kind)

    def own(self, births: Births, onset: int, end: int) -> Own | None:
        """Where nearly all that was born since ``onset`` and before ``end`` was in phases of one kind, of two
        that there are; else None.
        """
        if len(self._kinds) <= 1:
            return None
        since = max(onset, self._firsts[0])
        counts = [0.0, 0.0]
        for first, last, count in births.ranges(since):
            at = bisect.bisect_left(self._firsts, first) - 1  # a first step has the end of the phase before
            if at >= 0 and at == bisect.bisect_right(self._firsts, last) - 1:
                counts[self._kinds[at]] += count
        if min(counts) > LITTLE * sum(counts) or not sum(counts):
            return None
        kind = int(counts[1] > counts[0])
        steps, events = self._since(since, end, kind)
        return (
            Own(bool(kind), round(events), end - since) if 0 < steps < end - since and events >= 1 else None
        )

    def _since(self, since: int, end: int, kind: int) -> tuple[int, float]:
        """Steps of that kind, and its events."""
        steps, events = 0, 0.0
        for first, after, of, number in zip(
            self._firsts, [*self._firsts[1:], end], self._kinds, self._events
        ):
            inside = min(after, end) - max(first, since)
            if of == kind and inside > 0:
                steps += inside
                events += number * inside / (after - first)
        return steps, events
