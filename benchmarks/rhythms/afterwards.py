"""python -m benchmarks.rhythms.afterwards: kinds that were written once a model was done, to see how it does.

They are no part of kinds.py, so that the held-out kinds stay what they were; the first result of each model
stands in model.md.  Who tunes on them writes others.
"""

import argparse

import numpy as np

from benchmarks.rhythms import arrivals as a
from benchmarks.rhythms import sizes, uneven_growing, uneven_turnover, unseen_growing, unseen_turnover
from benchmarks.rhythms.deciders.model import MODEL
from benchmarks.rhythms.loop import NEVER, Draft, Kind, Part, make_loop
from benchmarks.rhythms.measure import Outcome, measure
from benchmarks.rhythms.summary import wilson
from benchmarks.rhythms.unseen_items import partly_kept, turning

KINDS: list[Kind] = []


def kind(name: str, grows: bool):
    """Enter a function (steps, rng) -> Draft as a kind."""

    def enter(make):
        KINDS.append(Kind(name, grows, "afterwards", False, make))
        return make

    return enter


# What grows.


@kind("three closures an epoch of 10 to 22 steps", True)
def closures(steps, rng):
    return Draft((Part(np.repeat(a.renewals(steps, lambda: rng.integers(10, 23), 6), 3)),))


@kind("an eighth of all requests fails and is kept", True)
def failures(steps, rng):
    birth = a.counted(rng.poisson(2, steps))
    return partly_kept(birth, rng.random(len(birth)) < 1 / 8, birth + rng.integers(2, 7, len(birth)))


@kind("a queue that is drained of its older half now and then", True)
def half_drained(steps, rng):
    """Each 25 steps 15 go, the oldest first, and one comes a step."""
    birth, services = a.each_step(steps), np.zeros(steps)
    services[24::25] = 15
    return Draft((Part(birth, a.queue(birth, services)),))


@kind("outputs of the validation, 3 of 12 steps", True)
def validation(steps, rng):
    birth = np.repeat(a.with_phase(steps, 12, (9, 10, 11)), 4)
    return Draft((Part(birth),), events=birth[birth % 12 == 9])


@kind("one of five connections is never closed", True)
def connections(steps, rng):
    birth = a.counted(rng.poisson(0.8, steps))
    return partly_kept(birth, rng.random(len(birth)) < 0.2, birth + rng.geometric(1 / 15, len(birth)))


@kind("twice as much after three fifths of the run", True)
def doubled(steps, rng):
    return Draft((Part(a.counted(rng.poisson(np.where(np.arange(steps) < 0.6 * steps, 1, 2)))),))


@kind("behind a cache that met its keys at random", True)
def behind_coupons(steps, rng):
    onset = int(0.4 * steps)
    met = a.first_uses(rng.integers(0, max(3, steps // 25), steps), a.each_step(steps))
    leak = Part(onset + a.at_random(steps - onset, rng, 0.5))
    return Draft((Part(met[met < onset], growing=False), leak), onset=onset)


@kind("two of three, and six more at times", True)
def at_times_more(steps, rng):
    some = a.at_random(steps, rng, 2 / 3)
    return Draft((Part(np.sort(np.append(some, np.repeat(a.at_random(steps, rng, 0.05), 6)))),))


# What turns over.


@kind("a table of sessions of 5 to 40 steps", False)
def sessions(steps, rng):
    birth = a.counted(rng.poisson(0.5, steps))
    return turning(birth, birth + rng.integers(5, 41, len(birth)))


@kind("words of a text, twelve a step", False)
def words(steps, rng):
    return turning(a.first_uses(*a.zipf_keys(steps, rng, 12, 600, 1.05)))


@kind("the last 30 steps of what comes in bursts", False)
def last_steps(steps, rng):
    birth = np.repeat(a.renewals(steps, lambda: rng.integers(3, 16)), 5)
    return turning(birth, birth + 30.0)


@kind("two generations of forty", False)
def generations(steps, rng):
    """Once forty are in the younger one, the older one goes and the younger takes its place."""
    birth = a.counted(rng.poisson(1.2, steps))
    number = np.arange(len(birth)) // 40
    ends = np.append(birth[40::40].astype(float), [NEVER, NEVER])
    return turning(birth, ends[np.minimum(number + 1, len(ends) - 1)])


@kind("cleared each fourth step, and flushed each 37th", False)
def accumulated(steps, rng):
    birth = a.each_step(steps, 2)
    often = a.until_next(birth, range(3, steps, 4))
    rarely = a.until_next(birth, range(36, steps, 37))
    return turning(birth, np.where(np.arange(2 * steps) % 2, often, rarely))


@kind("a level that is drawn back to forty", False)
def drawn_back(steps, rng):
    level, births, gone = 40, np.zeros(steps, np.int64), np.zeros(steps, np.int64)
    births[0] = 40
    for step in range(1, steps):
        births[step] = rng.poisson(3)
        gone[step] = min(level, rng.poisson(3 * level / 40))
        level += births[step] - gone[step]
    birth = a.counted(births)
    return turning(birth, a.queue(birth, gone))


@kind("lives of 12, lengthened by half of all uses", False)
def lengthened(steps, rng):
    birth = a.each_step(steps)
    return turning(birth, birth + rng.geometric(1 / 12, steps) * rng.choice((1, 2), steps))


@kind("the fifty best of random scores", False)
def best_fifty(steps, rng):
    death, best = np.full(steps, NEVER), []
    for step, score in enumerate(rng.random(steps).tolist()):
        best.append((score, step))
        if len(best) > min(50, steps // 4):
            worst = min(best)
            best.remove(worst)
            death[worst[1]] = step
    return turning(a.each_step(steps), death)


def row(of: Kind, outcomes: list[Outcome]) -> str:
    due = [o for o in outcomes if o.due]
    at = " ".join(
        f"{sum(o.told for o in due if o.steps == n)}/{sum(o.steps == n for o in due)}"
        for n in sorted({o.steps for o in outcomes})
    )
    right = sum(o.told == o.grows for o in due)
    low, high = wilson(right, len(due))
    what = "growth" if of.grows else "turnover"
    share = right / max(1, len(due))
    return f"| {what} | {of.name} | {at} | {share:.3f} ({low:.3f} to {high:.3f}) |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, nargs="*", default=[100, 300, 1_000])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--set", choices=("afterwards", "unseen", "uneven", "sizes", "all"), default="all")
    args = parser.parse_args()
    seeds = range(args.first_seed, args.first_seed + args.seeds)
    print(f"| | kind | found at {' / '.join(map(str, args.steps))} | right |\n| --- | --- | --- | --- |")
    unseen = [*unseen_growing.KINDS, *unseen_turnover.KINDS]
    uneven = [*uneven_growing.KINDS, *uneven_turnover.KINDS]
    sets = {"afterwards": KINDS, "unseen": unseen, "uneven": uneven, "sizes": sizes.KINDS}
    for each in sets.get(args.set) or [kind for kinds in sets.values() for kind in kinds]:
        outcomes = [measure(make_loop(each, n, seed), MODEL) for n in args.steps for seed in seeds]
        print(row(each, outcomes), flush=True)


if __name__ == "__main__":
    main()
