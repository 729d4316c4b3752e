"""What the kinds outside of kinds.py are made of: those written afterwards, and those written without a look
at any decider (unseen_growing.py, unseen_turnover.py).
"""

import numpy as np

from benchmarks.rhythms import arrivals as a
from benchmarks.rhythms.loop import NEVER, Draft, Kind, Part


def kind_into(kinds: list[Kind], grows: bool):
    """What enters a function (steps, rng) -> Draft as a kind of a name."""

    def kind(name: str):
        def enter(make):
            kinds.append(Kind(name, grows, "unseen", False, make))
            return make

        return enter

    return kind


def kept(birth, sizes=None, **truth) -> Draft:
    return Draft((Part(np.asarray(birth, np.int64), sizes=sizes),), **truth)


def partly_kept(birth, stays, death, sizes=None, **truth) -> Draft:
    return Draft((Part(birth, np.where(stays, NEVER, death), sizes=sizes, growing=stays),), **truth)


def turning(birth, death=None, sizes=None) -> Draft:
    return Draft((Part(np.asarray(birth, np.int64), death, sizes=sizes, growing=False),))


class Items:
    """Births and deaths as a simulation notes them."""

    def __init__(self):
        self.birth: list[int] = []
        self.death: list[float] = []
        self.size: list[float] = []
        self.stays: list[bool] = []

    def add(self, step: int, size: float = 1.0, stays: bool = False) -> int:
        self.birth.append(step)
        self.death.append(NEVER)
        self.size.append(size)
        self.stays.append(stays)
        return len(self.birth) - 1

    def end(self, item: int, step: float) -> None:
        self.death[item] = step

    def draft(self, grows: bool, **truth) -> Draft:
        """All of it as one part: growing as a whole, or not at all."""
        part = Part(
            np.array(self.birth, np.int64), np.array(self.death), sizes=np.array(self.size), growing=grows
        )
        return Draft((part,), **truth)

    def partly(self, **truth) -> Draft:
        """Growing are those that were added as staying."""
        birth, stays = np.array(self.birth, np.int64), np.array(self.stays)
        return partly_kept(birth, stays, np.array(self.death), np.array(self.size), **truth)


def turns(steps: int, rng, count: float, spread: float = 0.3) -> np.ndarray:
    """Steps about steps / count apart, up to so large a share more or less; at least two apart."""
    gap = steps / count
    first = max(1, int(gap * rng.uniform(0.3, 1)))
    return a.renewals(steps, lambda: max(2, round(gap * rng.uniform(1 - spread, 1 + spread))), first)


def drifting_keys(steps: int, rng, a_step: int, most: int, exponent: float, every: int):
    """Zipf lookups whose popularity moves on by one key each so many steps."""
    ranks, when = a.zipf_keys(steps, rng, a_step, most, exponent)
    return ranks + when // every, when
