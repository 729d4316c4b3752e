"""Kinds of turnover that the benchmark's sources name: rings, caches, sawtooths, what fills and what is in
flight.
"""

import numpy as np

from benchmarks.rhythms import arrivals as a
from benchmarks.rhythms.loop import NEVER, Draft, Kind, Part

KINDS: list[Kind] = []


def kind(name: str, pattern: str):
    """Enter a function (steps, rng) -> Draft as a kind."""

    def enter(make):
        KINDS.append(Kind(name, False, pattern, True, make))
        return make

    return enter


def turning(birth, death=None, **more) -> Draft:
    return Draft((Part(birth, death, growing=False, **more),))


def ring(share_or_steps: float):
    def make(steps, rng):
        birth = a.each_step(steps)
        return turning(birth, birth + float(a.length(rng, share_or_steps, steps)))

    return make


kind("ring of 20", "ring")(ring(20))
kind("ring of n/3", "ring")(ring(1 / 3))


def slots(share_or_steps: float):
    """Each step fills one of so many places, at random."""

    def make(steps, rng):
        keys = rng.integers(0, a.length(rng, share_or_steps, steps), steps)
        return turning(*a.replaced(keys, a.each_step(steps)))

    return make


kind("40 places at random", "cache")(slots(40))
kind("n/10 places at random", "cache")(slots(0.1))
kind("n/4 places at random", "cache")(slots(0.25))


def cleared_at(clearings):
    """One item a step; all go at each clearing."""

    def make(steps, rng):
        birth = a.each_step(steps)
        return turning(birth, a.until_next(birth, clearings(steps, rng)))

    return make


def every(share_or_steps: float):
    def clearings(steps, rng):
        period = a.length(rng, share_or_steps, steps)
        return np.arange(period, steps, period)

    return clearings


def after(least: float, most: float):
    """Clearings at distances between two lengths, or shares of the steps."""
    share = 1 if most >= 1 else 0

    def clearings(steps, rng):
        low, high = (least, most) if share else (max(2, least * steps), most * steps)
        return a.renewals(steps, lambda: rng.integers(int(low), int(high) + 1), int(low))

    return clearings


def by_chance(share: float):
    """Cleared with this probability a step, or so many times a run; once before a tenth from the end at
    least.
    """

    def clearings(steps, rng):
        found = a.at_random(steps, rng, share if share < 1 else share / steps)
        return np.append(found, int(steps * rng.uniform(0.5, 0.9)))

    return clearings


kind("sawtooth of 25", "sawtooth")(cleared_at(every(25)))
kind("sawtooth of n/5", "sawtooth")(cleared_at(every(0.2)))
kind("sawtooth of n/3", "sawtooth")(cleared_at(every(1 / 3)))
kind("sawtooth of 10 to 60", "sawtooth")(cleared_at(after(10, 60)))
kind("sawtooth of n/20 to n/4", "sawtooth")(cleared_at(after(0.05, 0.25)))
kind("flushed every 50 steps", "sawtooth")(cleared_at(lambda n, rng: range(50, n, 50)))
kind("flushed every 100 steps", "sawtooth")(cleared_at(lambda n, rng: range(99, n, 100)))
kind("cleared with probability 0.02", "sawtooth")(cleared_at(by_chance(0.02)))
kind("cleared thrice a run", "sawtooth")(cleared_at(by_chance(3)))


def filling(share: float):
    """One a step until it is full."""

    def make(steps, rng):
        return turning(np.arange(int(share * steps * rng.uniform(0.95, 1))))

    return make


kind("fills over n/10", "fills")(filling(0.1))
kind("fills in a first epoch of n/5", "fills")(filling(0.2))
kind("fills over n/2", "fills")(filling(0.5))
kind("fills over 0.8 n", "fills")(filling(0.8))


@kind("dictionary of 400 Zipf keys", "fills")
def zipf_dictionary(steps, rng):
    return turning(a.first_uses(*a.zipf_keys(steps, rng, 8, 400)))


def coupons(share: float):
    def make(steps, rng):
        keys = rng.integers(0, max(2, int(share * steps)), 4 * steps)
        return turning(a.first_uses(keys, a.each_step(steps, 4)))

    return make


kind("0.3 n keys met at random", "fills")(coupons(0.3))
kind("0.8 n keys met at random", "fills")(coupons(0.8))


@kind("LRU cache of 50, Zipf keys", "cache")
def zipf_lru(steps, rng):
    return turning(*a.cached("lru", 50, *a.zipf_keys(steps, rng, 8, 400), rng))


def in_flight(most: int):
    def make(steps, rng):
        birth = a.each_step(steps)
        return turning(birth, birth + rng.integers(1, most + 1, steps).astype(float))

    return make


kind("in flight for up to 30", "in flight")(in_flight(30))
kind("in flight for up to 100", "in flight")(in_flight(100))


@kind("best five", "cache")
def best_five(steps, rng):
    """A heap of the five best scores: the worst of six goes."""
    return turning(*best_of(5, rng.random(steps)))


def best_of(size: int, scores) -> tuple[np.ndarray, np.ndarray]:
    death = np.full(len(scores), NEVER)
    best: list[tuple[float, int]] = []
    for step, score in enumerate(scores.tolist()):
        best.append((score, step))
        if len(best) > size:
            worst = min(best)
            best.remove(worst)
            death[worst[1]] = step
    return np.arange(len(scores)), death


@kind("reservoir of 300", "cache")
def reservoir(steps, rng):
    """Vitter's algorithm R: the t-th item takes one of the places with probability size / t."""
    size = min(300, steps // 3)
    death = np.full(steps, NEVER)
    places = list(range(size))
    for step in range(size, steps):
        at = int(rng.integers(step + 1))
        if at < size:
            death[places[at]], places[at] = step, step
        else:
            death[step] = step
    return turning(a.each_step(steps), death)


@kind("a batch of ever more items", "in flight")
def growing_batch(steps, rng):
    birth = a.counted(1 + np.arange(steps) // (20 if steps <= 1000 else 200))
    return turning(birth, birth + 1.0)


@kind("a batch in one ever larger tensor", "in flight")
def growing_tensor(steps, rng):
    birth = a.each_step(steps)
    return turning(birth, birth + 1.0, sizes=1.0 + birth // 20)


@kind("image pool of 50, half replaced", "cache")
def image_pool(steps, rng):
    death = np.full(steps, NEVER)
    pool = list(range(min(50, steps)))
    for step in range(50, steps):
        if rng.random() < 0.5:
            at = int(rng.integers(50))
            death[pool[at]], pool[at] = step, step
        else:
            death[step] = step + 1
    return turning(a.each_step(steps), death)


@kind("lives of n/20, exponential", "in flight")
def generational(steps, rng):
    birth = a.each_step(steps)
    return turning(birth, birth + 1.0 + rng.exponential(steps / 20, steps).astype(int))
