"""Kinds of growth that none of the benchmark's sources names: how other programs arrive, keep, vary, rest and
let go.
"""

import numpy as np

from benchmarks.rhythms import arrivals as a
from benchmarks.rhythms.loop import NEVER, Draft, Kind, Part

KINDS: list[Kind] = []


def kind(name: str, pattern: str):
    """Enter a function (steps, rng) -> Draft as a kind."""

    def enter(make):
        KINDS.append(Kind(name, True, pattern, False, make))
        return make

    return enter


def kept(birth, **truth) -> Draft:
    return Draft((Part(birth),), **truth)


# How they arrive.


@kind("arrivals by day and night", "arrivals")
def day_and_night(steps, rng):
    period = rng.uniform(20, 60)
    rate = 1 + np.cos(2 * np.pi * (np.arange(steps) / period + rng.random()))
    return kept(a.counted(rng.poisson(rate)))


@kind("five steps on, two off, in eights", "arrivals")
def weekends(steps, rng):
    return kept(np.flatnonzero(np.arange(steps) // 8 % 7 < 5))


@kind("clumps of geometric size", "arrivals")
def clumps(steps, rng):
    here = rng.random(steps) < 0.15
    return kept(a.counted(here * rng.geometric(0.2, steps)))


@kind("gaps with a heavy tail", "arrivals")
def heavy_gaps(steps, rng):
    return kept(a.renewals(steps, lambda: min(steps / 8, 1 + rng.pareto(1.5))))


@kind("errors that cause errors", "arrivals")
def self_exciting(steps, rng):
    """A Hawkes process: each event raises the rate by 0.15, which fades over 5 steps."""
    counts, excited = np.zeros(steps, np.int64), 0.0
    for step in range(steps):
        counts[step] = rng.poisson(0.2 + excited)
        excited = 0.8 * excited + 0.15 * counts[step]
    return kept(a.counted(counts))


@kind("two states in turns", "arrivals")
def two_states(steps, rng):
    on, _ = a.on_and_off(steps, lambda: rng.geometric(1 / 12), lambda: rng.geometric(1 / 12))
    return kept(on)


@kind("a step in each epoch of uneven length", "arrivals")
def uneven_epochs(steps, rng):
    return kept(a.renewals(steps, lambda: rng.integers(12, 37), 15))


@kind("epochs that get longer", "arrivals")
def longer_epochs(steps, rng):
    lengths = iter(range(4, 10 * steps))
    return kept(np.repeat(a.renewals(steps, lambda: next(lengths), 4), 3))


@kind("chunks of 32 when the last is used up", "arrivals")
def chunks(steps, rng):
    used = np.cumsum(rng.poisson(4, steps)) // 32
    return kept(np.repeat(np.flatnonzero(np.diff(used, prepend=-1)), 32))


@kind("batched by a queue, every 4th step", "arrivals")
def batched(steps, rng):
    birth = a.at_random(steps, rng, 0.6)
    return kept(np.sort(birth // 4 * 4 + 3))


@kind("twelve to sixteen times in the run", "arrivals")
def few_times(steps, rng):
    period = steps / rng.uniform(12, 16)
    turns = (np.arange(0.5, steps / period) * period).astype(np.int64)
    return kept(np.repeat(turns, 8), events=turns)


@kind("a thread every 15 steps leaves four", "arrivals")
def threads(steps, rng):
    return kept(np.repeat(a.with_phase(steps, 15, [3]), 4))


# What they keep.


@kind("one in a hundred of 200 a step", "beside turnover")
def few_of_many(steps, rng):
    birth = a.each_step(steps, 40 if steps > 1000 else 200)
    stays = rng.random(len(birth)) < 0.01
    return Draft((Part(birth, np.where(stays, NEVER, birth), growing=stays),))


@kind("nine of ten are kept", "beside turnover")
def most_are_kept(steps, rng):
    birth = a.each_step(steps)
    stays = rng.random(steps) < 0.9
    return Draft((Part(birth, np.where(stays, NEVER, birth + 1), growing=stays),))


@kind("one of eight is forgotten when a batch is taken apart", "beside turnover")
def staggered(steps, rng):
    birth = a.each_step(steps, 8)
    place = np.arange(8 * steps) % 8
    return Draft((Part(birth, np.where(place == 7, NEVER, birth + 1.0 + place), growing=place == 7),))


@kind("lives of 20, one in ten for good", "beside turnover")
def pinned_some(steps, rng):
    birth = a.each_step(steps, 2)
    stays = rng.random(len(birth)) < 0.1
    return Draft(
        (Part(birth, np.where(stays, NEVER, birth + rng.geometric(1 / 20, len(birth))), growing=stays),)
    )


@kind("epochs of 50 leave a twentieth", "beside turnover")
def epochs_leave_some(steps, rng):
    birth = a.each_step(steps)
    stays = rng.random(steps) < 0.05
    return Draft(
        (Part(birth, np.where(stays, NEVER, a.until_next(birth, range(49, steps, 50))), growing=stays),)
    )


@kind("a flush that leaves the three newest for ever", "beside turnover")
def flush_misses(steps, rng):
    birth = a.each_step(steps)
    flushed = a.until_next(birth, range(39, steps, 40))
    stays = (birth % 40 >= 37) & (flushed < NEVER)
    return Draft((Part(birth, np.where(stays, NEVER, flushed), growing=stays),))


@kind("sessions that leave one record each", "beside turnover")
def sessions(steps, rng):
    """Ten sessions at a time of 10 to 50 steps with six items each; one item of each stays."""
    starts = np.sort(np.concatenate([a.renewals(steps, lambda: rng.integers(10, 51)) for _ in range(10)]))
    birth = np.repeat(starts, 6)
    ends = np.repeat(starts + rng.integers(10, 51, len(starts)), 6)
    stays = np.arange(len(birth)) % 6 == 0
    return Draft((Part(birth, np.where(stays, NEVER, ends), growing=stays),))


@kind("half of each epoch's is dropped", "deaths")
def half_is_dropped(steps, rng):
    birth = a.each_step(steps)
    goes = rng.random(steps) < 0.5
    return Draft(
        (Part(birth, np.where(goes, a.until_next(birth, range(49, steps, 50)), NEVER), growing=~goes),)
    )


# How they vary.


@kind("the rate trebles half-way", "trend")
def trebles(steps, rng):
    return kept(a.counted(rng.poisson(np.where(np.arange(steps) < steps / 2, 1, 3))))


@kind("the rate falls to a third half-way", "trend")
def falls(steps, rng):
    return kept(a.counted(rng.poisson(np.where(np.arange(steps) < steps / 2, 3, 1))))


@kind("doubles each sixth of the run", "trend")
def doubles(steps, rng):
    return kept(a.counted(rng.poisson(0.5 * 2 ** (6 * np.arange(steps) / steps))))


@kind("items get larger", "sizes")
def larger_items(steps, rng):
    birth = a.at_random(steps, rng, 0.5)
    return Draft((Part(birth, sizes=20.0 + birth),))


@kind("one of 30 items is 50 times as large", "sizes")
def few_large(steps, rng):
    return Draft((Part(a.each_step(steps), sizes=np.where(rng.random(steps) < 1 / 30, 50.0, 1.0)),))


# How they rest.


@kind("rests for a third of the run, then goes on", "late")
def rests(steps, rng):
    """An early stretch, a rest, and growth to the end: the rate is that since the rest."""
    onset = int(rng.uniform(0.45, 0.55) * steps)
    return kept(np.append(np.arange(int(0.15 * steps)), np.arange(onset, steps)), onset=onset)


@kind("released once, then from zero again", "late")
def reloaded(steps, rng):
    onset = int(rng.uniform(0.2, 0.4) * steps)
    birth = a.each_step(steps)
    return Draft((Part(birth, np.where(birth < onset, onset - 1.0, NEVER)),), onset=onset)


@kind("set up once, then every other step", "late")
def after_set_up(steps, rng):
    return Draft((Part(np.zeros(200), growing=False), Part(a.at_random(steps, rng, 0.5))))


@kind("behind a cache that filled", "late")
def behind_a_fill(steps, rng):
    onset = int(0.5 * steps)
    filled = Part(np.arange(int(0.1 * steps)), growing=False)
    return Draft((filled, Part(np.arange(onset, steps))), onset=onset)


# How they let go.


@kind("a queue that is served too slowly", "deaths")
def slow_service(steps, rng):
    birth = a.counted(rng.poisson(1.6, steps))
    return Draft((Part(birth, a.queue(birth, rng.poisson(1.0, steps))),))


@kind("a stack that is pushed more than popped", "deaths")
def undo_stack(steps, rng):
    pushed = rng.random(steps) < 0.68
    birth = np.flatnonzero(pushed)
    return Draft((Part(birth, a.queue(birth, ~pushed, newest_first=True)),))


@kind("the last half of all history", "deaths")
def last_half(steps, rng):
    birth = a.each_step(steps)
    return Draft((Part(birth, 2.0 * birth + 2),))


@kind("a window that is widened now and then", "deaths")
def widened_window(steps, rng):
    """A ring whose size goes up by one each five steps."""
    birth = a.each_step(steps)
    return Draft((Part(birth, np.ceil((birth + 20) * 1.25)),))


# What is replaced.


@kind("buffer enlarged by an eighth when full", "replaced")
def enlarged_in_stairs(steps, rng):
    """Appended to each step; its one block gives way to a larger one at an eighth more (as a list's does)."""
    sizes, starts, size = [], [], 16.0
    used = np.cumsum(rng.uniform(0.5, 1.5, steps))
    for step in range(steps):
        if not starts or used[step] > size:
            size = max(used[step], size) * 1.125
            starts.append(step)
            sizes.append(size)
    birth = np.array(starts)
    return Draft((Part(birth, np.append(birth[1:], NEVER), sizes=np.array(sizes), holder="enlarged"),))


@kind("array appended to at each tenth step", "replaced")
def appended(steps, rng):
    birth = a.with_phase(steps, 10, [0])
    death = np.append(birth[1:], NEVER)
    return Draft((Part(birth, death, sizes=1.0 + np.arange(len(birth)), holder="enlarged"),))


# Several sites.


@kind("beside a ring of another line", "several sites")
def ring_elsewhere(steps, rng):
    ring = a.each_step(steps)
    return Draft(
        (Part(a.at_random(steps, rng, 0.5)), Part(ring, ring + 25.0, growing=False, site="b", holder="ring"))
    )


@kind("records of three lines in one holder", "several sites")
def records(steps, rng):
    birth = a.at_random(steps, rng, 0.6)
    return Draft(tuple(Part(birth, site=site) for site in "abc"))


@kind("two leaks of two lines", "several sites")
def two_leaks(steps, rng):
    first = Part(a.at_random(steps, rng, 0.5))
    return Draft((first, Part(a.with_phase(steps, 4, [1]), site="b", holder="other")), findings=2)
