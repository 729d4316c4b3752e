"""Kinds of turnover that were written without a look at any decider, to judge one by; who tunes on them
writes others.
"""

import numpy as np

from benchmarks.rhythms import arrivals as a
from benchmarks.rhythms.loop import NEVER, Draft, Kind, Part
from benchmarks.rhythms.unseen_items import Items, drifting_keys, kind_into, turning, turns

KINDS: list[Kind] = []
kind = kind_into(KINDS, grows=False)


@kind("segmented LRU, 8 on probation and 12 protected")
def segmented(steps, rng):
    items, probation, protected = Items(), {}, {}
    keys, when = drifting_keys(steps, rng, 3, 300, 0.9, 3)
    for key, step in zip(keys.tolist(), when.tolist()):
        if key in protected:
            protected[key] = protected.pop(key)
        elif key in probation:
            protected[key] = probation.pop(key)
            if len(protected) > 12:
                oldest = next(iter(protected))
                probation[oldest] = protected.pop(oldest)
        else:
            probation[key] = items.add(step)
        if len(probation) > 8:
            items.end(probation.pop(next(iter(probation))), step)
    return items.draft(False)


@kind("answers that are good for 12 to 18 steps")
def good_for_a_time(steps, rng):
    """A time to live from birth, with jitter: hits do not renew it."""
    items, ends = Items(), {}
    for key, step in zip(*(x.tolist() for x in a.zipf_keys(steps, rng, 3, 200, 0.9))):
        if ends.get(key, -1) < step:
            ends[key] = step + int(rng.integers(12, 19))
            items.end(items.add(step), ends[key])
    return items.draft(False)


@kind("bounded by bytes, the stalest of five samples goes")
def bounded_by_bytes(steps, rng):
    items, used, of = Items(), {}, {}
    sizes, total = np.exp(rng.normal(0, 0.8, 500)), 0.0
    for key, step in zip(*(x.tolist() for x in a.zipf_keys(steps, rng, 3, 500, 0.8))):
        if key not in used:
            total += sizes[key]
            while total > 40 and used:
                names = list(used)
                stale = min((names[at] for at in rng.integers(0, len(names), 5)), key=used.__getitem__)
                total -= sizes[stale]
                items.end(of.pop(stale), step)
                del used[stale]
            of[key] = items.add(step, float(sizes[key]))
        used[key] = step
    return items.draft(False)


@kind("least frequent of thirty, with counts that fade")
def fading_counts(steps, rng):
    items, counts, of = Items(), {}, {}
    keys, when = drifting_keys(steps, rng, 3, 300, 1.0, 4)
    for at, (key, step) in enumerate(zip(keys.tolist(), when.tolist())):
        if at % 60 == 59:
            counts = {k: c / 2 for k, c in counts.items()}
        if key not in of:
            if len(of) == 30:
                least = min(of, key=counts.__getitem__)
                items.end(of.pop(least), step)
                del counts[least]
            of[key] = items.add(step)
        counts[key] = counts.get(key, 0) + 1
    return items.draft(False)


@kind("a window whose length wanders between 10 and 40")
def wandering_window(steps, rng):
    items, window, head, size = Items(), [], 0, int(rng.integers(10, 41))
    for step in range(steps):
        size = int(np.clip(size + rng.integers(-6, 7), 10, 40))
        window += [items.add(step) for _ in range(rng.poisson(1.5))]
        while len(window) - head > size:
            items.end(window[head], step)
            head += 1
    return items.draft(False)


@kind("lives with a heavy tail, n/10 at most")
def heavy_lives(steps, rng):
    birth = a.counted(rng.poisson(2, steps))
    lives = np.minimum(1 + 6 * rng.pareto(1.7, len(birth)), steps / 10)
    return turning(birth, birth + np.floor(lives))


@kind("jobs in batches, a queue of twenty places")
def bounded_queue(steps, rng):
    """Seven jobs in ten steps for one server; what finds no place is dropped at once."""
    items, waiting = Items(), []
    for step in range(steps):
        for _ in range(int(rng.geometric(0.3)) if rng.random() < 0.21 else 0):
            item = items.add(step)
            if len(waiting) < 20:
                waiting.append(item)
            else:
                items.end(item, step)
        if waiting:
            items.end(waiting.pop(0), step)
    return items.draft(False)


