"""Kinds of turnover as uneven as the growth beside them, and written the same way."""

from collections import OrderedDict

import numpy as np

from benchmarks.rhythms import arrivals as a
from benchmarks.rhythms.loop import NEVER, Draft, Kind, Part
from benchmarks.rhythms.uneven_growing import wander
from benchmarks.rhythms.unseen_items import Items, kind_into, turning, turns

KINDS: list[Kind] = []
kind = kind_into(KINDS, grows=False)


@kind("uploads of Pareto sizes, held for as long as they are large")
def uploads(steps, rng):
    birth = a.counted(rng.poisson(1.5, steps))
    sizes = np.minimum(100, 1 + rng.pareto(1.2, len(birth)))
    return turning(birth, birth + np.ceil(np.minimum(sizes, steps / 15)), sizes)


@kind("forty places, leased for heavy-tailed times")
def leased(steps, rng):
    """Who finds no place goes away."""
    items, ends = Items(), np.zeros(0)
    for step in range(steps):
        ends = ends[ends > step]
        for _ in range(rng.poisson(5)):
            if len(ends) < 40:
                end = step + int(2 * (1 + rng.pareto(1.1)))
                items.end(items.add(step), end)
                ends = np.append(ends, end)
    return items.draft(False)


@kind("admitted to twenty-four places only if asked for more often")
def admission(steps, rng):
    """A new entry replaces the stalest if its key was met more often, and goes at once if not."""
    items, of, met = Items(), OrderedDict(), {}
    for at, (key, step) in enumerate(zip(*(x.tolist() for x in a.zipf_keys(steps, rng, 3, 300, 0.9)))):
        if at % 240 == 239:
            met = {k: n / 2 for k, n in met.items()}
        met[key] = met.get(key, 0) + 1
        if key in of:
            of.move_to_end(key)
            continue
        item = items.add(step)
        if len(of) == 24:
            stalest = next(iter(of))
            if met[key] <= met.get(stalest, 0):
                items.end(item, step)
                of.move_to_end(stalest)
                continue
            items.end(of.pop(stalest), step)
        of[key] = item
    return items.draft(False)


@kind("earliest deadline first, and the late ones dropped")
def deadlines(steps, rng):
    items, waiting = Items(), []
    for step in range(steps):
        for _ in range(rng.poisson(1.6)):
            waiting.append((step + int(rng.integers(5, 26)), items.add(step)))
        waiting.sort()
        while waiting and waiting[0][0] <= step:
            items.end(waiting.pop(0)[1], step)
        if waiting:
            items.end(waiting.pop(0)[1], step)
    return items.draft(False)


@kind("six of each of eight classes, some rare, by reservoir")
def stratified(steps, rng):
    items, places, seen = Items(), [[] for _ in range(8)], [0] * 8
    for label, step in zip(*(x.tolist() for x in a.zipf_keys(steps, rng, 3, 8, 1.0))):
        seen[label] += 1
        item, mine = items.add(step), places[label]
        if len(mine) < 6:
            mine.append(item)
            continue
        at = int(rng.integers(seen[label]))
        if at < 6:
            items.end(mine[at], step)
            mine[at] = item
        else:
            items.end(item, step)
    return items.draft(False)


