"""Whether a plain number grows: the model of growth asked of its totals."""

import dataclasses
import itertools

from leakprobe.evidence.cohorts import floor_from
from leakprobe.evidence.readings import history_of_total
from leakprobe.evidence.series import Points, Series, residual_spread, since_release, usual_slope
from leakprobe.evidence.trends import slope_of
from leakprobe.judge.verdicts import judge
from leakprobe.model.bounds import MOST_POINTS, POINTS_TO_BELIEVE
from leakprobe.model.thresholds import DEVIATIONS, HALF, LAG, LEAST_RISES, LEAST_STEPS, LITTLE
from leakprobe.model.units import SHARE_DIGITS
from leakprobe.model.verdict import Judgement, Verdict


@dataclasses.dataclass(frozen=True)
class Rise:
    """A series that rises steadily: its slope, and the points that show it."""

    slope: float
    first: tuple[int, float]  # (step, value)
    last: tuple[int, float]
    rises: int  # of so many steps from point to point
    of: int
    spread: float  # the middle distance of the points from the line
    usual: float  # the middle one of the slopes from point to point, in which no jump is

    @property
    def total(self) -> float:
        return self.last[1] - self.first[1]

    @property
    def steady_total(self) -> float:
        """What rose at the slope, in which a single jump, such as that of a table of the interpreter which
        doubles, counts in part at most.
        """
        return self.came_at(self.slope)

    def came_at(self, rate: float) -> float:
        """What came between the two points at so much a step."""
        return rate * (self.last[0] - self.first[0])

    @property
    def confidence(self) -> float:
        return round(
            min(1 - LITTLE, self.rises / self.of * (1 - 1 / (1 + self.of / POINTS_TO_BELIEVE))), SHARE_DIGITS
        )


@dataclasses.dataclass(frozen=True)
class EarlyRise:
    """A series that each of its last ``readings`` found higher: too few, or over too few steps, for a
    verdict.
    """

    first: tuple[int, float]  # (step, value)
    last: tuple[int, float]
    readings: int

    @property
    def total(self) -> float:
        return self.last[1] - self.first[1]


def rise_since(series: Series, step: int, least: float) -> Rise | None:
    """That of the points from a step on.  Most marks ask for it in vain: then no point is copied."""
    ends = series.lowest_and_last_since(step)
    if ends is None or not rises_on_average(*ends, least):
        return None
    return steady_rise(series.since(step), least)


def steady_rise(points: Points, least: float) -> Rise | None:
    """The rise of a series by more than ``least`` a step, as the model of growth judges a plain total; else
    None.
    """
    points = since_release(points)
    judgement = judgement_of_total(points, least)
    if judgement is None:
        return None
    first, rate = points[0][0], judgement.bytes_per_step
    if judgement.verdict is not Verdict.LEAK or rate is None or rate.value < least:
        return None
    onset = max(first, judgement.onset or first)
    since: Points = [p for p in points if p[0] >= onset]
    if len(since) <= 1:
        *_, before, last = points
        since = [before, last]
    moves = [b[1] - a[1] for a, b in itertools.pairwise(since)]
    if is_a_jump(since, least):
        return None
    return Rise(
        rate.value,
        since[0],
        since[-1],
        sum(m > 0 for m in moves),
        len(moves),
        residual_spread(since, rate.value),
        usual_slope(since),
    )


def judgement_of_total(points: Points, least: float) -> Judgement | None:
    """That of a series that rose by ``least`` a step on average, which most don't; else None."""
    if len(points) < LEAST_STEPS or not rises_on_average(lowest_of(points), points[-1], least):
        return None
    return judge(history_of_total(points, points[0][0], MOST_POINTS))


def early_rise(points: Points, least: float, is_leak_open: bool = False) -> EarlyRise | None:
    """The rise at each of the last readings, by more than ``least`` a step also without its greatest jump, as
    a slope that chance does not make (see trends.slope_of), if the series has no verdict yet.

    ``is_leak_open``: that it grows is none, as a part of it may be known to be something else.
    """
    points = since_release(points)
    judgement = judgement_of_total(points, least)
    open_verdicts = (Verdict.TOO_EARLY, Verdict.LEAK)
    if judgement is None or judgement.verdict not in open_verdicts:
        return None
    if judgement.rate >= least and not is_leak_open:
        return None
    falls = (i for i in range(len(points) - 1, 0, -1) if points[i][1] <= points[i - 1][1])
    last = points[next(falls, 0) :]
    found = slope_of(last, DEVIATIONS)
    if len(last) <= LEAST_RISES or found is None or min(found.low, usual_slope(last)) < least:
        return None
    return EarlyRise(last[0], last[-1], len(last))


def is_a_jump(points: Points, least: float) -> bool:
    """True if a jump of the floor, which may lie between as many as LAG + 1 readings, makes the rise: without
    it less than half is left of ``least``, the bytes a step that count.  A library that is loaded at an
    epoch's end is no leak.
    """
    floor = floor_from([value for _, value in points])
    moves = sorted(after - before for before, after in itertools.pairwise(floor))
    return len(moves) > LAG + LAG and sum(moves[:-LAG]) < HALF * least * (points[-1][0] - points[0][0])


def shows_between(rise: Rise, exact: Points) -> bool:
    """True if points that are surer than those of the rise do not belie it: between two of them within it, or
    from the last one before it.  A fall between two of them, spread evenly, looks like a rise of the rest.
    """
    within = [p for p in exact if p[0] >= rise.first[0]]
    before = [p for p in exact if p[0] < rise.first[0]]
    known = within if len(within) > 1 else [*before[-1:], *within]
    if len(known) <= 1:
        return True
    steps = known[-1][0] - max(known[0][0], rise.first[0])
    return known[-1][1] - known[0][1] >= HALF * rise.slope * steps


def lowest_of(points: Points) -> tuple[int, float]:
    return min(points, key=lambda point: point[1])


def rises_on_average(lowest: tuple[int, float], last: tuple[int, float], least: float) -> bool:
    """False of most series, which need no verdict then: none that began at any time within could be
    greater.
    """
    steps, rise = last[0] - lowest[0], last[1] - lowest[1]
    return steps >= LEAST_STEPS - 1 and rise > 0 and rise >= least * LEAST_STEPS
