"""Kinds of turnover that none of the benchmark's sources names."""

import numpy as np

from benchmarks.rhythms import arrivals as a
from benchmarks.rhythms.loop import NEVER, Draft, Kind, Part
from benchmarks.rhythms.turnover import best_of, turning

KINDS: list[Kind] = []


def kind(name: str, pattern: str):
    """Enter a function (steps, rng) -> Draft as a kind."""

    def enter(make):
        KINDS.append(Kind(name, False, pattern, False, make))
        return make

    return enter


# Caches.


def cache(policy: str, size: float, keys: int):
    def make(steps, rng):
        lookups = a.zipf_keys(steps, rng, 3, keys, 0.9)
        return turning(*a.cached(policy, a.length(rng, size, steps), *lookups, rng))

    return make


kind("second-chance cache of 60", "cache")(cache("clock", 60, 1000))
kind("least frequently used, 40", "cache")(cache("lfu", 40, 600))
kind("first in first out, n/12", "cache")(cache("fifo", 1 / 12, 5000))
kind("random eviction, 30", "cache")(cache("random", 30, 3000))
kind("LRU of n/8", "cache")(cache("lru", 1 / 8, 8000))


@kind("entries expire 20 steps after their last use", "cache")
def expiring(steps, rng):
    keys, when = a.zipf_keys(steps, rng, 2, 300, 0.8)
    birth, death, last = [], [], {}
    for key, step in zip(keys.tolist(), when.tolist()):
        if key not in last or step - last[key][1] > 20:
            if key in last:
                death[last[key][0]] = last[key][1] + 20
            last[key] = (len(birth), step)
            birth.append(step)
            death.append(NEVER)
        else:
            last[key] = (last[key][0], step)
    for item, used in last.values():
        death[item] = used + 20.0
    return turning(np.array(birth), np.array(death))


@kind("cleared at 64 entries", "cache")
def cleared_when_full(steps, rng):
    """A memo that starts anew when it is full."""
    keys, when = a.zipf_keys(steps, rng, 4, 2000)
    birth, death, entries = [], [], {}
    for key, step in zip(keys.tolist(), when.tolist()):
        if key in entries:
            continue
        if len(entries) == 64:
            for item in entries.values():
                death[item] = step
            entries.clear()
        entries[key] = len(birth)
        birth.append(step)
        death.append(NEVER)
    return turning(np.array(birth), np.array(death))


@kind("sets of eight ways", "cache")
def associative(steps, rng):
    """Sixteen sets of eight: a key goes to its set and takes the place of any one in it."""
    place = rng.integers(0, 16, 3 * steps) * 8 + rng.integers(0, 8, 3 * steps)
    return turning(*a.replaced(place, a.each_step(steps, 3)))


@kind("replay buffer, filled then replaced at random", "cache")
def replay(steps, rng):
    size = int(0.15 * steps)
    keys = np.where(np.arange(steps) < size, np.arange(steps), rng.integers(0, size, steps))
    return turning(*a.replaced(keys, a.each_step(steps)))


@kind("best 20 of scores that improve", "cache")
def improving(steps, rng):
    return turning(*best_of(20, np.arange(steps) * 0.05 + rng.normal(0, 1, steps)))


# Queues and stacks.


@kind("queue at four fifths of its capacity", "queue")
def busy_queue(steps, rng):
    birth = a.counted(rng.poisson(0.8, steps))
    return turning(birth, a.queue(birth, np.ones(steps)))


@kind("queue near its capacity", "queue")
def full_queue(steps, rng):
    birth = a.counted(rng.poisson(1.8, steps))
    return turning(birth, a.queue(birth, rng.poisson(2.0, steps)))


@kind("stack that returns to its bottom", "queue")
def stack(steps, rng):
    pushed = rng.random(steps) < 0.45
    birth = np.flatnonzero(pushed)
    return turning(birth, a.queue(birth, ~pushed, newest_first=True))


@kind("level that wanders between 0 and 60", "queue")
def wandering(steps, rng):
    level, births, served = 0, np.zeros(steps, np.int64), np.zeros(steps, np.int64)
    for step in range(steps):
        up = level == 0 or (level < 60 and rng.random() < 0.5)
        births[step], served[step] = 3 * up, 3 * (not up)
        level += 3 if up else -3
    birth = a.counted(births)
    return turning(birth, a.queue(birth, served))


@kind("prefetch that stalls and drains", "queue")
def prefetch(steps, rng):
    """Sixteen batches are ready; the consumer rests for up to 10 steps now and then, and then takes two a
    step.
    """
    level, births, served = 0, np.zeros(steps, np.int64), np.zeros(steps, np.int64)
    rest = 0
    for step in range(steps):
        rest = rest - 1 if rest else int(rng.integers(3, 11)) * (rng.random() < 0.05)
        births[step] = level < 16
        served[step] = 0 if rest else 1 + (level > 2)
        level = max(0, level + births[step] - served[step])
    birth = a.counted(births)
    return turning(birth, a.queue(birth, served))


@kind("many servers, exponential lives", "in flight")
def many_servers(steps, rng):
    birth = a.counted(rng.poisson(3, steps))
    return turning(birth, birth + np.floor(rng.exponential(15, len(birth))))