@kind("batched at sixteen or after twelve steps")
def dynamic_batches(steps, rng):
    """Requests of a server wait until there are sixteen, or the first has waited for twelve steps."""
    items, waiting = Items(), []
    busy, _ = a.on_and_off(steps, lambda: rng.geometric(1 / 15), lambda: rng.geometric(1 / 25))
    rate = np.full(steps, 0.4)
    rate[busy] = 2.5
    for step in range(steps):
        for _ in range(rng.poisson(rate[step])):
            waiting.append(items.add(step))
            if len(waiting) == 16:
                for item in waiting:
                    items.end(item, step + 2)
                waiting = []
        if waiting and step - items.birth[waiting[0]] >= 12:
            for item in waiting:
                items.end(item, step + 2)
            waiting = []
    return items.draft(False)


@kind("cycles that wait for thresholds of the collector")
def thresholds(steps, rng):
    """Most die by their count; a collection comes at twenty net births, each third one of the older too."""
    items, young, old, net, collections, due = Items(), [], [], 0, 0, {}
    for step in range(steps):
        net -= due.pop(step, 0)
        for _ in range(rng.poisson(7)):
            item = items.add(step)
            net += 1
            if rng.random() < 0.85:
                end = step + int(rng.integers(1, 4))
                items.end(item, end)
                due[end] = due.get(end, 0) + 1
            else:
                young.append((item, step + int(rng.geometric(0.25))))
        if net >= 20:
            net, collections = 0, collections + 1
            looked_at = young + (old if collections % 3 == 0 else [])
            left = [] if collections % 3 == 0 else old
            for item, unreachable in looked_at:
                if unreachable <= step:
                    items.end(item, step)
                else:
                    left.append((item, unreachable))
            young, old = [], left
    return items.draft(False)


