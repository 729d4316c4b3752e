"""Growth within an epoch that is released at its end."""

import math

from leakprobe.evidence import cohorts
from leakprobe.model.history import History, Survivors
from leakprobe.model.thresholds import (
    HALF,
    LAG,
    LEAST_CENTROID,
    LEAST_EVENTS,
    LEAST_REST,
    PRINTED_DEVIATIONS,
)
from leakprobe.model.verdict import Judgement, Rate, Verdict


def within_epoch(history: History) -> Judgement | None:
    """WITHIN_EPOCH as of the last scan that met one in full swing: all of its survivors are of that epoch,
    added evenly.
    """
    for scan in reversed(history.scans):
        begun = max((end for end in history.epochs if end < scan.step), default=None)
        if begun is not None and begun - history.warmup >= LEAST_REST and scan.step - begun >= LEAST_REST:
            return within(history, scan, begun)
    return None


def within(history: History, scan: Survivors, begun: int) -> Judgement | None:
    rows = cohorts.between(scan.rows, begun, scan.step - LAG)
    count = sum(count for _, _, count, _ in rows)
    older = sum(count for first, _, count, _ in scan.rows if history.warmup <= first < begun)
    length = scan.step - begun
    if len(rows) < LEAST_EVENTS or older > HALF * count:
        return None
    centroid = sum(count * (last - begun) for _, last, count, _ in rows) / (count * length)
    if not LEAST_CENTROID <= centroid <= 1 - LEAST_CENTROID:
        return None
    sizes = [size for *_, size in rows]
    value, peak = sum(sizes) / length, max(history.spans.highs, default=count)
    margin = PRINTED_DEVIATIONS * math.sqrt(sum(size * size for size in sizes)) / length
    reason = f"{count:,} kept since the epoch began at step {begun:,}, as of step {scan.step:,}; those of earlier epochs were released"
    rate = Rate(value, max(0.0, value - margin), value + margin)
    return Judgement(
        Verdict.WITHIN_EPOCH, reason, history.step, begun, rate, count / length, peak=peak, events=len(rows)
    )
