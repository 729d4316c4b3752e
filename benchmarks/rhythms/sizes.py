"""Kinds in which bytes and counts go apart: blocks that give way to larger ones, pools of random sizes."""

import numpy as np

from benchmarks.rhythms import arrivals as a
from benchmarks.rhythms.loop import NEVER, Draft, Kind, Part

KINDS: list[Kind] = []
#: More levels of segments than any run fills.
LEVELS = 24


def kind(name: str, grows: bool):
    """Enter a function (steps, rng) -> Draft as a kind."""

    def enter(make):
        KINDS.append(Kind(name, grows, "sizes", False, make))
        return make

    return enter


def draft(birth, death, sizes, grows: bool) -> Draft:
    birth = np.asarray(birth, np.int64)
    order = np.argsort(birth, kind="stable")
    values = (np.asarray(each, float)[order] for each in (death, sizes))
    return Draft((Part(birth[order], *values, growing=grows),))


class Items:
    """Items that are made and dropped one by one."""

    def __init__(self):
        self.birth, self.death, self.sizes = [], [], []

    def make(self, step: int, size: float) -> int:
        self.birth.append(step)
        self.death.append(NEVER)
        self.sizes.append(float(size))
        return len(self.birth) - 1

    def drop(self, numbers: list[int], step: int) -> None:
        for i in numbers:
            self.death[i] = float(step)


def log_normal(rng, deviations: float, size=None):
    return np.exp(rng.normal(0, deviations, size))


def segments(steps, rng, window: float, grows: bool) -> Draft:
    """Some of random sizes a step; once so many of a level are there, they are merged into one of the next,
    and those older than the window are dropped.
    """
    items, levels = Items(), [[] for _ in range(LEVELS)]
    fan, each = rng.integers(2, 7), rng.integers(1, 4)
    for step in range(steps):
        levels[0] += [items.make(step, log_normal(rng, 0.5)) for _ in range(rng.poisson(each))]
        for n in range(LEVELS - 1):
            if len(levels[n]) >= fan:
                whole = sum(items.sizes[i] for i in levels[n])
                items.drop(levels[n], step)
                levels[n] = []
                levels[n + 1].append(items.make(step, whole))
            items.drop([i for i in levels[n] if items.birth[i] < step - window], step)
            levels[n] = [i for i in levels[n] if items.birth[i] >= step - window]
    return draft(items.birth, items.death, items.sizes, grows)


@kind("segments that are merged, none dropped", True)
def merged(steps, rng):
    return segments(steps, rng, NEVER, True)


@kind("segments that are merged, dropped after n/4", False)
def merged_and_dropped(steps, rng):
    return segments(steps, rng, steps / 4, False)


@kind("parts by key, one of which is joined with what is new", True)
def parts_by_key(steps, rng):
    items, parts = Items(), {}
    places = rng.integers(2, 9)
    for step in range(steps):
        key = int(rng.integers(places))
        before = parts.get(key)
        items.drop([] if before is None else [before], step)
        size = rng.exponential() + (0 if before is None else items.sizes[before])
        parts[key] = items.make(step, size)
    return draft(items.birth, items.death, items.sizes, True)


@kind("one that is joined, beside two a step that live for some", True)
def beside_short_lives(steps, rng):
    birth = a.each_step(steps)
    others = np.repeat(birth, 2)
    death = np.concatenate([birth + 1.0, others + rng.geometric(1 / 4, len(others))])
    sizes = np.concatenate([1 + birth / 2, log_normal(rng, 0.5, len(others))])
    return draft(np.concatenate([birth, others]), death, sizes, True)


@kind("copies of one that gets longer, one to four a step", True)
def copies(steps, rng):
    birth = np.repeat(a.each_step(steps), rng.integers(1, 5, steps))
    return draft(birth, birth + rng.integers(1, 4, len(birth)), 10.0 + birth, True)


@kind("a ring of five, of random sizes", False)
def ring(steps, rng):
    birth = a.each_step(steps)
    return draft(birth, birth + 5.0, log_normal(rng, rng.uniform(0.3, 2), steps), False)


@kind("a pool in which one at random is replaced, of sizes with a heavy tail", False)
def pool(steps, rng):
    size = rng.integers(4, 30)
    place = np.concatenate([np.arange(size), rng.integers(0, size, steps)])
    birth, death = a.replaced(place, np.concatenate([np.zeros(size, np.int64), a.each_step(steps)]))
    return draft(birth, death, rng.pareto(1.5, len(birth)) + 0.1, False)


@kind("a batch whose size wanders", False)
def wandering(steps, rng):
    level = np.zeros(steps)
    for step in range(1, steps):
        level[step] = 0.97 * level[step - 1] + rng.normal(0, 0.2)
    birth = np.repeat(a.each_step(steps), rng.integers(1, 4))
    return draft(birth, birth + 2.0, np.exp(level)[birth], False)


@kind("more and more of ever larger ones, each for ten steps", False)
def demand(steps, rng):
    more = 1 + 4 * np.arange(steps) // steps
    birth = np.repeat(a.each_step(steps), more)
    return draft(birth, birth + 10.0, more[birth], False)
