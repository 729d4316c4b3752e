"""Training and evaluation, where torch marks the steps of both: a leak of one of them is told per step of
that one, however many steps of the other lie between.
"""

import bisect
import collections
import dataclasses
from collections.abc import Iterable, Sequence

from leakprobe.evidence.readings import rows_of_series
from leakprobe.model.bounds import MOST_PHASES
from leakprobe.model.entry import Series
from leakprobe.model.history import Row
from leakprobe.model.thresholds import HALF, LITTLE


@dataclasses.dataclass(frozen=True, slots=True)
class Births:
    """What is kept by birth step; ``merged``: (first, last) of steps that are known together, at the last."""

    series: Series
    merged: Sequence[tuple[int, int]]

    def since(self, step: int) -> list[Row]:
        """Of what was born since then."""
        return [row for row in rows_of_series(self.series, self.merged) if row[0] >= step]


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


@dataclasses.dataclass(frozen=True, slots=True)
class Phase:
    """Steps of one kind in a row: ``first`` to the one before ``after``."""

    first: int
    after: int
    events: int
    is_evaluation: bool

    def share(self, since: int) -> float:
        """The share of its steps that came since."""
        return max(0, self.after - max(self.first, since)) / (self.after - self.first)


class Phases:
    """Which birth steps were training and which evaluation, the last MOST_PHASES of them."""

    def __init__(self) -> None:
        #: (first step, events, whether it is an evaluation); replaced whole, as threads may read it.
        self._rows: collections.deque[tuple[int, int, bool]] = collections.deque(maxlen=MOST_PHASES)

    def add(self, step: int, batches: int | None) -> None:
        """The birth step ``step`` was one of training (None), or so many batches of an evaluation."""
        is_evaluation, events = batches is not None, 1 if batches is None else batches
        if self._rows and self._rows[-1][-1] is is_evaluation:
            first, before, _ = self._rows[-1]
            self._rows[-1] = (first, before + events, is_evaluation)
        else:
            self._rows.append((step, events, is_evaluation))

    def own(self, births: Births, onset: int, end: int) -> Own | None:
        """Where nearly all that was born since ``onset`` and before ``end`` was in phases of one kind, of two
        that there are; else None.
        """
        phases = self._until(end)
        if len(phases) <= 1:
            return None
        since = max(onset, phases[0].first)
        rows = births.since(since)
        made = births_in(phases, rows)
        kind = made[True] > made[False]
        if made[not kind] > LITTLE * made[kind] or made[kind] <= HALF * sum(count for _, _, count, _ in rows):
            return None
        events = sum(one.events * one.share(since) for one in phases if one.is_evaluation is kind)
        return Own(kind, round(events), end - since) if events >= 1 else None

    def _until(self, end: int) -> list[Phase]:
        rows = [row for row in tuple(self._rows) if row[0] < end]
        afters = [*(first for first, *_ in rows[1:]), end]
        return [
            Phase(first, after, events, is_evaluation)
            for (first, events, is_evaluation), after in zip(rows, afters)
        ]


def births_in(phases: Sequence[Phase], rows: Iterable[Row]) -> dict[bool, float]:
    """What was born in training (False) and in evaluations (True), where that is known: a phase's first step
    has the end of the one before, and steps that are known together may be of two.
    """
    firsts = [one.first for one in phases]
    made = {False: 0.0, True: 0.0}
    for first, last, count, _ in rows:
        at = bisect.bisect_left(firsts, first) - 1
        if at >= 0 and last < phases[at].after:
            made[phases[at].is_evaluation] += count
    return made
