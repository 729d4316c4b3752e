"""Whether cycles keep native blocks until a collection: then a walk finds who makes them.

Two things show it without a walk: collections free objects as the steps go by, and blocks outlive their steps
and are freed many at a time.
"""

import gc
from collections.abc import Iterable

from leakprobe.evidence.cohorts import fell_by_half
from leakprobe.judge.looks import Suspect
from leakprobe.model.history import judged_steps


class Cycles:
    """What collections of one watch have freed, from look to look."""

    def __init__(self, warmup: int, limit: float):
        self._warmup, self._limit = warmup, limit
        self._first: tuple[int, int] | None = None  # the step of the first look, what had been freed by then
        self._keep = self._are_met = False  # as of the last look; a walk was taken since there are any

    def walked(self, garbage_bytes: int) -> None:
        """A walk was taken, which meets all garbage; one for another reason may come when there is none."""
        self._are_met |= self._keep or garbage_bytes > 0

    def keep(self, blocks: Iterable[Suspect], step: int) -> bool:
        """True if of what is alive of such lines more than the limit was made a step, and collections have
        freed an object a step; not once a walk has met them.
        """
        self._keep = not self._are_met and self._are_likely(blocks, step)
        return self._keep

    def _are_likely(self, blocks: Iterable[Suspect], step: int) -> bool:
        freed = sum(generation["collected"] for generation in gc.get_stats())
        self._first = self._first or (step, freed)
        if freed - self._first[1] <= step - self._first[0]:
            return False
        within = judged_steps(self._warmup, step)
        alive = sum(s.live_bytes for s in blocks if s.has_survivors(within) and comes_and_goes(s))
        return alive > self._limit * (step - self._warmup)


def comes_and_goes(suspect: Suspect) -> bool:
    return suspect.history.spans is not None and fell_by_half(suspect.history.spans)
