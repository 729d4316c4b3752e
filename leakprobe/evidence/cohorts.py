"""Who survives and who dies: what the live counts and the survivors of one site say, as a few numbers.

Two accounts of what is kept.  The *survivors'*: those that are older than any item that is known to have died.  The *floor's*:
the lowest live count at u and later is what was never given back after u, whoever makes it up; it sees a backlog whose old items
die.  Both are a row of rises in time, and the same is asked of both: when they began, whether they go on as they did, and
whether what was lost before had stood as long.
"""

import dataclasses
import math

from leakprobe.judge import thresholds as th
from leakprobe.model.history import LAG, History, Spans, Survivors


@dataclasses.dataclass(frozen=True, slots=True)
class Rises:
    """What is kept, as it came: ``amounts`` at ``times`` (middles of spans of ``width`` steps) between ``first`` and ``last``."""

    first: float
    last: float
    width: float
    times: tuple[float, ...]
    amounts: tuple[float, ...]


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
    is_from_start: bool
    exposure: float
    events: int
    effective: float  # events of even amount that would tell as much (Kish)
    rise: float
    centroid: float  # mean time of the rise, as a share of the exposure: steady 1/2
    exponent: float  # of a rise like time ** exponent: steady 1
    end_gap: float  # steps since the last rise
    longest_gap: float  # between two rises
    span: float  # steps from the first rise to the last


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


