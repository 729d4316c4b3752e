"""How a plain number moves: one robust slope with its interval."""

import functools
import itertools
import math
import statistics
from collections.abc import Sequence

from leakprobe import _core
from leakprobe.model.bounds import MOST_POINTS
from leakprobe.model.facts import EVEN_VARIANCE, WALLACE_ABOVE, WALLACE_BELOW, WALLACE_FACTOR
from leakprobe.model.thresholds import HALF
from leakprobe.model.verdict import Rate

Point = tuple[float, float]


def slope_of(points: Sequence[Point], deviations: float) -> Rate | None:
    """Theil and Sen's slope of [(x, y), ...], and the interval from Kendall's tau at so many standard
    deviations.

    P. K. Sen, "Estimates of the regression coefficient based on Kendall's tau", Journal of the American
    Statistical Association 63, 1968.  None for fewer than three points, or if all have one x.  A side that
    the points can't bound is infinite.
    """
    points = thin(points)
    found = _core.theil_sen(points, deviations * kendall_deviation(len(points)))
    return Rate(*found) if found is not None else None


def slope(points: Sequence[Point]) -> float:
    """Theil and Sen's slope; 0 for fewer than two points."""
    if len(points) <= 1:
        return 0.0
    found = slope_of(points, 0)
    (x1, y1), (x2, y2) = points[0], points[-1]
    return found.value if found is not None else (y2 - y1) / (x2 - x1) if x2 != x1 else 0.0


def drifts(points: Sequence[Point], risk: float) -> bool:
    """True if a walk at random would rise like this less often than ``risk``.

    Student's t of the rises, each by the root of its steps ("The probable error of a mean", Biometrika 6,
    1908), as a normal deviate.
    """
    rises = [(b[0] - a[0], b[1] - a[1]) for a, b in itertools.pairwise(points)]
    steps, rise = sum(step for step, _ in rises), sum(more for _, more in rises)
    free = len(rises) - 1
    if free <= 0 or rise <= 0:
        return False
    rate = rise / steps
    apart = [more - rate * step for step, more in rises]
    spread = sum(each * each / step for each, (step, _) in zip(apart, rises)) / free
    if not spread:
        return True
    t2 = rise * rise / (steps * spread)
    few = (WALLACE_FACTOR * free + WALLACE_ABOVE) / (WALLACE_FACTOR * free + WALLACE_BELOW)
    deviate = few * math.sqrt(free * math.log1p(t2 / free))
    return deviate > -statistics.NormalDist().inv_cdf(risk)


@functools.cache
def kendall_deviation(n: int) -> float:
    """Standard deviation of Kendall's S of n values in random order.

    The k-th value's rank among the first k is even over 1 to k, and S moves by two for each place: sqrt(n (n
    - 1) (2 n + 5) / 18).
    """
    return math.sqrt(sum(EVEN_VARIANCE * (k * k - 1) for k in range(1, n + 1))) / HALF


def thin(points: Sequence[Point]) -> list[Point]:
    """At most MOST_POINTS of the points, first and last kept."""
    if len(points) <= MOST_POINTS:
        return list(points)
    stride = (len(points) - 1) / (MOST_POINTS - 1)
    return [points[round(i * stride)] for i in range(MOST_POINTS)]