@kind("a memo of twenty hot keys and thirty cold ones")
def hot_and_cold(steps, rng):
    """Full by half of the run: a cold key is met once in 150 lookups, and there are 2,400 at least."""
    a_step = max(1, -(-2400 // steps))
    count = steps * a_step
    keys = np.where(rng.random(count) < 0.8, rng.integers(0, 20, count), rng.integers(20, 50, count))
    return turning(a.first_uses(keys, a.each_step(steps, a_step)))


@kind("tuned for each of eight shapes, met ever later in the first quarter")
def tuned(steps, rng):
    """Some plans of each shape are kept; each trial's work space goes at once, as do those of the steps."""
    first = np.floor(steps * rng.uniform(0.16, 0.24) * 2.0 ** np.arange(-7, 1)).astype(np.int64)
    plans = np.repeat(first, rng.integers(4, 12, 8))
    trials = np.repeat(first, 10)
    work = a.each_step(steps)
    return Draft(
        (
            Part(plans, growing=False),
            Part(trials, trials + 1.0, growing=False, sizes=3.0),
            Part(work, work + 1.0, growing=False, sizes=0.5),
        )
    )


@kind("the next epoch's samples come before the last's go")
def cohorts(steps, rng):
    starts = np.append(0, turns(steps, rng, 15, 0.25))
    sizes = 1 + rng.poisson(30, len(starts))
    overlap = max(1, steps // 200)
    return turning(np.repeat(starts, sizes), np.repeat(np.append(starts[1:] + overlap, NEVER), sizes))


@kind("a population of which four of sixteen go on")
def population(steps, rng):
    """Each third step the four best by a noisy score stay, with their children of the next three steps."""
    items, live = Items(), {}
    for step in range(steps):
        for _ in range(4):
            live[items.add(step)] = rng.normal()
        if step % 3 == 2:
            noisy = sorted(live, key=lambda item: live[item] + rng.normal(0, 0.7))
            for item in noisy[:-4]:
                items.end(item, step)
                del live[item]
            live = {item: score - 0.2 for item, score in live.items()}
    return items.draft(False)


@kind("replay by priority, of which the lowest goes")
def prioritized(steps, rng):
    """What was replayed loses priority; a place is taken from the lowest."""
    size = int(np.clip(steps // 10, 10, 300))
    items, places, priority = Items(), np.zeros(size, np.int64), np.full(size, -1.0)
    for step in range(steps):
        at = int(np.argmin(priority))
        if priority[at] >= 0:
            items.end(places[at], step)
        places[at], priority[at] = items.add(step), 1 + rng.exponential()
        priority[rng.integers(0, min(size, step + 1), 3)] *= rng.uniform(0.3, 1, 3)
    return items.draft(False)


@kind("connections as wanted, closed when idle for 12 steps or 30 old")
def pooled(steps, rng):
    items, wanted, pool = (
        Items(),
        int(rng.integers(5, 36)),
        [],
    )  # pool: [item, last use], reused from the front
    for step in range(steps):
        wanted = int(np.clip(wanted + rng.integers(-7, 8), 5, 35))
        for entry in pool:
            if step - items.birth[entry[0]] >= 30 or step - entry[1] > 12:
                items.end(entry[0], step)
        pool = [entry for entry in pool if items.death[entry[0]] == NEVER]
        while len(pool) < wanted:
            pool.append([items.add(step), step])
        for entry in pool[:wanted]:
            entry[1] = step
    return items.draft(False)


@kind("a search tree that is re-rooted at each move")
def re_rooted(steps, rng):
    """A tenth to a half of the nodes go on with each move; all go at the end of the game."""
    items, live, moves = Items(), np.zeros(0, np.int64), int(rng.integers(8, 21))
    for step in range(steps):
        live = np.append(live, [items.add(step) for _ in range(6)])
        if step % 2:
            moves -= 1
            stay = (rng.random(len(live)) < rng.uniform(0.1, 0.5)) & (moves > 0)
            for item in live[~stay].tolist():
                items.end(item, step)
            live = live[stay]
            moves = moves or int(rng.integers(8, 21))
    return items.draft(False)


@kind("log records flushed by their bytes, or at an error")
def flushed_by_bytes(steps, rng):
    items, buffer, held, room = Items(), [], 0.0, 60.0
    for step in range(steps):
        for _ in range(rng.poisson(1.5)):
            size = float(np.exp(rng.normal(0, 1)))
            buffer.append(items.add(step, size))
            held += size
        if held > room or rng.random() < 0.02:
            for item in buffer:
                items.end(item, step)
            buffer, held = [], 0.0
    return items.draft(False)


@kind("half of a pair waits for the other, or for the watermark")
def joined(steps, rng):
    birth = a.counted(rng.poisson(1.5, steps))
    paired = birth + rng.geometric(1 / 7, len(birth)).astype(float)
    paired[rng.random(len(birth)) < 0.1] = NEVER
    return turning(birth, np.minimum(paired, (birth + 25) // 10 * 10.0 + 10))


@kind("pages of running requests, the newest preempted when short")
def paged(steps, rng):
    """A page each second step of a request, ninety at most; who is preempted gives all back and is gone."""
    items, running, waiting = Items(), [], []  # running: [steps to go, age, pages]
    for step in range(steps):
        waiting += [4 + int(rng.geometric(1 / 14)) for _ in range(rng.poisson(1.2))]
        waiting = waiting[:8]
        held = sum(len(request[2]) for request in running)
        while waiting and held + len(running) < 80:
            running.append([waiting.pop(0), 0, []])
            held += 1
        for request in list(running):
            if request not in running:
                continue
            if request[1] % 2 == 0:
                while sum(len(other[2]) for other in running) >= 90 and running[-1] is not request:
                    for item in running.pop()[2]:
                        items.end(item, step)
                request[2].append(items.add(step))
            request[1] += 1
            if request[1] >= request[0]:
                for item in request[2]:
                    items.end(item, step)
                running.remove(request)
    return items.draft(False)


@kind("samples of n/12, three quarters of which each epoch meets")
def sampled_epochs(steps, rng):
    """Each sample is decoded once, when first met: the last ones within half of the run."""
    size = max(8, steps // 12)
    births = []
    first = np.ceil(np.log(1 - rng.random(size) * (1 - 0.25**5)) / np.log(0.25)).astype(np.int64)
    for epoch in np.maximum(first, 1).tolist():
        births += [int((epoch - 1 + rng.random()) * steps / 12)] * 2
    return turning(np.sort(births))
