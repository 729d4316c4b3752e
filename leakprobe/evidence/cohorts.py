"""Who survives and who dies: what the live counts and the survivors of one site say, as a few numbers.

Two accounts of what is kept.  The *survivors'*: those that are older than any item that is known to have died.  The *floor's*:
the lowest live count at u and later is what was never given back after u, whoever makes it up; it sees a backlog whose old items
die.  Both are a row of rises in time, and the same is asked of both: when they began, whether they go on as they did, and
whether what was lost before had stood as long.
"""

import dataclasses
import math

from leakprobe.judge import thresholds as th
from leakprobe.model.history import LAG, History, Spans


@dataclasses.dataclass(frozen=True, slots=True)
class Rises:
    """What is kept, as it came: ``amounts`` at ``times`` (middles of spans of ``width`` steps) between ``first`` and ``last``."""

    first: float
    last: float
    width: float
    times: tuple[float, ...]
    amounts: tuple[float, ...]

    def since(self, number: int) -> "Rises":
        first = self.times[number] - self.width / 2
        return dataclasses.replace(self, first=first, times=self.times[number:], amounts=self.amounts[number:])


@dataclasses.dataclass(frozen=True, slots=True)
class Loss:
    """A fall of the live count: when, how much, and for how many steps the oldest level that it took had stood."""

    mark: float
    size: float
    age: float


@dataclasses.dataclass(frozen=True, slots=True)
class Account:
    """What the rules ask of rises.  ``exposure``: steps from the onset to the end of the account."""

    onset: float
    exposure: float
    events: int
    effective: float  # events of even amount that would tell as much
    rise: float
    centroid: float  # mean time of the rise, as a share of the exposure: steady 1/2
    exponent: float  # of a rise like time ** exponent: steady 1
    end_gap: float  # steps since the last rise
    longest_gap: float  # between two rises
    is_stopped: bool
    losses: int  # ramps before the onset that were lost
    longest_loss: float  # the longest of them, in steps


def floor_of(history: History) -> list[float]:
    """The floor at the first mark of each span and, last, at the present mark."""
    lowest, values = history.live, [history.live]
    for low in reversed(history.spans.lows):
        lowest = min(lowest, low)
        values.append(lowest)
    values.reverse()
    return values


def rises_of_floor(history: History) -> Rises:
    spans, values = history.spans, floor_of(history)
    rising = [i for i in range(1, len(values)) if values[i] > values[i - 1]]
    return Rises(
        spans.first,
        history.step,
        spans.width,
        tuple(min(history.step, spans.first + (i - 0.5) * spans.width) for i in rising),
        tuple(values[i] - values[i - 1] for i in rising),
    )


