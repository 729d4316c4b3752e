"""A plain number, read mark by mark: a series of (step, value), and how one goes with another."""

import array
import bisect
import itertools
import math
import statistics
from collections.abc import MutableSequence, Sequence
from typing import Any, TypeVar

from leakprobe.model.bounds import MOST_POINTS, THINNING
from leakprobe.model.thresholds import AGREEING, HALF, LITTLE, NEARLY_ALL

#: (step, value).
Points = Sequence[tuple[int, float]]
#: A list or an array.
S = TypeVar("S", bound=MutableSequence[Any])


class Series:
    """(step, whole number), one a step, thinned when there are many; the first and the last are kept."""

    def __init__(self, points: Points = ()):
        # objects would grow the heap that is watched
        self._steps, self._values = (
            array.array("q", [x for x, _ in points]),
            array.array("q", [round(y) for _, y in points]),
        )

    def add(self, step: int, value: int) -> None:
        if self._steps and self._steps[-1] == step:
            self._values[-1] = value
            return
        del self._values[len(self._steps) :]  # of a mark that a signal cut short
        self._values.append(value)
        self._steps.append(step)
        if len(self._steps) > THINNING * MOST_POINTS:
            self._steps, self._values = map(every_second, (self._steps, self._values))

    def columns(self) -> "tuple[array.array[int], array.array[int]]":
        """The arrays that hold it."""
        return self._steps, self._values

    @property
    def points(self) -> list[tuple[int, int]]:
        return list(zip(self._steps, self._values))

    def since(self, step: int) -> list[tuple[int, int]]:
        first = bisect.bisect_left(self._steps, step)
        return list(zip(self._steps[first:], self._values[first:]))

    def lowest_and_last_since(self, step: int) -> tuple[tuple[int, int], tuple[int, int]] | None:
        """The lowest point from a step on, and the last; None without any."""
        first = bisect.bisect_left(self._steps, step)
        if first == len(self._steps):
            return None
        lowest = min(self._values[first:])
        return (self._steps[self._values.index(lowest, first)], lowest), (self._steps[-1], self._values[-1])

    def is_at(self, step: int) -> bool:
        """True if the last point is that of this step."""
        return bool(self._steps) and self._steps[-1] == step

    @property
    def end(self) -> tuple[int, int] | None:
        """The last point."""
        return (self._steps[-1], self._values[-1]) if self._steps else None

    @property
    def last(self) -> int:
        return self._values[-1] if self._values else 0


def every_second(points: S) -> S:
    """Every second of a list's or an array's points, first and last kept."""
    kept = points[:1]
    kept.extend(points[1:-1:THINNING])
    kept.extend(points[-1:])
    return kept  # type: ignore[return-value]  # a slice is of the same type


def residual_spread(points: Points, rate: float) -> float:
    """The median distance of the points from the line of this slope through their middle."""
    rests = [y - rate * x for x, y in points]
    middle = statistics.median(rests)
    return statistics.median(abs(r - middle) for r in rests)


def comes_with_new_sizes(points: Points, sizes: Points) -> bool:
    """True if a series rises where the count of sizes, read at the same steps, does, and rests where it
    rests.

    The steps where it rests show that shapes come again, and that the calls themselves leave nothing behind:
    there must be some of them, and nearly nothing in them: of the rise of a step that brings sizes, and of
    all of the rise, which a few such steps of the warm-up would outweigh.
    """
    count_at = dict(sizes)
    known = [p for p in points if p[0] in count_at]
    spans = {True: [0, 0.0], False: [0, 0.0]}  # by whether sizes were new: steps, rise
    for a, b in itertools.pairwise(known):
        span = spans[count_at[b[0]] > count_at[a[0]]]
        span[0] += b[0] - a[0]
        span[1] += b[1] - a[1]
    (steps, rise), (rests, rest) = spans[True], spans[False]
    return (
        rests >= max(AGREEING, LITTLE * (steps + rests))
        and rise > 0
        and rest <= (1 - NEARLY_ALL) * rise * min(1, rests / steps)
    )


def since_release(points: Points) -> Points:
    """The points since the last fall by far more than had come to be until then: it was there before."""
    begin, lowest, highest = 0, math.inf, -math.inf
    for i, (_, value) in enumerate(points):
        if highest - lowest < HALF * (highest - value):
            begin, lowest, highest = i, value, value
        lowest, highest = min(lowest, value), max(highest, value)
    return points[begin:]


def minus(points: Points, others: Points, least: float = math.inf) -> list[tuple[int, float]]:
    """The points less another series, only where that series is known: at its own points, and between two
    whose difference is that of its usual slope within ``least`` a step.
    """
    if not others:
        return list(points)
    known = {x for x, _ in others}
    even = usual_slope(others)
    jumps = [
        (x1, x2)
        for (x1, y1), (x2, y2) in itertools.pairwise(others)
        if abs(y2 - y1 - even * (x2 - x1)) > least * (x2 - x1)
    ]
    return [
        (x, y - between(others, x))
        for x, y in points
        if x in known
        or (others[0][0] <= x <= others[-1][0] and not any(begin < x < end for begin, end in jumps))
    ]


def usual_slope(points: Points) -> float:
    """The middle one of the slopes from point to point, of two the flatter: a jump is in one of them only."""
    pairs = itertools.pairwise(points)
    slopes = [(y2 - y1) / (x2 - x1) for (x1, y1), (x2, y2) in pairs if x2 > x1]
    if not slopes:
        return 0.0
    return min(statistics.median_low(slopes), statistics.median_high(slopes), key=abs)


def between(points: Points, x: float) -> float:
    """The value of a series at x, on the straight line between its neighbours."""
    for (x1, y1), (x2, y2) in itertools.pairwise(points):
        if x1 <= x <= x2:
            return y1 + (y2 - y1) * (x - x1) / (x2 - x1) if x2 > x1 else y2
    return points[-1][1]
