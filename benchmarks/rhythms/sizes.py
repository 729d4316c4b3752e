"""Kinds in which bytes and counts go apart: blocks that give way to larger ones, pools of random sizes."""

import numpy as np

from benchmarks.rhythms import arrivals as a
from benchmarks.rhythms.loop import NEVER, Draft, Kind, Part
from benchmarks.rhythms.unseen_items import Items, kind_into, turning

KINDS: list[Kind] = []
#: More levels of segments than any run fills.
LEVELS = 24

growth, turnover = kind_into(KINDS, True), kind_into(KINDS, False)


def log_normal(rng, deviations: float, size=None):
    return np.exp(rng.normal(0, deviations, size))


def segments(steps, rng, window: float) -> Items:
    """Some of random sizes a step; once so many of a level are there, they are merged into one of the next,
    and those that were made before the window are dropped.
    """
    items, levels = Items(), [[] for _ in range(LEVELS)]
    fan, each = rng.integers(2, 7), rng.integers(1, 4)
    for step in range(steps):
        levels[0] += [items.add(step, log_normal(rng, 0.5)) for _ in range(rng.poisson(each))]
        for n in range(LEVELS - 1):
            if len(levels[n]) >= fan:
                levels[n + 1].append(items.add(step, sum(items.size[i] for i in levels[n])))
                end_all(items, levels[n], step)
                levels[n] = []
            end_all(items, [i for i in levels[n] if items.birth[i] < step - window], step)
            levels[n] = [i for i in levels[n] if items.birth[i] >= step - window]
    return items


def end_all(items: Items, numbers: list[int], step: int) -> None:
    for i in numbers:
        items.end(i, step)


@growth("segments that are merged, none dropped")
def merged(steps, rng):
    return segments(steps, rng, NEVER).draft(True)


@turnover("segments that are merged, dropped n/4 after that")
def merged_and_dropped(steps, rng):
    return segments(steps, rng, steps / 4).draft(False)


@growth("parts by key, one of which is joined with what is new")
def parts_by_key(steps, rng):
    items, parts = Items(), {}
    places = rng.integers(2, 9)
    for step in range(steps):
        key = int(rng.integers(places))
        before = [parts[key]] if key in parts else []
        end_all(items, before, step)
        parts[key] = items.add(step, rng.exponential() + sum(items.size[i] for i in before))
    return items.draft(True)


@growth("one that is joined, beside two a step that live for some")
def beside_short_lives(steps, rng):
    birth = a.each_step(steps)
    others = np.repeat(birth, 2)
    death = np.concatenate([birth + 1.0, others + rng.geometric(1 / 4, len(others))])
    sizes = np.concatenate([1 + birth / 2, log_normal(rng, 0.5, len(others))])
    return Draft((Part(np.concatenate([birth, others]), death, sizes),))


@growth("copies of one that gets longer, one to four a step")
def copies(steps, rng):
    birth = np.repeat(a.each_step(steps), rng.integers(1, 5, steps))
    return Draft((Part(birth, birth + rng.integers(1, 4, len(birth)), 10.0 + birth),))


@turnover("a ring of five, of random sizes")
def ring(steps, rng):
    birth = a.each_step(steps)
    return turning(birth, birth + 5.0, log_normal(rng, rng.uniform(0.3, 2), steps))


@turnover("a pool in which one at random is replaced, of sizes with a heavy tail")
def pool(steps, rng):
    size = rng.integers(4, 30)
    place = np.concatenate([np.arange(size), rng.integers(0, size, steps)])
    birth, death = a.replaced(place, np.concatenate([np.zeros(size, np.int64), a.each_step(steps)]))
    return turning(birth, death, rng.pareto(1.5, len(birth)) + 0.1)


@turnover("a batch whose size wanders")
def wandering(steps, rng):
    level = np.zeros(steps)
    for step in range(1, steps):
        level[step] = 0.97 * level[step - 1] + rng.normal(0, 0.2)
    birth = np.repeat(a.each_step(steps), rng.integers(1, 4))
    return turning(birth, birth + 2.0, np.exp(level)[birth])


@turnover("more and more of ever larger ones, each for ten steps")
def demand(steps, rng):
    more = 1 + 4 * np.arange(steps) // steps
    birth = np.repeat(a.each_step(steps), more)
    return turning(birth, birth + 10.0, more[birth])
