"""From cohorts to patterns: does a group of blocks grow, and how fast?

A *cohort* is what one allocation site made in one step; a group's *series* lists the
survivors of its cohorts, ``(step, count, bytes)`` by birth step, as of one mark.  A leak
is a line of survivors over nearly all past steps; a cache or a working set has survivors
from the last steps only; a ring loses its old cohorts as it makes new ones.

The slope of a total over marks is Theil and Sen's: the median of the slopes of all pairs
of points (P. K. Sen, "Estimates of the regression coefficient based on Kendall's tau",
Journal of the American Statistical Association 63, 1968), which a few odd points don't move.
"""

import dataclasses
import statistics
from collections.abc import Iterable

from leakprobe.model.entry import Series
from leakprobe.model.report import MIN_STEPS

#: Steps before the mark that are never judged: their blocks may still be in use.
LAG = 2
#: Longer windows are judged by so many spans of steps.
MAX_BINS = 512
#: Points of a total over marks beyond this are thinned before the slope is taken.
MAX_POINTS = 64


@dataclasses.dataclass(frozen=True)
class Window:
    """Birth steps ``first`` to ``last`` (inclusive) that a verdict may rest on."""

    first: int
    last: int

    @property
    def steps(self) -> int:
        return max(0, self.last - self.first + 1)


