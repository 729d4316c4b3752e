"""Kinds of growth with uneven amounts, lives and rests: heavy tails, wandering loads, slow drains.

Written from the contract without a look at any decider, to judge one by; who tunes on them writes others.
"""

from collections import OrderedDict

import numpy as np

from benchmarks.rhythms import arrivals as a
from benchmarks.rhythms.loop import NEVER, Draft, Kind, Part
from benchmarks.rhythms.unseen_items import Items, kept, kind_into, partly_kept, turns

KINDS: list[Kind] = []
kind = kind_into(KINDS, grows=True)


def wander(steps, rng, time: float) -> np.ndarray:
    """A level that is drawn back to 0, of variance 1 and so long a memory."""
    time = max(3.0, time)
    level, found = rng.normal(), np.zeros(steps)
    keep = np.exp(-1 / time)
    for step in range(steps):
        level = keep * level + np.sqrt(1 - keep**2) * rng.normal()
        found[step] = level
    return found


@kind("hard examples, mined while the loss is high")
def hard_examples(steps, rng):
    """Three candidates a step live for up to eight; while the loss is above a level, two in five stay."""
    loss = wander(steps, rng, steps / 40)
    birth = a.counted(rng.poisson(3, steps))
    stays = (loss[birth] > 0.3) & (rng.random(len(birth)) < 0.4)
    return partly_kept(birth, stays, birth + rng.integers(1, 9, len(birth)))


@kind("crops of Pareto sizes, one in twenty pinned by a view")
def pareto_crops(steps, rng):
    birth = a.counted(rng.poisson(4, steps))
    sizes = np.minimum(60, 0.2 + rng.pareto(1.6, len(birth)))
    stays = rng.random(len(birth)) < 0.05
    return partly_kept(birth, stays, birth + rng.geometric(0.25, len(birth)), sizes)


@kind("a huge shard now and then beside index entries")
def shards(steps, rng):
    """Some eighteen shards a run are nine tenths of the bytes."""
    big = turns(steps, rng, 18, 0.5)
    small = a.at_random(steps, rng, 0.3)
    sizes = np.append(steps / 6 * np.exp(rng.normal(0, 0.4, len(big))), np.ones(len(small)))
    return kept(np.append(big, small), sizes=sizes, events=big)


@kind("a journal rewritten each step, cut by half of the latest at a checkpoint")
def journal(steps, rng):
    """One block; a checkpoint cuts off half of what came since the last one."""
    cuts = set(turns(steps, rng, 14, 0.5).tolist())
    sizes, size, latest = [], 5.0, 0.0
    for step in range(steps):
        more = rng.uniform(0.5, 1.5)
        size, latest = size + more, latest + more
        if step in cuts:
            size, latest = size - latest / 2, 0.0
        sizes.append(size)
    birth = a.each_step(steps)
    return Draft((Part(birth, birth + 1.0, sizes=np.array(sizes), holder="journal"),))


@kind("lives of up to half as much again as the run is old")
def lives_by_age(steps, rng):
    birth = a.counted(rng.poisson(2, steps))
    return Draft((Part(birth, birth + np.ceil(rng.uniform(0, 1.5, len(birth)) * (birth + 10))),))


@kind("a time to live that goes with the square root of the steps")
def ttl_root(steps, rng):
    birth = a.counted(rng.poisson(2, steps))
    return Draft((Part(birth, birth + np.ceil(6 * np.sqrt(birth + 1) * rng.uniform(0.9, 1.1, len(birth)))),))


@kind("predictions of evaluations whose distance goes with the cube root")
def rarer_evaluations(steps, rng):
    when, step = [], 2
    while step < steps:
        when.append(step)
        step += max(1, round(0.6 * step ** (1 / 3) * rng.uniform(0.8, 1.2)))
    birth = np.repeat(np.array(when), 5)
    return kept(birth, sizes=np.exp(rng.normal(0, 1, len(birth))), events=np.array(when))


@kind("listeners that beget listeners")
def listeners(steps, rng):
    """A Yule process with immigration: e**3 times as fast at the end."""
    counts, live = np.zeros(steps, np.int64), 0
    for step in range(steps):
        counts[step] = rng.poisson(0.4 + 3 * live / steps)
        live += counts[step]
    return kept(a.counted(counts))


