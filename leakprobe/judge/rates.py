"""How fast it grows: bytes and items a step since the onset, with intervals."""

import dataclasses
import math

from leakprobe.evidence import cohorts, trends
from leakprobe.judge.cases import Case
from leakprobe.model.history import History, Survivors, judged_steps
from leakprobe.model.thresholds import DEVIATIONS, LAG, LEAST_EVENTS
from leakprobe.model.verdict import Rate


def born(survivors: Survivors, first: float, until: float) -> Survivors:
    """Those of them that were born at ``first`` or later and before ``until``."""
    return dataclasses.replace(survivors, rows=tuple(cohorts.between(survivors.rows, first, until)))


def of_survivors(case: Case, survivors: Survivors) -> tuple[Rate, float]:
    """(bytes, items) a step since the onset; the interval is that of births at random (a compound Poisson
    process).
    """
    account, history = case.account, case.history
    # What begins later may lie half a step before its onset; what the warm-up made is not counted.
    first = account.onset if account.is_from_start else account.onset - 1
    rows = cohorts.between(survivors.rows, first, history.step - max(case.age, LAG))
    sizes = [size for *_, size in rows]
    margin = DEVIATIONS * math.sqrt(sum(size * size for size in sizes)) / account.exposure
    value = sum(sizes) / account.exposure
    count = sum(count for _, _, count, _ in rows) / account.exposure
    return Rate(value, max(0.0, value - margin), value + margin), count


def of_all(rate: Rate, main: Survivors, others: Survivors, onset: float, until: float) -> Rate:
    """The rate of all that a holder keeps, from that of its main part: by the bytes of both that were born
    since the onset, and before ``until`` if these are enough for a verdict.
    """
    if len(born(main, onset - 1, until).rows) < LEAST_EVENTS:
        until = main.step
    kept = born(main, onset - 1, until).bytes
    return rate.times(born(others, onset - 1, until).bytes / kept if kept else 1.0)


def of_floor(case: Case, survivors: Survivors) -> tuple[Rate, float]:
    """(bytes, items) a step: the floor's rise at the mean size of what is alive of births since the onset.

    Where the survivors are a part of what the floor counts, they have their share of the rise.
    """
    history, account = case.history, case.account
    kept = born(survivors, account.onset, history.step)
    mean = kept.bytes / kept.count if kept.count else 0.0
    share = share_of_floor(history, survivors)
    items = account.rise * share / account.exposure
    margin = DEVIATIONS * items * mean / math.sqrt(account.effective)
    return Rate(items * mean, max(0.0, items * mean - margin), items * mean + margin), items


def share_of_floor(history: History, survivors: Survivors) -> float:
    """Which share of what the floor counts the survivors are: of a holder's part of a line by the births that
    a walk reads, those since the warm-up that are not the newest, and by what went since the last mark, as
    the rest of a line does with the loop.
    """
    line = history.facts.line
    if line is None:
        return min(1.0, survivors.count / history.live) if history.live else 1.0
    steps = judged_steps(history.warmup, history.step)
    part, whole = (born(s, steps.start, steps.stop).count for s in (survivors, line))
    whole += max(0, history.live - line.count)
    return min(1.0, part / whole) if whole else 1.0


def of_total(case: Case) -> Rate:
    """Units a step of a plain total: the slope of its lowest values since the onset, where it was read."""
    spans, onset = case.history.spans, case.account.onset
    points = [
        (spans.mark_of(i), low)
        for i, low in enumerate(spans.lows)
        if spans.mark_of(i) >= onset - 1 and i not in spans.unread
    ]
    found = trends.slope_of(points, DEVIATIONS)
    return found or Rate(case.account.rise / case.account.exposure, -math.inf, math.inf)