@kind("sawtooth of n/14 to n/6, each tooth at its own rate")
def uneven_teeth(steps, rng):
    ends = a.renewals(steps, lambda: steps * rng.uniform(1 / 14, 1 / 6), max(3, steps // 12))
    rates = 2 * np.exp(rng.normal(0, 0.6, len(ends) + 1))
    tooth = np.searchsorted(ends, np.arange(steps))
    birth = a.counted(rng.poisson(rates[tooth]))
    return turning(birth, a.until_next(birth, ends))


@kind("batches by a budget of tokens")
def token_budget(steps, rng):
    """Many short ones or few long ones, for two steps."""
    lengths = np.clip(np.exp(rng.normal(4, 0.8, steps)), 6, 512)
    counts = np.clip(256 // lengths, 1, 40).astype(np.int64)
    birth = np.repeat(a.each_step(steps), counts)
    return turning(birth, birth + 2.0, lengths[birth])


@kind("batch size warmed up over three tenths, then level")
def warm_up(steps, rng):
    ramp = np.minimum(1, (np.arange(steps) + 1) / (0.3 * steps))
    birth = a.counted(np.round(12 * ramp + rng.uniform(-1, 1, steps)))
    return turning(birth, birth + 3.0)


@kind("a window lengthened by four stages, the last before three tenths")
def stages(steps, rng):
    ends = np.array([0.08, 0.17, 0.27]) * steps * rng.uniform(0.9, 1.05)
    lengths = np.maximum(2, np.array([0.02, 0.04, 0.07, 0.1]) * steps)
    birth = a.counted(rng.poisson(1.5, steps))
    return turning(birth, birth + np.round(lengths[np.searchsorted(ends, birth)]))


@kind("log-normal lives under a load that wanders")
def random_load(steps, rng):
    load = 3 * np.exp(0.4 * wander(steps, rng, steps / 25))
    birth = a.counted(rng.poisson(load))
    return turning(birth, birth + np.ceil(np.exp(rng.normal(1.8, 0.9, len(birth)))))


@kind("a load that falls to a quarter")
def falling_load(steps, rng):
    birth = a.counted(rng.poisson(np.linspace(6, 1.5, steps)))
    return turning(birth, birth + rng.geometric(1 / 12, len(birth)))


@kind("shuffle buffers, filled in the first third of an epoch and drained in the last")
def shuffle_buffers(steps, rng):
    """Epochs of n/14 to n/7."""
    items, start = Items(), 0
    while start < steps:
        epoch = max(6, round(steps * rng.uniform(1 / 14, 1 / 7)))
        for step in range(start, min(steps, start + epoch // 3)):
            for _ in range(3):
                items.end(items.add(step), start + int(rng.integers(2 * epoch // 3, epoch)))
        start += epoch
    return items.draft(False)


@kind("an arena for each of sixteen workers, made when all others are busy")
def arenas(steps, rng):
    """Beside what the jobs themselves hold; jobs that find sixteen busy go away."""
    items, ends, arenas_made = Items(), np.zeros(0), 0
    for step in range(steps):
        ends = ends[ends > step]
        for _ in range(rng.poisson(1.8)):
            if len(ends) == 16:
                continue
            end = step + int(rng.geometric(0.1))
            ends = np.append(ends, end)
            items.end(items.add(step), end)
            if len(ends) > arenas_made:
                arenas_made += 1
                items.add(step, float(rng.uniform(2, 8)))
    return items.draft(False)


@kind("candidates of simulated annealing, the last twenty-five accepted tabu")
def annealing(steps, rng):
    items, tabu = Items(), []
    for step in range(steps):
        heat = 2 * 0.05 ** (step / steps)
        for _ in range(2):
            item = items.add(step)
            if rng.random() < np.exp(-rng.exponential() / heat):
                tabu.append(item)
                if len(tabu) > 25:
                    items.end(tabu.pop(0), step)
            else:
                items.end(item, step)
    return items.draft(False)


@kind("eight beams, whose ancestors live as long as a descendant")
def beams(steps, rng):
    """A text ends after 20 to 60 steps, and all goes."""
    items, parent, children, beam, live, left = Items(), {}, {}, [], set(), 0
    for step in range(steps):
        if left == 0:
            for item in live:
                items.end(item, step)
            parent, children, beam, live, left = {}, {}, [], set(), int(rng.integers(20, 61))
        chosen = rng.choice(len(beam), 8, p=weights_of(rng, len(beam))).tolist() if beam else []
        old, beam = beam, []
        for n in range(8):
            item = items.add(step)
            live.add(item)
            beam.append(item)
            if chosen:
                parent[item] = old[chosen[n]]
                children[parent[item]] = children.get(parent[item], 0) + 1
        for item in old:
            node = item
            while node is not None and not children.get(node):
                items.end(node, step)
                live.discard(node)
                node = parent.get(node)
                if node is not None:
                    children[node] -= 1
        left -= 1
    return items.draft(False)


def weights_of(rng, count: int) -> np.ndarray:
    weights = np.exp(rng.normal(0, 1, count))
    return weights / weights.sum()


@kind("reclaimed at random from a high watermark of n/8 to half of it")
def watermarks(steps, rng):
    items, live, high = Items(), [], max(20, steps // 8)
    for step in range(steps):
        live += [items.add(step) for _ in range(rng.poisson(2))]
        if len(live) >= high:
            order = rng.permutation(len(live)).tolist()
            for at in order[high // 2 :]:
                items.end(live[at], step)
            live = [live[at] for at in order[: high // 2]]
    return items.draft(False)


@kind("in flight by a window that grows by one and halves at a loss")
def congestion(steps, rng):
    items, ends, window = Items(), np.zeros(0), 4.0
    for step in range(steps):
        ends = ends[ends > step]
        while len(ends) < int(window):
            end = step + int(rng.integers(3, 6))
            items.end(items.add(step), end)
            ends = np.append(ends, end)
        window = max(2.0, window / 2) if rng.random() < window / 150 else min(24.0, window + 0.5)
    return items.draft(False)


@kind("replicas scaled by a load that is known late")
def autoscaled(steps, rng):
    """Hutchinson's equation: the number swings about thirty for ever, in periods of some forty steps."""
    levels = [5.0] * 10
    for _ in range(steps):
        more = 0.21 * levels[-1] * (1 - levels[-10] / 30)
        levels.append(max(2.0, levels[-1] + more + rng.normal(0, 0.5)))
    items, live = Items(), []
    for step, level in enumerate(levels[10:]):
        while len(live) < round(level):
            live.append(items.add(step))
        while len(live) > round(level):
            items.end(live.pop(int(rng.integers(len(live)))), step)
    return items.draft(False)


@kind("cleared with a probability that goes with what is there")
def hazard(steps, rng):
    """About each twelfth of the run."""
    items, live = Items(), []
    for step in range(steps):
        live += [items.add(step) for _ in range(rng.poisson(2))]
        if rng.random() < len(live) / (steps / 12) ** 2:
            for item in live:
                items.end(item, step)
            live = []
    return items.draft(False)


@kind("flash crowds of Pareto numbers")
def flash_crowds(steps, rng):
    when = turns(steps, rng, 14, 0.6)
    numbers = np.minimum(150, 10 * (1 + rng.pareto(1.3, len(when)))).astype(np.int64)
    crowd = np.repeat(when, numbers)
    few = a.counted(rng.poisson(1, steps))
    birth = np.append(crowd, few)
    stay = np.append(rng.exponential(2 + steps / 80, len(crowd)), rng.exponential(3, len(few)))
    return turning(birth, birth + np.ceil(stay))


@kind("the five latest snapshots, each fifty times a batch")
def snapshots(steps, rng):
    when = turns(steps, rng, 40, 0.3)
    death = np.append(when[5:].astype(float), [NEVER] * 5)[: len(when)]
    big = np.repeat(when, 4)
    small = a.each_step(steps, 2)
    return Draft(
        (
            Part(big, np.repeat(death, 4), sizes=50 * np.exp(rng.normal(0, 0.3, len(big))), growing=False),
            Part(small, small + rng.integers(1, 4, len(small)), growing=False),
        )
    )


@kind("forty particles, resampled when their weights degenerate")
def particles(steps, rng):
    items, live = Items(), []
    when = set(a.renewals(steps, lambda: rng.integers(3, 13), 4).tolist())
    live = [items.add(0) for _ in range(40)]
    for step in range(steps):
        if step not in when:
            continue
        chosen = set(rng.integers(0, 40, 40).tolist())
        for at in range(40):
            if at not in chosen:
                items.end(live[at], step)
                live[at] = items.add(step, float(rng.uniform(0.8, 1.2)))
    return items.draft(False)
