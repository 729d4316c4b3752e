"""The first version's engine: a look now and then at the survivors by birth step, and tests for patterns
among them.

Its tests were those of leakprobe/analysis/growth.py at 9ea36a8, its looks those of suspects.py and probe.py
there.  Not simulated: budgets of processor time (a look is never put off), holders (a bound that one has, a
second holder), and the heap's other blocks.
"""

import dataclasses
import functools
import itertools
import statistics

import numpy as np

from benchmarks.rhythms.history import History, Scan
from benchmarks.rhythms.loop import LIMIT, WARMUP
from benchmarks.rhythms.verdict import Answer, Decider, Verdict

#: As in that engine: steps before the mark that are not judged; the least window; bins; bytes a step below
#: which nothing is traced.
LAG, LEAST_STEPS, MAX_BINS, LEAST_RATE = 2, 5, 512, 12.0
#: Looks that find nothing wait for so many times the measured steps, others for this share of them.
CALM_STRETCH, STRETCH = 3.0, 0.2
#: Blocks a step, steadily over so many counts, that make looks frequent; points of a series that are
#: compared.
URGENT_BLOCKS, CLIMB_POINTS, MAX_POINTS = 0.9, 4, 64
#: Sites below these bytes are not followed from look to look; so many looks at least say that a total rises.
FOLLOWED_BYTES, LEAST_LOOKS = 16 * 1024, 6


@dataclasses.dataclass(frozen=True)
class Survivors:
    """Survivors of a window of birth steps, by bins of it."""

    first: int
    steps: int
    width: int
    bins: int
    numbers: np.ndarray  # of the bins that have any
    count: np.ndarray
    bytes: float


