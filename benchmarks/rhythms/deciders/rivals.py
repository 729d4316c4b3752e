"""Deciders that stand for other tools: each is given more than its tool sees, every allocation and every
step.

- Scalene's leak score: at each new high-water mark of the footprint the last allocation is remembered, and
whether it is freed
  before the next one; Laplace's rule of succession over these trials (Berger, Stern and Pizzorno,
  "Triangulating Python Performance Issues with Scalene", OSDI 2023; scalene_leak_analysis.py of Scalene 1.5).
  Scalene itself samples by megabytes, and begins at 100 MB.
- A slope test on totals: Theil and Sen's slope of the live bytes with Sen's interval (Journal of the American
Statistical Association
  63, 1968), of at most SLOPE_POINTS marks.
- tracemalloc's diff of two snapshots: the live bytes as of now less those behind the warm-up, above a
threshold.
- Always: growth wherever anything is alive, so that the other numbers have a floor.
"""

import functools
import math

import numpy as np

from benchmarks.rhythms.history import History
from benchmarks.rhythms.loop import LIMIT, WARMUP
from benchmarks.rhythms.verdict import Answer, Decider, Verdict

#: Scalene reports a line whose expected leak is no less, and where the footprint keeps this share of what is
#: allocated.
LEAK_SCORE, GROWTH_SHARE = 0.95, 0.01
#: Marks that the slope is taken of.
SLOPE_POINTS = 32
#: The normal quantile of the slope's one-sided bound of 97.5 %.
SLOPE_Z = 1.959964


def average_rise(live_bytes: np.ndarray) -> float:
    """Bytes a step from the warm-up's end to now."""
    return float((live_bytes[-1] - live_bytes[WARMUP]) / max(1, len(live_bytes) - 1 - WARMUP))


def scalene(history: History) -> Verdict:
    events = history.events
    live = events.live_bytes
    before = np.maximum.accumulate(np.concatenate([[0.0], live[:-1]]))
    highs = np.flatnonzero(live > before)
    until = np.append(highs[1:], history.mark)
    allocs = len(highs)
    frees = int((events.last_freed[highs] <= until).sum())
    score = 1 - (frees + 1) / (allocs - frees + 2)
    kept = live[-1] / max(1.0, events.born_bytes.sum())
    found = score >= LEAK_SCORE and kept >= GROWTH_SHARE
    rate = max(average_rise(live), LIMIT + 1) if found else 0.0
    return Verdict(Answer.LEAK if found else Answer.TURNOVER, None, rate, statistics={"leak score": score})


@functools.cache
def pairs_of(count: int) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of all pairs of so many points."""
    return np.triu_indices(count, 1)


def sen_slope(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """(slope, its lower bound): the median of the slopes of all pairs, and their quantile by the variance of
    Kendall's S.
    """
    first, second = pairs_of(len(x))
    slopes = np.sort((y[second] - y[first]) / (x[second] - x[first]))
    n = len(x)
    _, ties = np.unique(y, return_counts=True)
    variance = (n * (n - 1) * (2 * n + 5) - (ties * (ties - 1) * (2 * ties + 5)).sum()) / 18
    rank = (len(slopes) - SLOPE_Z * math.sqrt(variance)) / 2
    middle = (slopes[(len(slopes) - 1) // 2] + slopes[len(slopes) // 2]) / 2
    return float(middle), float(slopes[max(0, math.floor(rank))])


def slope(history: History) -> Verdict:
    live = history.events.live_bytes[WARMUP:]
    if len(live) < 5:
        return Verdict(Answer.TOO_EARLY)
    count = min(SLOPE_POINTS, len(live))
    x = np.arange(count) * (len(live) - 1) // (count - 1)
    rate, low = sen_slope(x.astype(float), live[x])
    level = max(1.0, float(np.mean(live))) / len(live)
    found = low > LIMIT
    statistics = {"lower bound of the slope over the level": low / level}
    return Verdict(
        Answer.LEAK if found else Answer.TURNOVER, WARMUP, rate if found else 0.0, statistics=statistics
    )


def snapshots(history: History) -> Verdict:
    live = history.events.live_bytes
    rate = average_rise(live)
    found = rate > LIMIT
    relative = rate * len(live) / max(1.0, float(live.max()))
    statistics = {"difference over the peak": relative}
    return Verdict(Answer.LEAK if found else Answer.TURNOVER, WARMUP, max(rate, 0.0), statistics=statistics)


def always(history: History) -> Verdict:
    rate = max(average_rise(history.events.live_bytes), LIMIT + 1)
    return Verdict(Answer.LEAK if history.live else Answer.TURNOVER, WARMUP, rate)


SCALENE = Decider("Scalene's leak score", lambda: scalene, {"leak score": 1})
SLOPE = Decider("slope of totals", lambda: slope, {"lower bound of the slope over the level": 1})
SNAPSHOTS = Decider("two snapshots", lambda: snapshots, {"difference over the peak": 1})
ALWAYS = Decider("always", lambda: always)