@kind("timers set up to 80 steps ahead", "in flight")
def timers(steps, rng):
    """Half of them are cancelled early."""
    birth = a.counted(rng.poisson(0.7, steps))
    ahead = rng.integers(1, 81, len(birth)) * np.where(
        rng.random(len(birth)) < 0.5, rng.random(len(birth)), 1
    )
    return turning(birth, birth + np.floor(ahead))


@kind("most die at once, some after 60", "in flight")
def two_lives(steps, rng):
    birth = a.each_step(steps, 10)
    return turning(birth, birth + np.where(rng.random(len(birth)) < 0.05, 60.0, 1.0))


# What is emptied.


@kind("two sets in turns, 30 steps each", "sawtooth")
def double_buffer(steps, rng):
    birth = a.each_step(steps)
    return turning(birth, (birth // 30 + 2) * 30.0)


@kind("joined windows of 20", "sawtooth")
def windows(steps, rng):
    birth = a.counted(rng.poisson(1.5, steps))
    return turning(birth, (birth // 20 + 2) * 20.0 - 1)


@kind("losses of an epoch of n/8", "sawtooth")
def epoch_losses(steps, rng):
    birth = a.each_step(steps)
    return turning(birth, a.until_next(birth, np.arange(steps // 8, steps, max(2, steps // 8))))


@kind("half dropped at random each epoch", "sawtooth")
def halved(steps, rng):
    """Each item has an even chance at the end of each epoch of 20 steps."""
    birth = a.each_step(steps)
    return turning(birth, (birth // 20 + rng.geometric(0.5, steps)) * 20.0)


@kind("garbage of three generations", "sawtooth")
def collected(steps, rng):
    """Cycles that wait for the collector: most go at each 7th step, some at each 70th."""
    birth = a.each_step(steps, 6)
    young = a.until_next(birth, range(6, steps, 7))
    return turning(
        birth, np.where(rng.random(len(birth)) < 0.05, a.until_next(birth, range(69, steps, 70)), young)
    )


@kind("newest three checkpoints", "sawtooth")
def checkpoints(steps, rng):
    """Ten blocks every 12th step; the fourth oldest go."""
    birth = np.repeat(a.with_phase(steps, 12, [5]), 10)
    return turning(birth, birth + 36.0)


@kind("backups thinned with age", "falls off")
def thinned(steps, rng):
    """One a step; of those older than 2**k steps each 2**k-th stays: their number goes with the logarithm of
    the steps.
    """
    birth = a.each_step(steps)
    odd = np.where(birth > 0, birth & -birth, 1 << 40).astype(float)
    return turning(birth, birth + 4 * odd)


# What changes its level.


@kind("working set by day and night", "level")
def tides(steps, rng):
    period = rng.uniform(30, 80)
    level = np.round(40 + 30 * np.sin(2 * np.pi * np.arange(steps) / period)).astype(np.int64)
    change = np.diff(level, prepend=0)
    birth = a.counted(change)
    return turning(birth, a.queue(birth, np.maximum(-change, 0)))


@kind("ring that is widened once", "level")
def widened_once(steps, rng):
    birth = a.each_step(steps)
    switch = steps * rng.uniform(0.3, 0.5)
    return turning(birth, birth + np.where(birth < switch - 15, 15.0, 45.0))


@kind("pool that shrinks when idle", "level")
def shrinking_pool(steps, rng):
    starts = a.renewals(steps, lambda: rng.integers(40, 80), 5)
    sizes = rng.integers(10, 40, len(starts))
    birth = np.repeat(starts, sizes)
    return turning(birth, np.repeat(starts + 20 + rng.integers(0, 15, len(starts)), sizes).astype(float))


@kind("pool as large as demand ever was", "falls off")
def record_demand(steps, rng):
    """Objects are made when more are wanted than ever before, and kept."""
    wanted = np.maximum.accumulate(rng.poisson(20, steps))
    return turning(a.counted(np.diff(wanted, prepend=0)))


@kind("thirty of a kind, made when first used", "falls off")
def lazy(steps, rng):
    return turning(np.sort((steps * 0.6 * rng.random(30) ** 2).astype(np.int64)))


@kind("set up, then dying off", "falls off")
def dying_off(steps, rng):
    birth = np.sort(rng.integers(0, max(3, steps // 10), 120))
    return turning(birth, birth + np.floor(rng.exponential(steps / 3, 120)) + 1)


@kind("all parameters replaced each step", "level")
def replaced_each_step(steps, rng):
    birth = a.each_step(steps, 12)
    return turning(birth, birth + 1.0)


@kind("two rings of two lines", "level")
def two_rings(steps, rng):
    birth = a.each_step(steps)
    parts = (Part(birth, birth + 12.0, growing=False), Part(birth, birth + 40.0, growing=False, site="b"))
    return Draft(parts)


@kind("kept, but below the limit", "below the limit")
def below_the_limit(steps, rng):
    return Draft((Part(a.with_phase(steps, 5, [0]), growing=False),), bytes_per_step=64.0)