@kind("edges of each new node to all before it")
def edges(steps, rng):
    nodes = turns(steps, rng, 30, 0.6)
    return kept(np.repeat(nodes, 1 + np.arange(len(nodes))), events=nodes)


@kind("decoded anew in the first fifth of each epoch of n/8")
def first_fifth(steps, rng):
    epoch = steps / 8
    phase = (np.arange(steps) + rng.uniform(0, epoch)) % epoch
    return kept(a.counted(rng.poisson(1.5, steps) * (phase < epoch / 5)))


@kind("churn of which one in twelve stays, from the second half on")
def late_below_churn(steps, rng):
    onset = int(rng.uniform(0.5, 0.58) * steps)
    birth = a.counted(rng.poisson(4, steps))
    stays = (birth >= onset) & (rng.random(len(birth)) < 1 / 12)
    return partly_kept(birth, stays, birth + rng.geometric(1 / 8, len(birth)), onset=onset)


@kind("on and off by heavy tails, off for up to n/10")
def heavy_turns(steps, rng):
    on, _ = a.on_and_off(
        steps,
        lambda: min(steps / 10, steps / 60 * (1 + rng.pareto(1.5))),
        lambda: min(steps / 10, steps / 50 * (1 + rng.pareto(1.2))),
    )
    return kept(on[rng.random(len(on)) < 0.8])


@kind("one at times, at the line of an LRU cache of forty")
def beside_lru(steps, rng):
    birth, death = a.cached("lru", 40, *a.zipf_keys(steps, rng, 3, 400, 0.9), rng)
    return Draft((Part(a.at_random(steps, rng, 0.12)), Part(birth, death, growing=False)))


@kind("one of two steps, below a load that wanders")
def below_load(steps, rng):
    """In flight are forty on average, half as many or twice as many for long."""
    load = 5 * np.exp(0.5 * wander(steps, rng, steps / 20))
    churn = a.counted(rng.poisson(load))
    leak = a.counted(rng.poisson(0.5, steps))
    return Draft((Part(leak), Part(churn, churn + rng.geometric(1 / 8, len(churn)), growing=False)))


@kind("a spool flushed at uneven times, by a quota of seven tenths")
def spool(steps, rng):
    birth = a.counted(rng.poisson(2, steps))
    served = np.zeros(steps, np.int64)
    served[turns(steps, rng, 25, 0.5)] = round(0.7 * 2 * steps / 25)
    return Draft((Part(birth, a.queue(birth, served)),))


@kind("a table and its two moments, resized for heavy-tailed numbers of words")
def embedding(steps, rng):
    when = np.append(0, turns(steps, rng, 25, 0.6))
    rows = 10 + np.cumsum(np.minimum(40, 1 + rng.pareto(1.3, len(when))))
    death = np.append(when[1:] + 1.0, NEVER)
    part = Part(np.repeat(when, 3), np.repeat(death, 3), sizes=np.repeat(rows, 3), holder="table")
    return Draft((part,), events=when)


@kind("beside cycles that are collected once they are a quarter of what is kept")
def quarter_rule(steps, rng):
    """As CPython does for its oldest generation; one of two steps keeps one."""
    items, cycles, stayed = Items(), [], 0
    for step in range(steps):
        for _ in range(rng.poisson(0.5)):
            items.add(step, stays=True)
            stayed += 1
        cycles += [items.add(step) for _ in range(rng.poisson(3))]
        if len(cycles) > 20 + stayed / 4:
            for item in cycles:
                items.end(item, step)
            cycles = []
    return items.partly()


@kind("slabs of sixteen objects, of which one in two hundred never dies")
def slabs(steps, rng):
    """A slab goes with the last of its objects."""
    birth = a.at_random(steps, rng, 0.9)
    last = rng.geometric(1 / 6, (len(birth), 16)).max(axis=1)
    stays = rng.random(len(birth)) < 1 - 0.995**16
    return partly_kept(birth, stays, birth + last)


