"""Kinds of growth that were written without a look at any decider, to judge one by; who tunes on them writes
others.
"""

import heapq

import numpy as np

from benchmarks.rhythms import arrivals as a
from benchmarks.rhythms.loop import NEVER, Draft, Kind, Part
from benchmarks.rhythms.unseen_items import Items, kept, kind_into, partly_kept, turns

KINDS: list[Kind] = []
kind = kind_into(KINDS, grows=True)


@kind("attempts of a retry that backs off, each with its traceback")
def retries(steps, rng):
    """A call fails now and then, is tried again after 1, 2, 4, 8, 16 steps; each attempt's error is kept."""
    births = []
    for start in a.renewals(steps, lambda: rng.integers(3, 16), 2).tolist():
        tries = min(5, int(rng.geometric(0.3)))
        births += [start + 2**k - 1 for k in range(tries)]
    return kept(np.sort(births))


@kind("transitions of the episodes that succeeded")
def successes(steps, rng):
    """An episode's transitions are freed at its end, unless it succeeded: ever more do."""
    items, ends, step = Items(), [], 0
    scale = 1 if steps < 1000 else 4
    while step < steps:
        last = step + scale * int(rng.integers(2, 7))
        good = rng.random() < 0.35 + 0.3 * step / steps
        for at in range(step, min(last, steps)):
            item = items.add(at, stays=good)
            items.end(item, last)
        if good and last < steps:
            ends.append(last)
        step = last
    return items.partly(events=np.array(ends, np.int64))


@kind("winners of successive halving")
def halving(steps, rng):
    """Nine trials start; six go after a rung, two after the next; what is left of each bracket is kept."""
    rung = max(1, round(steps / 110))
    items, brackets, step = Items(), [], 0
    while step < steps:
        second = step + rung + int(rng.integers(0, rung + 1))
        third = second + 2 * rung + int(rng.integers(0, rung + 1))
        order = rng.permutation(9)
        for trial in range(9):
            place = order[trial]
            for _ in range(int(rng.integers(2, 5))):
                item = items.add(step, stays=place == 0)
                items.end(item, second if place >= 3 else third)
        brackets.append(step)
        step = third + 1
    return items.partly(events=np.array(brackets, np.int64))