def rises_of_survivors(history: History, age: float, first: int | None = None) -> Rises:
    """Survivors by birth step of those older than ``age`` steps and younger than the warm-up."""
    width = max(1, history.spans.width // 4)
    first = history.warmup if first is None else first
    last = history.step - max(age, LAG)
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
    return max((oldest_between(a, b, history.warmup) for a, b in zip(scans, scans[1:])), default=0.0)


def oldest_between(before: Survivors, after: Survivors, since: int) -> float:
    """The same of two scans, and of births since a step; rows of the later scan may put several of the earlier one's together."""
    rows, at = after.rows, 0
    was, last = 0, -1
    for first, end, count, _ in before.rows:
        if first < since:
            continue
        while at < len(rows) and rows[at][1] < first:
            if was > rows[at][2] and last >= rows[at][0]:
                return before.step - last - 1
            at, was = at + 1, 0
        if at == len(rows) or rows[at][0] > end:
            return before.step - end - 1
        was, last = was + count, end
    return before.step - last - 1 if at < len(rows) and was > rows[at][2] else 0.0


def is_unlike(gap: float, events: float, span: float, risk: float) -> bool:
    """True if ``events`` in ``span`` make a gap without one unlikely: (span / (span + gap)) ** events, the predictive
    probability of a Poisson process whose rate is known from them only (Lomax)."""
    return gap > 0 and span > 0 and events * math.log(span / (span + gap)) < math.log(risk)


def begin_of(rises: Rises) -> tuple[int, bool]:
    """(number of the rise that growth began with, True if that is the start): behind the last gap that the rhythm after it can't explain."""
    points, w = [rises.first - rises.width / 2, *rises.times], rises.width
    while len(points) > 2:
        gaps = [b - a for a, b in zip(points, points[1:])]
        at = max(range(len(gaps)), key=lambda i: (gaps[i], i))
        rest = max([w, *gaps[:at], *gaps[at + 1 :]])
        events, span = len(points) - at - 1, rises.last - points[at + 1] + w
        if (
            gaps[at] < th.LEAST_GAP
            or gaps[at] <= th.GAP_FACTOR * rest
            or not is_unlike(gaps[at] - w, events, span, th.GAP_RISK)
        ):
            break
        points = points[at + 1 :]
    is_from_start = len(points) > len(rises.times)
    return len(rises.times) - len(points) + is_from_start, is_from_start


def losses_of(spans: Spans, since: float, until: float) -> list[Loss]:
    """Falls of the live count between two marks: each level that was reached in one span and lost in a later one."""
    losses: list[Loss] = []
    tops: list[tuple[float, int]] = []  # (height, the span it was reached in), both rising
    for i, (low, high) in enumerate(zip(spans.lows, spans.highs)):
        mark = spans.first + i * spans.width
        if mark > until:
            break
        if tops and tops[-1][0] > low:
            size, reached = tops[-1][0] - low, i
            while tops and tops[-1][0] > low:
                reached = tops.pop()[1]
            if mark >= since:
                losses.append(Loss(mark, size, (i - reached) * spans.width))
            if low > (tops[-1][0] if tops else 0):
                tops.append((low, reached))
        if not tops or high > tops[-1][0]:
            tops.append((high, i))
    return losses


def great_losses(history: History, since: float, until: float) -> list[Loss]:
    lost = [x for x in losses_of(history.spans, since, until) if x.size >= th.LEAST_LOSS and x.age > 0]
    largest = max((x.size for x in lost), default=0)
    return [x for x in lost if x.size >= 0.5 * largest]


def exponent_of(times, weights, exposure: float, width: float) -> float:
    """Crow's estimate of b where the rise goes like time ** b (L. H. Crow, 1974; MIL-HDBK-189): 1 / mean of log(exposure / time)."""
    total = sum(weights)
    mean = sum(w * math.log(exposure / max(t, 0.25 * width)) for t, w in zip(times, weights)) / total
    return 1 / mean if mean > 0 else math.inf


def account_of(rises: Rises, onset: float | None = None) -> Account | None:
    """None if nothing is kept."""
    if not rises.times:
        return None
    begin, is_from_start = begin_of(rises)
    times, amounts, w = rises.times[begin:], rises.amounts[begin:], rises.width
    events, rise = len(times), sum(amounts)
    first = times[0] - w / 2
    spacing = (rises.last - first) / events
    onset = rises.first if is_from_start else max(rises.first, first - spacing + w)
    exposure = max(1.0, rises.last - onset)
    since = [t - onset for t in times]
    return Account(
        onset=onset,
        is_from_start=is_from_start,
        exposure=exposure,
        events=events,
        effective=rise * rise / sum(a * a for a in amounts),
        rise=rise,
        centroid=sum(t * a for t, a in zip(since, amounts)) / rise / exposure,
        exponent=exponent_of(since, amounts, exposure, w),
        end_gap=max(0.0, rises.last - times[-1] - w / 2),
        longest_gap=max([w, *(b - a for a, b in zip(times, times[1:]))]),
        span=times[-1] - times[0] + w,
    )


def climbs(history: History, onset: float) -> bool:
    """True if the live count climbs all the time since the onset, by more than it falls: of five parts of that time the lowest
    count of the third is above the highest of the first, and the lowest of the last above the highest of the third."""
    spans, length = history.spans, (history.step - onset) / 5
    parts: list[list[int]] = [[], [], [], [], []]
    for i in range(len(spans.lows)):
        part = int((spans.first + i * spans.width - onset) // length)
        if part >= 0:
            parts[min(4, part)].append(i)
    if not parts[0] or not parts[2]:
        return False
    first, third = (max(spans.highs[i] for i in parts[k]) for k in (0, 2))
    low = min(spans.lows[i] for i in parts[2])
    end = min([history.live, *(spans.lows[i] for i in parts[4])])
    return low > first and end > third


def floor_share(history: History, rises: Rises, onset: float) -> float:
    """The floor's rise in the last half since the onset, as a share of what the survivors born in it say."""
    spans, values = history.spans, floor_of(history)
    middle = (onset + rises.last) / 2
    kept = sum(a for t, a in zip(rises.times, rises.amounts) if t >= middle)
    at = min(len(values) - 1, max(0, math.ceil((middle - spans.first) / spans.width)))
    return (values[-1] - values[at]) / kept if kept else 1.0


def died(history: History) -> bool:
    return sum(history.spans.births) > history.live - history.spans.lows[0]
