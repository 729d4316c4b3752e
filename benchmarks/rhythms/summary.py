"""Outcomes in sum: a row a kind, shares with their intervals, and curves of hits over false alarms."""

import collections
import math
import statistics
from collections.abc import Iterable

from benchmarks.rhythms.kinds import KINDS, is_held_out
from benchmarks.rhythms.measure import Outcome

#: The normal quantile of a two-sided interval of 95 %.
Z95 = 1.959964
#: Points of a curve.
CURVE_POINTS = 60


def wilson(hits: int, total: int) -> tuple[float, float]:
    """Wilson's interval of 95 % for a share (Journal of the American Statistical Association 22, 1927)."""
    if total == 0:
        return 0.0, 1.0
    share, z2 = hits / total, Z95**2
    middle = (share + z2 / (2 * total)) / (1 + z2 / total)
    half = Z95 / (1 + z2 / total) * math.sqrt(share * (1 - share) / total + z2 / (4 * total**2))
    return max(0.0, middle - half), min(1.0, middle + half)


def share(flags: Iterable[bool]) -> list:
    """[hits, of, low, high] of some booleans, with the interval of 95 %."""
    flags = list(flags)
    return [sum(flags), len(flags), *(round(bound, 4) for bound in wilson(sum(flags), len(flags)))]


def without_intervals(row: dict) -> dict:
    """A row with shares as [hits, of], from which the intervals follow."""
    return {key: value[:2] if isinstance(value, list) else value for key, value in row.items()}


def median(values):
    values = [value for value in values if value is not None]
    return round(statistics.median(values), 3) if values else None


def part_of(kind: str) -> str:
    return "held out" if is_held_out(kind) else "open"


def row_of(outcomes: list[Outcome]) -> dict:
    """What is told of some loops that all grow, or all turn over.

    Shares are of the loops in which a verdict is owed, but for those that say otherwise.
    """
    due = [o for o in outcomes if o.due]
    found = [o for o in due if o.told]
    row = {
        "told": share(o.told for o in due),
        "told of all": share(o.told for o in outcomes),
        "told at any mark, of all": share(o.told_at is not None for o in outcomes),
        "withdrawn, of all": share(o.withdrawn > 0 for o in outcomes),
        "scans": round(statistics.fmean(o.scans for o in outcomes), 1),
    }
    if outcomes[0].grows:
        row |= {
            "before the onset, of all": share(o.told_before_onset for o in outcomes),
            "other sites told": share(o.false_sites > 0 for o in due),
            "onset error": median(abs(o.onset_error) for o in found if o.onset_error is not None),
            "onset right": share(o.onset_right is True for o in found),
            "rate ratio": median(o.rate_ratio for o in found),
            "rate right": share(o.rate_right is True for o in found),
            "steps until told": median(o.until_told for o in found),
        }
    return row


def rows_by_kind(outcomes: list[Outcome]) -> dict[str, dict]:
    """A row a kind, with the loops told by their length."""
    groups = collections.defaultdict(list)
    for outcome in outcomes:
        groups[outcome.kind].append(outcome)
    return {
        kind: without_intervals(row_of(groups[kind])) | by_steps(groups[kind])
        for kind in KINDS
        if kind in groups
    }


def by_steps(outcomes: list[Outcome]) -> dict:
    """{"told by steps": {steps: [told, of those owed]}}"""
    found = {}
    for steps in sorted({o.steps for o in outcomes}):
        due = [o for o in outcomes if o.steps == steps and o.due]
        found[str(steps)] = [sum(o.told for o in due), len(due)]
    return {"told by steps": found}


def totals(outcomes: list[Outcome]) -> dict[str, dict]:
    """{"open, growing, 300 steps": row} for both parts, and for all lengths together."""
    found = {}
    for part in ("open", "held out"):
        for grows in (True, False):
            chosen = [o for o in outcomes if part_of(o.kind) == part and o.grows == grows]
            for steps in [None, *sorted({o.steps for o in chosen})]:
                some = [o for o in chosen if steps is None or o.steps == steps]
                if some:
                    what = "growing" if grows else "turnover"
                    found[f"{part}, {what}, {'all' if steps is None else steps} steps"] = row_of(some)
    return found


def curve(outcomes: list[Outcome], name: str, direction: int) -> dict:
    """Hits over false alarms as the threshold of one statistic moves, over the loops in which a verdict is
    owed.

    A loop without the statistic is never told.  "area" is the area below the curve.
    """
    due = [o for o in outcomes if o.due]
    growing = [o.statistics.get(name) for o in due if o.grows]
    turning = [o.statistics.get(name) for o in due if not o.grows]
    values = sorted({v for v in growing + turning if v is not None}, reverse=direction > 0)
    points = [
        [v, told_share(turning, v, direction), told_share(growing, v, direction)]
        for v in thinned(values, 400)
    ]
    xs = [0.0, *(p[1] for p in points), 1.0]
    ys = [0.0, *(p[2] for p in points), points[-1][2] if points else 0.0]
    area = sum((x1 - x0) * (y0 + y1) / 2 for x0, x1, y0, y1 in zip(xs, xs[1:], ys, ys[1:]))
    kept = [[float(f"{x:.4g}") for x in point] for point in thinned(points, CURVE_POINTS)]
    return {"area": round(area, 4), "threshold, false alarms, hits": kept}


def thinned(values: list, most: int) -> list:
    """At most so many, evenly, the first and the last kept."""
    if len(values) <= most:
        return values
    return [values[round(i * (len(values) - 1) / (most - 1))] for i in range(most)]


def told_share(values, threshold: float, direction: int) -> float:
    told = sum(v is not None and direction * v >= direction * threshold for v in values)
    return told / len(values) if values else 0.0
