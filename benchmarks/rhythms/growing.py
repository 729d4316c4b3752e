"""Kinds of growth that the benchmark's sources name: the audit of the first version, the design, and the
first simulation.
"""

import numpy as np

from benchmarks.rhythms import arrivals as a
from benchmarks.rhythms.loop import NEVER, Draft, Kind, Part

KINDS: list[Kind] = []


def kind(name: str, pattern: str = "irregular"):
    """Enter a function (steps, rng) -> Draft as a kind."""

    def enter(make):
        KINDS.append(Kind(name, True, pattern, True, make))
        return make

    return enter


def kept(birth, **truth) -> Draft:
    """Everything that is born is kept."""
    return Draft((Part(birth),), **truth)


def enter_kept(name: str, pattern: str, births) -> None:
    kind(name, pattern)(lambda steps, rng: kept(births(steps, rng)))


enter_kept("each step", "each step", lambda n, rng: a.each_step(n))
for share in (0.7, 0.5, 0.3, 0.1, 0.03):
    enter_kept(f"with probability {share:g}", "irregular", lambda n, rng, p=share: a.at_random(n, rng, p))
enter_kept("every 10th step", "regular", lambda n, rng: a.with_phase(n, 10, [0]))
enter_kept("every 25th step", "regular", lambda n, rng: a.with_phase(n, 25, [0]))


def by_phase(period: int, phases):
    """Kept at some steps of each period; a period is one event."""

    def make(steps, rng):
        birth = a.with_phase(steps, period, phases)
        return kept(birth, events=birth[birth % period == min(phases)])

    return make


kind("2 of 5 steps", "regular")(by_phase(5, (0, 2)))
kind("first 3 of 20 steps", "regular")(by_phase(20, range(3)))
kind("last of each epoch of 50", "once an epoch")(by_phase(50, [49]))
kind("evaluation, 10 of 60 steps", "once an epoch")(by_phase(60, range(50, 60)))


@kind("episodes of 5 to 40")
def episodes(steps, rng):
    """Each step adds to an episode; an episode is kept whole, as the one that runs is."""
    ends = a.renewals(steps, lambda: rng.integers(5, 41), int(rng.integers(5, 41)))
    return kept(a.each_step(steps), events=ends)


@kind("bursts of 20")
def bursts(steps, rng):
    return kept(np.repeat(a.renewals(steps, lambda: rng.integers(10, 31), 10), 20))


def late(share: float):
    def make(steps, rng):
        onset = int(share * steps)
        return kept(np.arange(onset, steps), onset=onset)

    return make


kind("late, after 1/3", "late")(late(1 / 3))
kind("late, after 2/3", "late")(late(2 / 3))
kind("late, after 9/10", "late")(late(0.9))


@kind("accelerating", "trend")
def accelerating(steps, rng):
    return kept(a.counted(1 + np.arange(steps) // (10 if steps <= 1000 else 100)))


@kind("slowing as 1/sqrt(t)", "trend")
def slowing(steps, rng):
    return kept(np.flatnonzero(rng.random(steps) < np.minimum(1, 5 / np.sqrt(np.arange(steps) + 1))))


@kind("backlog, oldest first", "deaths")
def backlog_fifo(steps, rng):
    birth = a.each_step(steps, 2)
    return Draft((Part(birth, a.queue(birth, np.ones(steps))),))


@kind("backlog, newest first", "deaths")
def backlog_lifo(steps, rng):
    birth = a.each_step(steps, 2)
    death = np.where(np.arange(2 * steps) % 2, birth + 1.0, NEVER)
    return Draft((Part(birth, death, growing=death == NEVER),))


@kind("two born, one dies at random", "deaths")
def backlog_random(steps, rng):
    birth = a.each_step(steps, 2)
    death = np.full(2 * steps, NEVER)
    live: list[int] = []
    for step in range(steps):
        live += [2 * step, 2 * step + 1]
        at = int(rng.integers(len(live)))
        death[live[at]] = step
        live[at] = live[-1]
        live.pop()
    return Draft((Part(birth, death),))


def enlarged(growth: float):
    """One block gives way, each step, to a larger one that carries its content over."""

    def make(steps, rng):
        birth = a.each_step(steps)
        return Draft((Part(birth, birth + 1.0, sizes=growth + np.arange(steps), holder="enlarged"),))

    return make


kind("string enlarged each step", "replaced")(enlarged(1.0))
kind("key-value cache enlarged each step", "replaced")(enlarged(64.0))


@kind("beside a ring of the same line", "beside turnover")
def beside_a_ring(steps, rng):
    birth = a.each_step(steps)
    stays = rng.random(steps) < 0.4
    return Draft((Part(birth, np.where(stays, NEVER, birth + 30.0), growing=stays),))


@kind("sizes vary, log-normal", "sizes")
def noisy_sizes(steps, rng):
    return Draft((Part(a.each_step(steps), sizes=np.exp(rng.normal(0, 1.2, steps))),))


def beside_a_sawtooth(share_or_steps: float):
    def make(steps, rng):
        every = a.length(rng, share_or_steps, steps)
        churn = a.each_step(steps)
        cleared = a.until_next(churn, np.arange(every, steps, every))
        return Draft((Part(a.at_random(steps, rng, 0.5)), Part(churn, cleared, growing=False)))

    return make


kind("beside a sawtooth of 25", "beside turnover")(beside_a_sawtooth(25))
kind("beside a sawtooth of n/5", "beside turnover")(beside_a_sawtooth(0.2))