def rises_of_survivors(history: History, age: float) -> Rises:
    """Survivors by birth step of those older than ``age`` steps and younger than the warm-up."""
    width = max(1, history.spans.width // 4)
    first, last = history.warmup, history.step - max(age, LAG)
    bins: dict[int, float] = {}
    for begin, end, count, _ in history.survivors.rows:
        if begin >= first and end < last:
            number = (begin - first) // width
            bins[number] = bins.get(number, 0) + count
    return Rises(
        first, last, width, tuple(first + (i + 0.5) * width for i in bins), tuple(bins.values())
    )


def oldest_death(history: History) -> float:
    """The most steps that an item is known to have lived before it died between two scans; 0 if none did."""
    scans = [*history.earlier, history.survivors]
    oldest = 0.0
    for before, after in zip(scans, scans[1:]):
        alive = {row[0]: row[2] for row in after.rows}
        for first, last, count, _ in before.rows:
            if first >= history.warmup and alive.get(first, 0) < count:
                oldest = max(oldest, before.step - last - 1)
                break
    return oldest


def is_unlike(gap: float, events: float, span: float, risk: float) -> bool:
    """True if ``events`` in ``span`` make a gap without one unlikely: (span / (span + gap)) ** events, the predictive
    probability of a Poisson process whose rate is known from them only (Lomax)."""
    return gap > 0 and span > 0 and events * math.log(span / (span + gap)) < math.log(risk)


def begin_of(rises: Rises) -> int:
    """The number of the rise that growth began with: the one behind the last gap that the rhythm after it can't explain."""
    begin, times, w = 0, rises.times, rises.width
    before = rises.first - w / 2
    while begin < len(times):
        points = [before, *times[begin:]] if begin == 0 else times[begin:]
        gaps = [b - a for a, b in zip(points, points[1:])]
        if not gaps:
            break
        at = max(range(len(gaps)), key=lambda i: (gaps[i], i))
        rest = max([w, *gaps[:at], *gaps[at + 1 :]])
        first = points[at + 1]
        number = times.index(first)
        gap = gaps[at] - w
        if gaps[at] < th.LEAST_GAP or gaps[at] <= th.GAP_FACTOR * rest:
            break
        if not is_unlike(gap, len(times) - number, rises.last - first + w, th.GAP_RISK) or number == begin == 0 and before is None:
            break
        if begin == number == 0:
            before = first - w
            if gaps[at] == w:
                break
            begin = 0
            return _again(rises, times, w)
        begin = number
    return begin


def _again(rises, times, w):
    begin = 0
    while begin < len(times) - 1:
        points = times[begin:]
        gaps = [b - a for a, b in zip(points, points[1:])]
        at = max(range(len(gaps)), key=lambda i: (gaps[i], i))
        rest = max([w, *gaps[:at], *gaps[at + 1 :]])
        if gaps[at] < th.LEAST_GAP or gaps[at] <= th.GAP_FACTOR * rest:
            break
        if not is_unlike(gaps[at] - w, len(points) - at - 1, rises.last - points[at + 1] + w, th.GAP_RISK):
            break
        begin += at + 1
    return begin


def losses_of(spans: Spans, until: float) -> list[Loss]:
    """Falls of the live count before the mark ``until``: each level that was reached in one span and lost in a later one."""
    losses: list[Loss] = []
    tops: list[tuple[float, int]] = []  # (height, the span it was reached in), both rising
    for i, (low, high) in enumerate(zip(spans.lows, spans.highs)):
        mark = spans.first + i * spans.width
        if mark > until:
            break
        if tops and tops[-1][0] > low:
            size, since = tops[-1][0] - low, i
            while tops and tops[-1][0] > low:
                since = tops.pop()[1]
            losses.append(Loss(mark, size, (i - since) * spans.width))
            if low > (tops[-1][0] if tops else 0):
                tops.append((low, since))
        if not tops or high > tops[-1][0]:
            tops.append((high, i))
    return losses


def exponent_of(times, weights, exposure: float, width: float) -> float:
    """Crow's estimate of b where the rise goes like time ** b (L. H. Crow, 1974; MIL-HDBK-189): 1 / mean of log(exposure / time)."""
    total = sum(weights)
    mean = sum(w * math.log(exposure / max(t, 0.25 * width)) for t, w in zip(times, weights)) / total
    return 1 / mean if mean > 0 else math.inf


def account_of(history: History, rises: Rises) -> Account | None:
    """None if nothing is kept."""
    if not rises.times:
        return None
    begin = begin_of(rises)
    here = rises.since(begin)
    times, amounts, w = here.times, here.amounts, here.width
    events, rise = len(times), sum(amounts)
    spacing = (here.last - here.first) / events
    is_from_start = begin == 0 and here.first <= rises.first + 2 * spacing
    onset = rises.first if is_from_start else max(rises.first, here.first - spacing + w)
    exposure = max(1.0, here.last - onset)
    since = [t - onset for t in times]
    gaps = [b - a for a, b in zip(times, times[1:])] or [exposure]
    end_gap = max(0.0, here.last - times[-1] - w / 2)
    effective = rise * rise / sum(a * a for a in amounts)
    lost = [x for x in losses_of(history.spans, onset) if x.size >= th.LEAST_LOSS and x.age > 0]
    largest = max((x.size for x in lost), default=0)
    lost = [x for x in lost if x.size >= 0.5 * largest]
    return Account(
        onset=onset,
        exposure=exposure,
        events=events,
        effective=effective,
        rise=rise,
        centroid=sum(t * a for t, a in zip(since, amounts)) / rise / exposure,
        exponent=exponent_of(since, amounts, exposure, w),
        end_gap=end_gap,
        longest_gap=max(gaps),
        is_stopped=end_gap >= th.LEAST_END
        and end_gap > th.GAP_FACTOR * max(w, max(gaps))
        and is_unlike(end_gap, events, times[-1] - times[0] + w, th.STOP_RISK),
        losses=len(lost),
        longest_loss=max((x.age for x in lost), default=0.0),
    )


def lift(history: History, onset: float) -> float:
    """How far the lowest count of the last third since the onset lies above the highest of the first third."""
    spans = history.spans
    third = (history.step - onset) / 3
    early = [h for i, h in enumerate(spans.highs) if onset <= spans.first + i * spans.width < onset + third]
    late = [x for i, x in enumerate(spans.lows) if spans.first + i * spans.width >= history.step - third]
    return min([history.live, *late]) - max(early, default=0)


def floor_share(history: History, rises: Rises, onset: float) -> float:
    """The floor's rise in the last half since the onset, as a share of what the survivors born in it say."""
    spans, values = history.spans, floor_of(history)
    middle = (onset + rises.last) / 2
    kept = sum(a for t, a in zip(rises.times, rises.amounts) if t >= middle)
    at = min(len(values) - 1, max(0, math.ceil((middle - spans.first) / spans.width)))
    return (values[-1] - values[at]) / kept if kept else 1.0


def died(history: History) -> bool:
    return sum(history.spans.births) > history.live - history.spans.lows[0]