@dataclasses.dataclass(frozen=True)
class Bins:
    """How the steps of a long window are put together: ``width`` steps to a bin, numbered from 0."""

    window: Window
    width: int

    @property
    def count(self) -> int:
        return -(-self.window.steps // self.width)

    def number(self, step: int) -> int:
        return (step - self.window.first) // self.width


@dataclasses.dataclass(frozen=True)
class Growth:
    """A growing group: rates per step of the window, and the counts behind them."""

    pattern: str  # per_step | per_epoch | replaced | since_a_point
    bytes_per_step: float
    count_per_step: float
    confidence: float
    evidence: str


def window_at(current_step: int, warmup: int) -> Window:
    """The window at a mark that started ``current_step``: from the end of the warm-up to LAG steps ago."""
    return Window(warmup, current_step - 1 - LAG)


def sum_series(serieses: Iterable[Series]) -> Series:
    """One series from several, step by step."""
    serieses = list(serieses)
    if len(serieses) == 1:
        return serieses[0]
    total: dict[int, list[float]] = {}
    for series in serieses:
        for step, count, size in series:
            row = total.setdefault(step, [0, 0])
            row[0] += count
            row[1] += size
    return [(step, count, size) for step, (count, size) in sorted(total.items())]


def classify(series, window: Window, merged=()) -> Growth | None:
    """How the group of ``series`` grows over ``window``, or None if it does not.

    ``series``: list of (birth step, count, bytes) of what is alive, rising steps.
    ``merged``: (first, last) of steps that are known together only, counted at the last.
    """
    bins = Bins(window, max(1, -(-window.steps // MAX_BINS)))
    rows = binned(series, bins, merged)
    if window.steps < MIN_STEPS - LAG or len(rows) < 3:
        return None
    return every_step(rows, bins) or regular(rows, bins)


def binned(series, bins: Bins, merged=()) -> list:
    """The rows of the window by bin; what is known by a range of steps is spread evenly over it."""
    window = bins.window
    starts = {last: first for first, last in merged}
    begin, end, width = window.first, window.last, bins.width
    counts, sizes = [0] * bins.count, [0] * bins.count
    for step, count, size in series:
        first = starts.get(step, step)
        if count <= 0 or step < begin or first > end:
            continue
        if first == step:
            number = (step - begin) // width
            counts[number] += count
            sizes[number] += size
            continue
        low, high = bins.number(max(first, begin)), bins.number(min(step, end))
        share = (min(step, end) - max(first, begin) + 1) / (step - first + 1) / (high - low + 1)
        for number in range(low, high + 1):
            counts[number] += count * share
            sizes[number] += size * share
    return [(number, count, size) for number, (count, size) in enumerate(zip(counts, sizes)) if count]


def every_step(rows, bins: Bins) -> Growth | None:
    """Survivors in nearly every step of the window, old steps as well as new ones."""
    needed = 1.0 if bins.count < 8 else 0.8
    if len(rows) < needed * bins.count or not reaches_both_ends(rows, bins.count) or decays(rows):
        return None
    steps = bins.window.steps
    size, count = sum(r[2] for r in rows), sum(r[1] for r in rows)
    unit = "measured steps" if bins.width == 1 else f"spans of {bins.width} steps"
    evidence = (
        f"{len(rows)} of {bins.count} {unit} (steps {bins.window.first} to {bins.window.last}) still have survivors, "
        f"{count / steps:,.3g} a step"
    )
    confidence = min(0.99, len(rows) / bins.count * (1 - 1 / (1 + steps / 3)))
    return Growth("per_step", size / steps, count / steps, round(confidence, 3), evidence)


def regular(rows, bins: Bins) -> Growth | None:
    """Survivors at a regular interval, at least three times: once an epoch, an evaluation, a checkpoint."""
    numbers = [r[0] for r in rows]
    if not is_regular(numbers):
        return None
    middle = statistics.median(gaps_between(numbers))
    if numbers[0] > 1.5 * middle or bins.count - 1 - numbers[-1] > 1.5 * middle or decays(rows):
        return None
    steps, first = bins.window.steps, bins.window.first
    size, count = sum(r[2] for r in rows), sum(r[1] for r in rows)
    evidence = (
        f"survivors every {middle * bins.width:g} steps, {len(rows)} times between step {first + numbers[0] * bins.width} "
        f"and step {first + numbers[-1] * bins.width}"
    )
    return Growth("per_epoch", size / steps, count / steps, round(min(0.95, 1 - 1 / len(rows)), 3), evidence)


def gaps_between(numbers) -> list:
    return [b - a for a, b in zip(numbers, numbers[1:])]


def is_regular(numbers) -> bool:
    """True if rising numbers, at least three, follow each other at nearly the same distance of at least 2."""
    if len(numbers) < 3:
        return False
    gaps = gaps_between(numbers)
    middle = statistics.median(gaps)
    return middle >= 2 and min(gaps) >= 0.7 * middle and max(gaps) <= 1.4 * middle


def since_a_point(series, window: Window) -> Growth | None:
    """Survivors of every step since some step inside the window, none from before it.

    That is what garbage looks like that waits for the collector, and also a ring or a list that is
    emptied now and then: only who holds the blocks tells them apart.
    """
    rows = [row for row in series if window.first <= row[0] <= window.last and row[1] > 0]
    run = 0
    for row, step in zip(reversed(rows), range(window.last, window.first - 1, -1)):
        if row[0] != step:
            break
        run += 1
    if run < MIN_STEPS:
        return None
    recent = rows[-run:]
    size, count = sum(r[2] for r in recent), sum(r[1] for r in recent)
    evidence = f"every step since step {recent[0][0]} has survivors, {count / run:,.3g} a step; earlier ones are gone"
    return Growth("since_a_point", size / run, count / run, 0.5, evidence)


def regular_before_a_run(series, window: Window) -> Growth | None:
    """Survivors at a regular interval, behind those of the last steps in a row: what is kept of a buffer that
    is emptied.

    Only who holds the blocks tells the kept ones from those that are in use.
    """
    rows = [row for row in series if window.first <= row[0] <= window.last and row[1] > 0]
    end = len(rows)
    while end > 1 and rows[end - 1][0] == rows[end - 2][0] + 1:
        end -= 1
    before = Window(window.first, rows[end - 1][0] if rows else window.first)
    if end == len(rows) or before.steps < MIN_STEPS - LAG or window.steps > MAX_BINS:
        return None
    bins = Bins(before, 1)
    old = binned(rows[:end], bins)
    found = regular(old, bins) if len(old) >= 3 else None
    return dataclasses.replace(found, confidence=0.5) if found is not None else None


def reaches_both_ends(rows, bins: int) -> bool:
    """True if the first and the last fifth of the window both have survivors: growth began early and goes
    on.
    """
    fifth = max(1, bins // 5)
    early = sum(1 for r in rows if r[0] < fifth)
    late = sum(1 for r in rows if r[0] >= bins - fifth)
    return early >= 0.5 * fifth and late >= 0.5 * fifth


def decays(rows) -> bool:
    """True if old cohorts have lost most of their blocks: a cache that forgets slowly, not a leak."""
    if len(rows) < 9:
        return False
    third = len(rows) // 3
    old = statistics.median(r[1] for r in rows[:third])
    new = statistics.median(r[1] for r in rows[-third:])
    return old < 0.5 * new and not grows_in_count(rows)


def grows_in_count(rows) -> bool:
    """True if the counts of the cohorts rise evenly all along, as births that grow do: not a decay."""
    third = len(rows) // 3
    parts = [
        sum(r[1] for r in part) / len(part) for part in (rows[:third], rows[third:-third], rows[-third:])
    ]
    if not parts[0] < parts[1] < parts[2]:
        return False
    return 0.5 < (parts[1] - parts[0]) / (parts[2] - parts[1]) < 2


def slope(points) -> float:
    """Theil-Sen slope of [(x, y), ...]; 0 for fewer than two points."""
    points = thin(points)
    slopes = [
        (y2 - y1) / (x2 - x1) for i, (x1, y1) in enumerate(points) for x2, y2 in points[i + 1 :] if x2 != x1
    ]
    return statistics.median(slopes) if slopes else 0.0


def thin(points):
    """At most MAX_POINTS of the points, first and last kept."""
    if len(points) <= MAX_POINTS:
        return list(points)
    stride = (len(points) - 1) / (MAX_POINTS - 1)
    return [points[round(i * stride)] for i in range(MAX_POINTS)]


def every_second(points):
    """Every second of a list's or array's points, first and last kept."""
    return points[:1] + points[1:-1:2] + points[-1:]


def rising_total(points, window: Window, minimum: int = 6) -> Growth | None:
    """Growth of a live total whose blocks are replaced by larger ones, from [(step, bytes), ...] at marks.

    The total must rise at nearly every mark, over most of the window, and not level off.
    """
    points = [p for p in points if p[0] >= window.first]
    if len(points) < minimum or points[-1][0] - points[0][0] < 0.5 * window.steps:
        return None
    rises = sum(1 for a, b in zip(points, points[1:]) if b[1] > a[1])
    falls = sum(1 for a, b in zip(points, points[1:]) if b[1] < 0.9 * a[1])
    if falls or rises < 0.8 * (len(points) - 1) or points[-1][1] < 1.3 * points[0][1]:
        return None
    half = len(points) // 2
    early, late = slope(points[: half + 1]), slope(points[half:])
    if early <= 0 or late < 0.4 * early:
        return None
    evidence = (
        f"the live total rose at {rises} of {len(points) - 1} marks, from {points[0][1]:,} to {points[-1][1]:,} bytes "
        f"between step {points[0][0]} and step {points[-1][0]}"
    )
    return Growth("replaced", slope(points), 0.0, round(min(0.9, rises / len(points)), 3), evidence)
