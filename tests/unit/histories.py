"""Histories of one site, from the births and deaths of its items."""

import collections
import random

from leakprobe.model.history import Facts, History, Spans, Survivors

WARMUP = 5
NEVER = 1 << 40
#: Spans that a history is folded into.
MOST_SPANS = 64


def alive_at(items, mark):
    """The items (birth, death, size) that are alive at a mark: born in a step before it, and not freed before
    it.
    """
    return [item for item in items if item[0] < mark <= item[1]]


def scan_at(items, mark) -> Survivors:
    rows: dict = {}
    for birth, _, size in alive_at(items, mark):
        count, total = rows.get(birth, (0, 0))
        rows[birth] = (count + 1, total + size)
    return Survivors(mark, tuple((birth, birth, *rows[birth]) for birth in sorted(rows)))


def fold(values, first) -> Spans:
    """Spans of the values at the marks from ``first`` on."""
    width = 1
    while len(values) > width * MOST_SPANS:
        width += width
    parts = [values[i : i + width] for i in range(0, len(values), width)]
    return Spans(first, width, tuple(map(min, parts)), tuple(map(max, parts)))


def history_of(items, step, *, shift=0, epochs=(), facts=None, with_scans=True) -> History:
    """The history of items (birth, death, size) at the mark ``step``, with scans at growing distances before
    it; ``shift``: the step that the watch and its warm-up began at."""
    first = WARMUP + shift + 1
    changes: collections.Counter = collections.Counter()
    for birth, death, _ in items:
        changes[birth + 1] += 1
        changes[death + 1] -= 1
    live, now = [], 0
    for mark in range(step + 1):
        now += changes[mark]
        live.append(now)
    spans = fold(live[1 + shift :], 1 + shift).since(first)
    looks = look_steps(step, shift) if with_scans else [step]
    scans = [scan_at(items, mark) for mark in looks]
    sizes = tuple((s.step, sum(r[2] for r in s.rows), sum(r[3] for r in s.rows)) for s in scans)
    return History(
        step=step,
        warmup=WARMUP + shift,
        live=live[step],
        spans=spans,
        deaths=sum(first <= death + 1 <= step for _, death, _ in items),
        survivors=scans[-1] if with_scans else None,
        earlier=tuple(scans[-4:-1]) if with_scans else (),
        sizes=sizes if with_scans else (),
        epochs=tuple(epochs),
        facts=facts or Facts(),
    )


def look_steps(step, shift=0) -> list:
    """Marks of scans, each a fifth later than the one before."""
    found, mark = [], 12
    while mark + shift < step:
        found.append(mark + shift)
        mark = max(mark + 2, mark * 6 // 5)
    return [*found, step]


def leak(steps, *, share=1.0, since=0, size=100, seed=0) -> list:
    chance = random.Random(seed)
    return [(step, NEVER, size) for step in range(since, steps) if chance.random() < share]


def ring(steps, length, size=100) -> list:
    return [(step, step + length, size) for step in range(steps)]


def sawtooth(steps, clearings, size=100) -> list:
    """Items that live until the next clearing."""
    ends = [*sorted(clearings), NEVER]
    return [(step, next(end for end in ends if end >= step), size) for step in range(steps)]


def slots(steps, count, seed=0, size=100) -> list:
    """Each step's item takes a slot at random, and frees what lay there."""
    chance, items, taken = random.Random(seed), [], {}
    for step in range(steps):
        slot = chance.randrange(count)
        if slot in taken:
            items[taken[slot]] = (taken[slot], step, size)
        taken[slot] = step
        items.append((step, NEVER, size))
    return items


def keys_met(steps, keys, a_step, seed=0, size=100) -> list:
    """A cache that keeps each of ``keys`` keys when it is first met."""
    chance, seen, items = random.Random(seed), set(), []
    for step in range(steps):
        for _ in range(a_step):
            key = chance.randrange(keys)
            if key not in seen:
                seen.add(key)
                items.append((step, NEVER, size))
    return items