@kind("sub-graphs by seed node, new ones as t to the 0.85")
def pitman_yor(steps, rng):
    """A cache without a bound over keys of a Pitman-Yor process: new ones get rarer, without end."""
    births, draws = [], rng.random(3 * steps)
    for at, draw in enumerate(draws.tolist()):
        if draw < (5 + 0.85 * len(births)) / (5 + at):
            births.append(at // 3)
    return kept(births)


@kind("an expiry that samples three of all each fifth step")
def sampled_expiry(steps, rng):
    """As Redis does, but too few: of the sampled, those older than 15 steps go; one comes each step."""
    items, live = Items(), []
    for step in range(steps):
        live.append(items.add(step))
        if step % 5 == 4:
            for at in sorted(set(rng.integers(0, len(live), 3).tolist()), reverse=True):
                if items.birth[live[at]] < step - 15:
                    items.end(live[at], step)
                    live[at] = live[-1]
                    live.pop()
    return items.draft(True)


@kind("a stable queue whose load passes its capacity")
def overloaded(steps, rng):
    onset = int(rng.uniform(0.2, 0.36) * steps)
    birth = a.counted(rng.poisson(np.where(np.arange(steps) < onset, 0.65, 1.7)))
    return Draft((Part(birth, a.queue(birth, np.ones(steps))),), onset=onset)


@kind("hooks set anew on all modules of a net that is deepened")
def deepened(steps, rng):
    """About eighteen times a run; each time two modules more."""
    stages = turns(steps, rng, 18)
    return kept(np.repeat(stages, 2 + 2 * np.arange(len(stages))), events=stages)


@kind("worker buffers of each epoch's loader, among its batches")
def loaders(steps, rng):
    """Batches live for up to five steps; six buffers of each epoch's loader stay, some larger."""
    starts = turns(steps, rng, 25, 0.2)
    batches = a.each_step(steps, 4)
    buffers = np.repeat(starts, 6)
    return Draft(
        (
            Part(batches, batches + rng.integers(1, 6, len(batches)), growing=False),
            Part(buffers, sizes=rng.choice((2.0, 4.0, 8.0), len(buffers))),
        ),
        events=starts,
    )


@kind("records once for each handler, of which one more comes at times")
def handlers(steps, rng):
    added = turns(steps, rng, 12)
    number = 1 + np.searchsorted(added, np.arange(steps), side="right")
    return kept(a.counted(number * (rng.random(steps) < 0.6)))


@kind("a rate that drifts")
def drifting(steps, rng):
    """The rate's logarithm goes at random and is drawn back (Ornstein and Uhlenbeck)."""
    time = max(5.0, steps / 25)
    level, log_rate = rng.normal(0, 0.6), np.zeros(steps)
    for step in range(steps):
        level += -level / time + rng.normal(0, 0.6 * np.sqrt(2 / time))
        log_rate[step] = level
    return kept(a.counted(rng.poisson(0.8 * np.exp(log_rate))))


@kind("rare tracebacks that pin a frame's locals")
def tracebacks(steps, rng):
    """Twelve to eighteen a run, of geometric number and mixed sizes."""
    count = int(rng.integers(12, 19))
    bounds = np.linspace(0, steps, count + 1)
    when = np.unique(np.floor(rng.uniform(bounds[:-1], bounds[1:])).astype(np.int64))
    birth = np.repeat(when, 4 + rng.geometric(0.08, len(when)))
    return kept(birth, sizes=np.exp(rng.normal(0, 0.7, len(birth))), events=when)


@kind("three phases that keep in three rhythms")
def phases(steps, rng):
    """Pre-training keeps one each third step, fine-tuning one or two a step, evaluation six at times."""
    first, second = int(rng.uniform(0.3, 0.4) * steps), int(rng.uniform(0.6, 0.75) * steps)
    early = np.arange(0, first, 3)
    middle = np.sort(rng.integers(first, second, int(1.3 * (second - first))))
    late = np.repeat(second + a.renewals(steps - second, lambda: rng.integers(3, 7)), 6)
    sizes = np.repeat([3.0, 1.0, 1.0], [len(early), len(middle), len(late)])
    return kept(np.concatenate([early, middle, late]), sizes=sizes)


@kind("a clean-up that is switched off for long stretches")
def switched(steps, rng):
    """Born each step for up to eight steps; for good while the clean-up is off, as it is at the end."""
    leaking, end, off = np.zeros(steps, bool), steps, True
    while end > 0:
        low, high = (1 / 12, 1 / 8) if off else (1 / 30, 1 / 15)
        start = max(0, end - max(2, int(steps * rng.uniform(low, high))))
        leaking[start:end] = off
        end, off = start, not off
    birth = a.each_step(steps)
    return partly_kept(birth, leaking, birth + rng.integers(1, 9, steps))


@kind("low priorities that starve")
def starving(steps, rng):
    """One job a step is served, the urgent first; of the others more come than there is time for."""
    items, urgent, other, heads = Items(), [], [], [0, 0]
    for step in range(steps):
        urgent += [items.add(step) for _ in range(rng.poisson(0.75))]
        other += [items.add(step, 2.0) for _ in range(rng.poisson(0.9))]
        for which, waiting in enumerate((urgent, other)):
            if heads[which] < len(waiting):
                items.end(waiting[heads[which]], step)
                heads[which] += 1
                break
    return items.draft(True)


@kind("large ones that the eviction passes over")
def large_escape(steps, rng):
    birth = a.counted(rng.poisson(4, steps))
    sizes = np.exp(rng.normal(0, 1, len(birth)))
    return partly_kept(birth, sizes > 4, birth + rng.integers(2, 16, len(birth)), sizes)


@kind("prefix pages of requests that were preempted")
def prefix_pages(steps, rng):
    """A request takes a page each second step and gives all back, but for the first half of 3 in 10."""
    items = Items()
    for start in a.counted(rng.poisson(0.8, steps)).tolist():
        life = int(rng.integers(6, 21))
        preempted = rng.random() < 0.3
        for at in range(0, life, 2):
            item = items.add(start + at, stays=preempted and at < life / 2)
            items.end(item, start + life)
    return items.partly()


@kind("storms of reconnects that leave some of twenty subscriptions")
def reconnects(steps, rng):
    storms = turns(steps, rng, 20, 0.35)
    birth = np.repeat(storms, 20)
    death = np.repeat(np.append(storms[1:], NEVER), 20)
    return partly_kept(birth, rng.random(len(birth)) < 0.3, death, events=storms)


@kind("compiled once for each length, and lengths drift")
def compiled(steps, rng):
    when = a.each_step(steps, 4)
    lengths = np.round(0.4 * when + rng.normal(0, 4, len(when))).astype(np.int64)
    return kept(a.first_uses(lengths, when))


@kind("a rate limit by address, pruned when the address returns")
def passers_by(steps, rng):
    """Fifteen regulars' stamps go at their first request ten steps later; a quarter never come again."""
    birth = a.each_step(steps, 2)
    address = rng.integers(0, 15, len(birth))
    once = rng.random(len(birth)) < 0.25
    death = np.full(len(birth), NEVER)
    for which in range(15):
        mine = np.flatnonzero((address == which) & ~once)
        death[mine] = a.until_next(birth[mine] + 10, birth[mine])
    return partly_kept(birth, once, death)


@kind("segments merged four to one, and none dropped")
def merged(steps, rng):
    """Size-tiered compaction: four of a tier give way to one as large as all, less three hundredths."""
    items, tiers = Items(), {}
    for step in range(steps):
        tier, size = 0, float(rng.uniform(0.5, 1.5))
        while True:
            tiers.setdefault(tier, []).append(items.add(step, size))
            if len(tiers[tier]) < 4:
                break
            for item in tiers[tier]:
                items.end(item, step)
            size = 0.97 * sum(items.size[item] for item in tiers[tier])
            tiers[tier], tier = [], tier + 1
    return items.draft(True)


@kind("the janitor's thread dies")
def janitor(steps, rng):
    """Entries expire after up to 25 steps; once the thread that drops them has died, none does."""
    onset = int(rng.uniform(0.2, 0.38) * steps)
    birth = a.counted(rng.poisson(1.2, steps))
    death = birth + rng.integers(5, 26, len(birth))
    return partly_kept(birth, death >= onset, death, onset=onset)


@kind("new warnings, fewer in time, to a floor")
def warnings(steps, rng):
    rate = 0.5 + 1.2 * np.exp(-np.arange(steps) / (steps / 8))
    return kept(a.counted(rng.poisson(rate)))


@kind("outages whose letters are drained but for the dead ones")
def outages(steps, rng):
    """While a service is out, three letters a step wait; then four a step are sent, but a third never is."""
    items = Items()
    starts = turns(steps, rng, 16, 0.4)
    out = np.zeros(steps, bool)
    for start in starts.tolist():
        end = start + int(rng.integers(2, max(4, steps // 60)))
        out[start:end] = True
        sent = 0
        for step in range(start, min(end, steps)):
            for _ in range(1 + rng.poisson(2)):
                dead = rng.random() < 1 / 3
                items.end(items.add(step, stays=dead), end + sent // 4)
                sent += not dead
    for step in np.flatnonzero(~out).tolist():
        items.end(items.add(step), step + int(rng.integers(1, 4)))
    return items.partly(events=starts)


@kind("the lowest score goes, in half of the steps")
def lowest_goes(steps, rng):
    """A replay memory that was to have thirty places; one comes each step."""
    items, scores = Items(), []
    for step in range(steps):
        heapq.heappush(scores, (rng.random(), items.add(step)))
        if len(scores) > min(30, steps // 8) and rng.random() < 0.5:
            items.end(heapq.heappop(scores)[1], step)
    return items.draft(True)
