"""Growth within an epoch that is released at its end."""

import bisect
import itertools
import math
from collections.abc import Sequence

from leakprobe.evidence import cohorts
from leakprobe.model.history import History, Spans, Survivors
from leakprobe.model.thresholds import (
    DEVIATIONS,
    HALF,
    LAG,
    LEAST_CENTROID,
    LEAST_EVENTS,
    LEAST_REST,
)
from leakprobe.model.units import format_size
from leakprobe.model.verdict import Judgement, Rate, Verdict


def within_epoch(history: History) -> Judgement | None:
    """WITHIN_EPOCH as of the last scan that met one in full swing: all of its survivors are of that epoch,
    added evenly.
    """
    for scan in reversed(history.scans):
        before = bisect.bisect_left(history.epochs, scan.step)
        begun = history.epochs[before - 1] if before else 0
        if before and begun - history.warmup >= LEAST_REST and scan.step - begun >= LEAST_REST:
            return within(history, scan, begun)
    return None


def within(history: History, scan: Survivors, begun: int) -> Judgement | None:
    rows = cohorts.between(scan.rows, begun, scan.step - LAG)
    count = sum(count for _, _, count, _ in rows)
    older = sum(count for first, _, count, _ in scan.rows if history.warmup <= first < begun)
    length = scan.step - LAG - begun
    if len(rows) < LEAST_EVENTS or older > HALF * count:
        return None
    centroid = sum(count * (last - begun) for _, last, count, _ in rows) / (count * length)
    if not LEAST_CENTROID <= centroid <= 1 - LEAST_CENTROID:
        return None
    sizes = [size for *_, size in rows]
    value, each = sum(sizes) / length, count / level_at(history.spans, scan.step, count)
    peak = each * max(history.spans.highs, default=count)
    margin = DEVIATIONS * math.sqrt(sum(size * size for size in sizes)) / length
    top = format_size(peak * sum(sizes) / count)
    reason = (
        f"{count:,} kept since the epoch began at step {begun:,}, as of step {scan.step:,}, {top} at the "
        "peak; those of earlier epochs were released"
    )
    rate = Rate(value, max(0.0, value - margin), value + margin)
    return Judgement(
        Verdict.WITHIN_EPOCH,
        reason,
        history.step,
        begun,
        rate,
        count / length,
        peak=peak,
        peak_rises=peaks_rise(history, count / length / each),
        events=len(rows),
    )


def level_at(spans: Spans, step: int, otherwise: float) -> float:
    """The highest live count of the span that a mark lies in: blocks, of which an item may have several."""
    there = [high for i, high in enumerate(spans.highs) if spans.mark_of(i) <= step]
    return there[-1] if there and there[-1] > 0 else otherwise


def peaks_rise(history: History, blocks_per_step: float) -> bool:
    """True if epochs get longer, and what is kept at the end of each is in proportion.

    Epochs in which less than half of that was kept are of another kind, as of an evaluation.  Trainings and
    evaluations that take turns are of different lengths as well; none of them gets longer.
    """
    return get_longer(
        [length for length, peak in peaks_of(history) if peak >= HALF * blocks_per_step * length]
    )


def get_longer(lengths: Sequence[int]) -> bool:
    """True of three epochs or more, none shorter than the one before, that end at half as long again, and of
    which the later half got longer too: a curriculum that has reached its length does not.
    """
    has_trend = bool(lengths[1:-1]) and all(a <= b for a, b in itertools.pairwise(lengths))
    return (
        has_trend
        and lengths[-1] >= (1 + HALF) * lengths[0]
        and lengths[-1] > lengths[int(HALF * (len(lengths) - 1))]
    )


def peaks_of(history: History) -> list[tuple[int, float]]:
    """(length, most blocks) of each epoch that is over, of which whole spans are known."""
    spans, found = history.spans, []
    for begun, end in itertools.pairwise((history.warmup, *history.epochs)):
        within = [
            high for i, high in enumerate(spans.highs) if begun <= spans.mark_of(i) <= end - spans.width
        ]
        if within:
            found.append((end - begun, max(within)))
    return found