def survivors_of(scan: Scan) -> Survivors:
    steps = max(0, scan.mark - LAG - WARMUP)
    width = max(1, -(-steps // MAX_BINS))
    chosen = (scan.birth >= WARMUP) & (scan.birth < WARMUP + steps)
    numbers = (scan.birth[chosen] - WARMUP) // width
    count = np.bincount(numbers, weights=scan.count[chosen], minlength=1)
    kept = np.flatnonzero(count)
    total = float(scan.bytes[chosen].sum())
    return Survivors(WARMUP, steps, width, -(-steps // width), kept, count[kept], total)


def decays(count: np.ndarray) -> bool:
    """True if old cohorts have lost most of their blocks."""
    if len(count) < 9:
        return False
    third = len(count) // 3
    old, new = np.median(count[:third]), np.median(count[-third:])
    return bool(old < 0.5 * new) and not grows_in_count(count)


def grows_in_count(count: np.ndarray) -> bool:
    third = len(count) // 3
    low, middle, high = (float(part.mean()) for part in (count[:third], count[third:-third], count[-third:]))
    return low < middle < high and 0.5 < (middle - low) / (high - middle) < 2


def is_regular(numbers) -> bool:
    if len(numbers) < 3:
        return False
    gaps = np.diff(numbers)
    middle = statistics.median(gaps.tolist())
    return bool(middle >= 2 and gaps.min() >= 0.7 * middle and gaps.max() <= 1.4 * middle)


def in_each_step(found: Survivors) -> bool:
    """Survivors in nearly every bin, in the first and last fifth too."""
    needed = 1.0 if found.bins < 8 else 0.8
    fifth = max(1, found.bins // 5)
    early = (found.numbers < fifth).sum()
    late = (found.numbers >= found.bins - fifth).sum()
    return (
        len(found.numbers) >= needed * found.bins
        and early >= 0.5 * fifth
        and late >= 0.5 * fifth
        and not decays(found.count)
    )


def at_intervals(found: Survivors) -> bool:
    """Survivors at a regular interval, from the first to the last."""
    numbers = found.numbers
    if not is_regular(numbers):
        return False
    middle = statistics.median(np.diff(numbers).tolist())
    ends = numbers[0] <= 1.5 * middle and found.bins - 1 - numbers[-1] <= 1.5 * middle
    return bool(ends) and not decays(found.count)


def grows(found: Survivors) -> bool:
    if found.steps < LEAST_STEPS - LAG or len(found.numbers) < 3:
        return False
    return in_each_step(found) or at_intervals(found)


def may_grow(scan: Scan, found: Survivors) -> bool:
    """True where that engine followed a site without a finding: survivors of each step since one of them, or
    regular ones before.
    """
    steps = scan.birth[(scan.birth >= WARMUP) & (scan.birth < WARMUP + found.steps)]
    if len(steps) == 0:
        return False
    gaps = np.flatnonzero(np.diff(steps) != scan.width)
    run = len(steps) - (gaps[-1] + 1 if len(gaps) else 0)
    since_a_point = steps[-1] + scan.width >= WARMUP + found.steps and run >= LEAST_STEPS
    return bool(
        since_a_point or (run > 1 and found.steps <= MAX_BINS and is_regular(steps[: len(steps) - run]))
    )


def rising_total(points, steps: int) -> float:
    """Bytes a step of a total that rises from look to look, over most of the window, without levelling off; 0
    if it does not.
    """
    points = [p for p in points if p[0] >= WARMUP]
    if len(points) < LEAST_LOOKS or points[-1][0] - points[0][0] < 0.5 * steps:
        return 0.0
    x, y = np.array(points, float).T
    moves = np.diff(y)
    if (y[1:] < 0.9 * y[:-1]).any() or (moves > 0).sum() < 0.8 * len(moves) or y[-1] < 1.3 * y[0]:
        return 0.0
    half = len(x) // 2
    early, late = median_slope(x[: half + 1], y[: half + 1]), median_slope(x[half:], y[half:])
    return median_slope(x, y) if early > 0 and late >= 0.4 * early else 0.0


@functools.cache
def pairs_of(count: int) -> tuple[np.ndarray, np.ndarray]:
    return np.triu_indices(count, 1)


def median_slope(x: np.ndarray, y: np.ndarray) -> float:
    """Theil and Sen's slope, of MAX_POINTS points at most."""
    if len(x) > MAX_POINTS:
        chosen = np.linspace(0, len(x) - 1, MAX_POINTS).round().astype(int)
        x, y = x[chosen], y[chosen]
    first, second = pairs_of(len(x))
    return float(np.median((y[second] - y[first]) / (x[second] - x[first]))) if len(first) else 0.0


def steady_rise(x: np.ndarray, y: np.ndarray) -> bool:
    """True if a total goes on rising by more than the limit over all its marks, out of its own noise."""
    if len(x) < LEAST_STEPS or x[-1] - x[0] < LEAST_STEPS - 1 or y[-1] - y[0] < 0.5 * LIMIT * (x[-1] - x[0]):
        return False
    slope = median_slope(x, y)
    moves = np.diff(y)
    if slope < LIMIT or -moves[moves < 0].sum() > 0.25 * moves[moves > 0].sum():
        return False
    parts = 3 if len(x) >= 10 else 2
    edges = [round(i * (len(x) - 1) / parts) for i in range(parts + 1)]
    if any((y[b] - y[a]) / (x[b] - x[a]) < 0.4 * slope for a, b in itertools.pairwise(edges)):
        return False
    rests = y - slope * x
    spread = np.median(np.abs(rests - np.median(rests)))
    return bool(slope * (x[-1] - x[0]) >= 6 * spread)


class FirstEngine:
    """Its state for one site, look by look."""

    def __init__(self):
        self._verdict = Verdict(Answer.TOO_EARLY)
        self._looked: int | None = None
        self._grows = False
        self._calm = 0
        self._marks: list[tuple[int, int, float]] = []  # (mark, live count, live bytes)
        self._totals: list[tuple[int, float]] = []  # (mark, live bytes), as of the looks

    def __call__(self, history: History) -> Verdict:
        self._marks.append((history.mark, history.live, history.live_bytes))
        if self._is_due(history):
            self._look(history)
        return self._verdict

    def _is_due(self, history: History) -> bool:
        mark = history.mark
        if mark - LAG - WARMUP < LEAST_STEPS - LAG:
            return False
        if self._looked is None or history.is_end:
            return True
        urgent = self._grows or self._seems_to_rise()
        stretch = STRETCH * (1 + 0.5 * self._calm) if urgent else CALM_STRETCH
        return mark >= self._looked + max(2, int((self._looked - WARMUP) * stretch))

    def _seems_to_rise(self) -> bool:
        """By what each mark counts: blocks, and malloc's bytes since the last look."""
        recent = [m for m in self._marks if m[0] >= max(WARMUP, self._looked + 2)]
        blocks = recent[-CLIMB_POINTS:]
        climb = len(blocks) >= 3 and all(b[1] > a[1] for a, b in itertools.pairwise(blocks))
        if climb and blocks[-1][1] - blocks[0][1] >= URGENT_BLOCKS * (blocks[-1][0] - blocks[0][0]):
            return True
        if not recent:
            return False
        x, _, y = np.array(recent, float).T
        return steady_rise(x, y)

    def _look(self, history: History) -> None:
        scan = history.scan()
        self._looked = history.mark
        found = survivors_of(scan)
        rate = found.bytes / max(1, found.steps)
        is_leak = rate >= LEAST_RATE and grows(found)
        size = float(scan.bytes.sum())
        if size >= FOLLOWED_BYTES:
            self._totals.append((history.mark, size))
        suspect = is_leak or (rate >= LEAST_RATE and may_grow(scan, found))
        replaced = 0.0
        if not suspect and self._totals and self._totals[-1][0] == history.mark:
            replaced = rising_total(self._totals, found.steps)
        self._grows = (suspect and rate > LIMIT) or replaced > LEAST_RATE
        self._calm = 0 if self._grows else min(4, self._calm + 1)
        share = len(found.numbers) / max(1, found.bins)
        self._verdict = verdict_of(is_leak, rate, replaced, {"share of birth steps with survivors": share})


def verdict_of(is_leak: bool, rate: float, replaced: float, statistics: dict) -> Verdict:
    if is_leak:
        return Verdict(Answer.LEAK, WARMUP, rate, statistics=statistics)
    if replaced > LEAST_RATE:
        return Verdict(Answer.REPLACED, WARMUP, replaced, statistics=statistics)
    return Verdict(Answer.TURNOVER, statistics=statistics)


FIRST_ENGINE = Decider("first engine", FirstEngine, {"share of birth steps with survivors": 1})
