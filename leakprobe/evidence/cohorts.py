"""Who survives and who dies: what the live counts and the survivors of one site say, as a few numbers.

Two accounts of what is kept.  The *survivors'*: those that are older than any item that is known to have
died.  The *floor's*: the lowest live count at u and later is what was never given back after u, whoever makes
it up; it sees a backlog whose old items die. Both are a row of rises in time, and the same is asked of both:
when they began, whether they go on as they did, and whether what was lost before had stood as long.
"""

import bisect
import dataclasses
import itertools
import math
import statistics
from collections.abc import Iterator, Sequence

from leakprobe.evidence import shapes, trends
from leakprobe.model.facts import EVEN_VARIANCE
from leakprobe.model.history import History, Row, Spans, Survivors
from leakprobe.model.thresholds import (
    COMPARED,
    DEVIATIONS,
    FINENESS,
    GAP_FACTOR,
    HALF,
    LAG,
    LEAST_REST,
    LEAST_RISES,
    LITTLE,
    OUTLIVE,
    PARTS,
    RISK,
)

#: Stands behind the last row of a scan.
NO_ROW: Row = (math.inf, math.inf, math.inf, 0)


@dataclasses.dataclass(frozen=True, slots=True)
class Rises:
    """What is kept, as it came: ``amounts`` at ``times`` (middles of spans of ``width`` steps) between
    ``first`` and ``last``.
    """

    first: float
    last: float
    width: int
    times: tuple[float, ...]
    amounts: tuple[float, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Loss:
    """A fall of the live count: when, and how much.

    ``age``: for how many steps the oldest level that it took had stood.  ``ramp``: how many an even ramp
    would have taken to what was lost, twice the time for which the middle level had stood: the oldest one may
    have been reached by a chance long ago.  ``height``: how far above its lowest value until then the count
    had come.
    """

    mark: float
    size: float
    age: float
    ramp: float
    height: float


@dataclasses.dataclass(frozen=True, slots=True)
class Account:
    """What the rules ask of rises, since the onset; steps and items.

    ``effective``: events of even amount that would tell as much (Kish, Survey Sampling, 1965).  ``centroid``:
    the mean time of the rise as a share of the exposure, 1/2 where it is steady (the statistic of Laplace's
    trend test).  ``ahead``: the steps for which the last rise brought as much as they would have, at once: a
    queue that is emptied at the end.  ``exponent``: b where the rise goes like time ** b, 1 where it is
    steady (L. H. Crow, "Reliability analysis for complex, repairable systems", 1974).  ``is_rhythm`` and
    ``is_power``: whether the rises keep a rhythm, and whether they slow down all the time
    (evidence/shapes.py).
    """

    onset: float
    is_from_start: bool
    exposure: float
    events: int
    effective: float
    rise: float
    centroid: float
    exponent: float
    end_gap: float
    longest_gap: float
    span: float
    ahead: float = 0
    is_rhythm: bool = False
    is_power: bool = False

    @property
    def slowness(self) -> float:
        """Standard deviations by which the centroid, or the exponent, lies below that of steady growth.

        1 / exponent is the mean of so many exponential times of mean 1; its root has an even spread.
        """
        if not self.exponent:
            return 0.0
        by_centroid = (HALF - self.centroid) / math.sqrt(EVEN_VARIANCE)
        by_exponent = (math.sqrt(1 / self.exponent) - 1) / HALF
        return max(by_centroid, by_exponent) * math.sqrt(self.effective)


#: The account of what has kept nothing.
NOTHING = Account(0, True, 0, 0, 0, 0, 0, 0, 0, 0, 0)


def floor_of(history: History) -> list[float]:
    """The floor at the first mark of each span and, last, at the present mark."""
    return floor_from([*history.spans.lows, history.live])


def floor_from(values: Sequence[float]) -> list[float]:
    """The lowest of each value and those after it."""
    return list(itertools.accumulate(reversed(values), min))[::-1]


def rises_of_floor(history: History) -> Rises:
    spans, values = history.spans, floor_of(history)
    rising = [i for i in range(1, len(values)) if values[i] > values[i - 1]]
    times = tuple(min(history.step, spans.mark_of(i) - HALF * spans.width) for i in rising)
    amounts = tuple(values[i] - values[i - 1] for i in rising)
    return Rises(spans.first, history.step, spans.width, times, amounts)


def rises_of_survivors(survivors: Survivors, spans: Spans, first: int, age: float) -> Rises:
    """Survivors by birth step: those born at ``first`` or later, and older than ``age`` steps and LAG."""
    width = max(1, spans.width // FINENESS)
    last = survivors.step - max(age, LAG)
    bins: dict[float, float] = {}
    for begin, end, count, _ in survivors.rows:
        if begin >= first and end < last:
            number = (begin - first) // width
            bins[number] = bins.get(number, 0) + count
    times = tuple(first + (number + HALF) * width for number in bins)
    return Rises(first, last, width, times, tuple(bins.values()))


def oldest_death(history: History) -> float:
    """The most steps that an item is known to have lived before it died between two scans; 0 if none did."""
    scans = history.scans
    return max((oldest_between(a, b, history.warmup) for a, b in itertools.pairwise(scans)), default=0)


def oldest_between(before: Survivors, after: Survivors, since: int) -> float:
    """The same of two scans, and of births since a step.

    One death alone does not count where it is less than the share LITTLE of the births between the scans.  A
    dict that grows lets go of its table, which the line that fills the dict has made, whenever the table is
    half as large as the next one: at most once between two scans.
    """
    deaths = list(deaths_between(before, after, since))
    births = sum(count for first, _, count, _ in after.rows if first >= before.step)
    if sum(count for _, count in deaths) <= min(1, LITTLE * births):
        return 0
    return deaths[0][0]


def mean_life(history: History) -> float:
    """The steps that what was freed had lived, on average, at least: what was alive beyond the floor, as of
    the lowest mark of each span, over the rate at which it was freed (J. D. C. Little, "A proof for the
    queuing formula L = lambda W", Operations Research 9, 1961).
    """
    if not history.deaths:
        return 0
    above = sum(low - floor for low, floor in zip(history.spans.lows, floor_of(history), strict=False))
    return above * history.spans.width / history.deaths


def longest_life(history: History) -> float:
    """The most steps that something is known to have lived before it died, by the scans or by the counts."""
    return max(history.age, oldest_death(history), mean_life(history))


def has_old_death(history: History) -> bool:
    """True if anything older than LAG is known to have died between two scans, also what does not count."""
    pairs = itertools.pairwise(history.scans)
    return any(age > LAG for a, b in pairs for age, _ in deaths_between(a, b, history.warmup))


def deaths_between(before: Survivors, after: Survivors, since: int) -> Iterator[tuple[float, float]]:
    """(how long they had lived at the first scan, how many died until the second), the oldest first; a row of
    the later scan may put several of the earlier one together.
    """
    later = iter(after.rows)
    start, stop, left, _ = next(later, NO_ROW)
    was: float = 0
    last: float = -1
    for first, end, count, _ in before.rows:
        if first < since:
            continue
        while stop < first:
            if was > left:
                yield before.step - last - 1, was - left
            was, (start, stop, left, _) = 0, next(later, NO_ROW)
        if start > end:
            yield before.step - end - 1, count
            continue
        was, last = was + count, end
    if was > left:
        yield before.step - last - 1, was - left


def bytes_rise_less(history: History, since: float) -> bool:
    """True if the bytes alive at the scans since a mark kept within half of what more items of middle size
    would have brought: there are more of them, but they are smaller.

    The middle size, and all of what the bytes moved by, as a few great ones would hide a rise of the rest.
    """
    sizes = [each for each in history.sizes if each[0] >= since]
    if len(sizes) < LEAST_RISES or history.survivors is None:
        return False
    middle = statistics.median(size / count for *_, count, size in history.survivors.rows)
    moved = max(size for *_, size in sizes) - min(size for *_, size in sizes)
    return moved < HALF * (sizes[-1][1] - sizes[0][1]) * middle


def mean_age(survivors: Survivors) -> tuple[float, float]:
    """(how many are alive, their mean age in steps)."""
    total = survivors.count
    ages = sum(count * (survivors.step - last) for _, last, count, _ in survivors.rows)
    return total, ages / total if total else 0


def is_unlike(gap: float, events: float, span: float, width: float, risk: float) -> bool:
    """True if ``events`` in ``span`` make a gap without one less likely than ``risk``.

    Of all ways to lay the events into spans of ``width``, at most one in each, it is the share of those that
    leave the gap's free: C(n - g, k) / C(n, k), the hypergeometric chance of no hit. For few events in many
    spans that is the predictive probability of a Poisson process, (span / (span + gap)) ** events (Lomax).
    """
    if gap <= 0 or span <= 0:
        return False
    n, free = (span + gap) / width + 1, span / width + 1
    events = min(events, span / width)
    logs = math.lgamma(free) - math.lgamma(free - events) - math.lgamma(n) + math.lgamma(n - events)
    return logs < math.log(risk)


def is_ended(account: Account, width: float, factor: float) -> bool:
    """True if nothing was added of late, for more than ``factor`` times the longest rest and for longer than
    chance leaves out.
    """
    rest = account.end_gap - account.ahead
    return rest > factor * account.longest_gap and is_unlike(rest, account.events, account.span, width, RISK)


def is_within(spans: Spans, mark: float, rise: float) -> bool:
    """True if from a mark on the count kept within half of a rise."""
    at = [i for i in range(len(spans.lows)) if spans.mark_of(i) >= mark]
    return bool(at) and max(spans.highs[at[0] :]) - min(spans.lows[at[0] :]) < HALF * rise


def fell_by_half(spans: Spans) -> bool:
    """True if the count was once, after it had been highest, no more than half of that."""
    highest = max(spans.highs, default=0)
    lows = spans.lows[spans.highs.index(highest) + 1 :] if highest else ()
    return bool(lows) and min(lows) <= HALF * highest


def falls_short(spans: Spans, mark: float, rise: float) -> bool:
    """True if from a mark on the count never got half of a rise above what it was in the span before,
    whatever fell.
    """
    at = next((i for i in range(1, len(spans.highs)) if spans.mark_of(i) >= mark), None)
    return at is not None and max(spans.highs[at:]) - spans.highs[at - 1] < HALF * rise


def begin_of(rises: Rises) -> tuple[int, bool]:
    """(number of the rise that growth began with, True if that is the start of it all).

    It begins behind the last gap that the rhythm after it can't explain; little rises don't end a gap.
    """
    least = LITTLE * middle_of(rises.amounts)
    great = [time for time, amount in zip(rises.times, rises.amounts) if amount >= least]
    points, width = [rises.first - HALF * rises.width, *great], rises.width
    while len(points) > 1:
        gaps = [b - a for a, b in itertools.pairwise(points)]
        at = max(range(len(gaps)), key=lambda i: (gaps[i], i))
        rest = max([width, *gaps[:at], *gaps[at + 1 :]])
        events, span = len(gaps) - at, rises.last - points[at + 1] + width
        is_long = gaps[at] >= LEAST_REST and gaps[at] > GAP_FACTOR * rest
        if not is_long or not is_unlike(gaps[at] - width, events, span, width, RISK):
            break
        points = points[at + 1 :]
    is_from_start = len(points) > len(great)
    return (0 if is_from_start else rises.times.index(points[0])), is_from_start


def middle_of(amounts: Sequence[float]) -> float:
    """The amount that half of the sum is at or above: a weighted median."""
    left = HALF * sum(amounts)
    for amount in sorted(amounts, reverse=True):
        left -= amount
        if left <= 0:
            return amount
    return 0.0


def since(rises: Rises, mark: float) -> Rises:
    """The rises from a mark on."""
    kept = [(time, amount) for time, amount in zip(rises.times, rises.amounts) if time > mark]
    return dataclasses.replace(
        rises, first=mark, times=tuple(time for time, _ in kept), amounts=tuple(amount for _, amount in kept)
    )


def account_of(rises: Rises) -> Account:
    if not rises.times:
        return NOTHING
    begin, is_from_start = begin_of(rises)
    times, amounts, width = rises.times[begin:], rises.amounts[begin:], rises.width
    first, rise = times[0] - HALF * width, sum(amounts)
    spacing = (rises.last - first) / len(times)
    onset = rises.first if is_from_start else max(rises.first, first - spacing + width)
    exposure = max(1, rises.last - onset)
    waits = [max(time - onset, HALF) for time in times]
    logs = sum(amount * math.log(max(1, exposure / wait)) for wait, amount in zip(waits, amounts))
    effective = rise * rise / sum(a * a for a in amounts)
    exponent = rise / logs if logs else math.inf
    shares = [(wait + HALF * width) / exposure for wait in waits]
    span = times[-1] - times[0] + width
    return Account(
        onset=onset,
        is_from_start=is_from_start,
        exposure=exposure,
        events=len(times),
        effective=effective,
        rise=rise,
        centroid=sum(t * a for t, a in zip(waits, amounts)) / (rise * exposure),
        exponent=exponent,
        end_gap=max(0, rises.last - times[-1] - HALF * width),
        longest_gap=max([width, *(b - a for a, b in itertools.pairwise(times))]),
        span=span,
        ahead=max(0, amounts[-1] / rise * span - span / len(times)),
        is_rhythm=shapes.is_rhythm(times, width),
        is_power=shapes.is_power(shares, amounts, exponent, effective),
    )


def losses_of(spans: Spans, since: float, until: float) -> list[Loss]:
    """Falls of the live count between two marks: each level that was reached in one span and lost in a later
    one.
    """
    losses: list[Loss] = []
    lowest = math.inf
    tops: list[tuple[float, int]] = []  # (height, the span it was reached in), both rising
    for i, (low, high) in enumerate(zip(spans.lows, spans.highs)):
        if spans.mark_of(i) > until:
            break
        if tops and tops[-1][0] > low:
            size, height_then, reached, middle = tops[-1][0] - low, tops[-1][0] - min(lowest, low), i, i
            half = HALF * (tops[-1][0] + low)
            while tops and tops[-1][0] > low:
                height, reached = tops.pop()
                middle = reached if height >= half else middle
            if spans.mark_of(i) >= since:
                age, ramp = (i - reached) * spans.width, (i - middle) * spans.width / HALF
                losses.append(Loss(spans.mark_of(i), size, age, ramp, height_then))
            tops.append((low, reached))
        lowest = min(lowest, low)
        if not tops or high > tops[-1][0]:
            tops.append((high, i))
    return losses


def great(losses: Sequence[Loss]) -> list[Loss]:
    """Those at least half as great as the greatest: the rest may be noise on them."""
    greatest = max((loss.size for loss in losses), default=0)
    return [loss for loss in losses if loss.size >= HALF * greatest]


def climbs(history: History, onset: float) -> bool:
    """True if the total climbs all the time since the onset, to where it never was before.

    That time is cut in PARTS.  Of a site, both the lowest and the highest count must rise from each of those
    COMPARED, which have rests between them, to the next; the lowest from the last part but one to the last by
    half of their mean rise, as the level of a store that is full wanders; and the last must lie above the
    highest count of the first by OUTLIVE times the most that was ever lost: as much may be lost again.  A
    plain total has the noise of all that is in it: both its lowest and its upper level must rise from part to
    part by more than chance has it, and the lowest of the last lie above the upper level of the first.
    """
    spans, length = history.spans, (history.step - onset) / PARTS
    lows: list[list[float]] = [[] for _ in range(PARTS)]
    highs: list[list[float]] = [[] for _ in range(PARTS)]
    for i, (low, high) in enumerate(zip(spans.lows, spans.highs)):
        if i in spans.unread:
            continue
        part = min(PARTS - 1, int((spans.mark_of(i) - onset) // length))
        highs[max(0, part)].append(high if history.survivors is not None else low)
        if part >= 0:
            lows[part].append(low)
    lows[-1].append(history.live)
    lowest = [min(part, default=math.inf) for part in lows]
    if history.survivors is not None:
        highest = [max(part, default=-math.inf) for part in highs]
        is_above = lowest[-1] > highest[0] + OUTLIVE * deepest_fall(spans, onset, history.live)
        return is_above and goes_on(lowest) and rises_at(COMPARED, lowest) and rises_at(COMPARED, highest)
    upper = [upper_level(part) for part in highs]
    return lowest[-1] > upper[0] and all(map(climbs_on_the_whole, (lowest, upper)))


def climbs_on_the_whole(values: Sequence[float]) -> bool:
    """True if the slope is no chance, though one value may lie below that before it, and the last half adds
    as much as the first.  A part without a reading is left out: few parts leave no slope that is no chance.
    """
    points = [(i, value) for i, value in enumerate(values) if math.isfinite(value)]
    found, late = trends.slope_of(points, DEVIATIONS), trends.slope(points[int(HALF * len(points)) :])
    return found is not None and found.low > 0 and late > HALF * found.value


def lowest_of_late(history: History, onset: float) -> float:
    """The lowest count of the last of PARTS of the time since the onset."""
    spans, late = history.spans, history.step - (history.step - onset) / PARTS
    return min([*(low for i, low in enumerate(spans.lows) if spans.mark_of(i) >= late), history.live])


def rises_at(places: Sequence[int], values: Sequence[float]) -> bool:
    return all(values[a] < values[b] for a, b in itertools.pairwise(places))


def goes_on(values: Sequence[float]) -> bool:
    """True if the last rise is at least half of the mean one."""
    rises = [b - a for a, b in itertools.pairwise(values)]
    return rises[-1] >= HALF * sum(rises) / len(rises)


def deepest_fall(spans: Spans, onset: float, live: float) -> float:
    """The most by which the count since the onset was ever below what it had been before: its drawdown."""
    at = [i for i in range(len(spans.lows)) if spans.mark_of(i) >= onset]
    tops = itertools.accumulate((spans.highs[i] for i in at), max)
    lows = [*(spans.lows[i] for i in at[1:]), live]
    return max((top - low for top, low in zip(tops, lows)), default=0.0)


def upper_level(values: Sequence[float]) -> float:
    """Where a total was for more than a moment: what it reached in one reading of twenty, or in one, as the
    working memory of an evaluation does, is no level of it.
    """
    momentary = math.ceil(LITTLE * len(values)) if len(values) > LAG else 0
    return sorted(values)[-1 - momentary] if values else -math.inf


def bend_of(spans: Spans) -> float:
    """The mark at which a level total begins to rise, by least squares over its lowest values: a + b * max(0,
    mark - bend).
    """
    marks = [spans.mark_of(i) for i in range(len(spans.lows))]
    n, total = len(marks), sum(spans.lows)
    count = hinged = squared = product = tail = 0.0
    best, bend = 0.0, spans.first
    for i in range(n - 1, 0, -1):
        step, value = marks[i] - marks[i - 1], spans.lows[i]
        tail, count = tail + value, count + 1
        squared += (hinged + hinged + step * count) * step
        hinged += step * count
        product += step * tail
        spread, common = squared - hinged * hinged / n, product - hinged * total / n
        if common > 0 and common * common > best * spread:
            best, bend = common * common / spread, marks[i - 1]
    return bend


def floor_share(history: History, rises: Rises, onset: float) -> float:
    """The floor's rise in the last half since the onset, as a share of what the survivors born in it say."""
    spans, values = history.spans, floor_of(history)
    middle = HALF * (onset + rises.last)
    kept = sum(amount for time, amount in zip(rises.times, rises.amounts) if time >= middle)
    at = min(len(values) - 1, max(0, math.ceil((middle - spans.first) / spans.width)))
    return (values[-1] - values[at]) / kept if kept else 1


def has_died(history: History) -> bool:
    """True if something of it was freed."""
    return history.deaths > 0 or bool(losses_of(history.spans, 0, history.step))


def rise_of_last_half(spans: Spans, live: float) -> float:
    """Items a step by which the floor rose in the last half of the run: what is worth a scan; cheap enough
    for each site at a mark.
    """
    half = int(HALF * len(spans.lows))
    steps = (len(spans.lows) - half) * spans.width
    return (live - min(spans.lows[half:], default=live)) / max(1, steps)


def between(rows: tuple[Row, ...], first: float, until: float) -> list[Row]:
    """The rows born at ``first`` or later and before ``until``."""
    at = bisect.bisect_left(rows, first, key=lambda row: row[0])
    return [row for row in rows[at:] if row[1] < until]