@kind("lives with so heavy a tail that they have no mean")
def no_mean(steps, rng):
    """All die at last, but what is alive goes with the steps to the 0.65."""
    birth = a.counted(rng.poisson(2, steps))
    return Draft((Part(birth, birth + np.floor((1 - rng.random(len(birth))) ** (-1 / 0.35))),))


@kind("its rise hidden at first by an old pool that is dismantled")
def dismantled(steps, rng):
    """Three tenths of n items are there from the start, and go at random until half of the run."""
    pool = np.zeros(int(0.3 * steps), np.int64)
    goes = np.floor(rng.uniform(1, steps / 2, len(pool)))
    return Draft((Part(a.at_random(steps, rng, 0.5)), Part(pool, goes, growing=False)))


@kind("dumps of seven ranks, each at a prime period and of its own size")
def ranks(steps, rng):
    births, sizes = [], []
    for period in (7, 11, 13, 17, 19, 23, 29):
        mine = np.arange(rng.integers(period), steps, period)
        births.append(mine)
        sizes.append(np.full(len(mine), np.exp(rng.normal(0, 1))))
    return kept(np.concatenate(births), sizes=np.concatenate(sizes))


@kind("what a worker had in flight when it crashed")
def crashes(steps, rng):
    """Four workers; some twenty-two crashes a run, each of which pins what one of them had in flight."""
    birth = a.counted(rng.poisson(2.8, steps))
    death = birth + rng.integers(1, 16, len(birth)).astype(float)
    worker = rng.integers(0, 4, len(birth))
    when, stays = turns(steps, rng, 22, 0.6), np.zeros(len(birth), bool)
    for step in when.tolist():
        stays |= (worker == rng.integers(4)) & (birth <= step) & (death > step)
    return partly_kept(birth, stays, death, events=when)


@kind("an LRU cache of sixty lists, to which each hit appends")
def appended_hits(steps, rng):
    """An entry gives way to one that is longer by one; four hot ones are never evicted."""
    items, entries, count = Items(), OrderedDict(), 3 * steps
    keys = np.where(rng.random(count) < 0.48, rng.integers(0, 4, count), rng.integers(4, 304, count))
    for key, step in zip(keys.tolist(), a.each_step(steps, 3).tolist()):
        size = 1.0
        if key in entries:
            old = entries.pop(key)
            items.end(old, step)
            size += items.size[old]
        elif len(entries) == 60:
            items.end(entries.popitem(last=False)[1], step)
        entries[key] = items.add(step, size)
    return items.draft(True)


@kind("a data set each n/8 steps, freed but for one in twenty-five")
def data_sets(steps, rng):
    birth = a.each_step(steps, 3)
    ends = a.renewals(steps, lambda: steps / 8 * rng.uniform(0.85, 1.1), int(steps / 9))
    stays = rng.random(len(birth)) < 0.04
    return partly_kept(birth, stays, a.until_next(birth, ends))


@kind("calls that hang when more than thirty-five are open")
def hanging(steps, rng):
    load = 3 * np.exp(0.5 * wander(steps, rng, steps / 30))
    items, ends = Items(), np.zeros(0, np.int64)
    for step in range(steps):
        ends = ends[ends > step]
        for _ in range(rng.poisson(load[step])):
            hangs = len(ends) > 35 and rng.random() < 0.15
            item, end = items.add(step, stays=hangs), step + int(rng.integers(4, 17))
            items.end(item, end)
            if not hangs:
                ends = np.append(ends, end)
    return items.partly()


@kind("five entries a tenant, and ever more tenants")
def tenants(steps, rng):
    """Each tenant's cache is bounded; a new tenant comes some thirty times a run."""
    items, caches, come = Items(), [OrderedDict() for _ in range(3)], turns(steps, rng, 30, 0.4)
    new = set(come.tolist())
    for step in range(steps):
        if step in new:
            caches.append(OrderedDict())
        for _ in range(4):
            low = max(0, len(caches) - 6) if rng.random() < 0.7 else 0
            cache, key = caches[rng.integers(low, len(caches))], int(rng.integers(12))
            if key in cache:
                cache.move_to_end(key)
                continue
            if len(cache) == 5:
                items.end(cache.popitem(last=False)[1], step)
            cache[key] = items.add(step)
    return items.draft(True, events=come)
