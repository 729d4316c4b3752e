"""Outcomes in sum: a row a kind, shares with their intervals, and curves of hits over false alarms."""

import collections
import math
import statistics

from benchmarks.rhythms.kinds import KINDS, is_held_out
from benchmarks.rhythms.measure import Outcome

#: The normal quantile of a two-sided interval of 95 %.
Z95 = 1.959964


def wilson(hits: int, total: int) -> tuple[float, float]:
    """Wilson's interval of 95 % for a share (Journal of the American Statistical Association 22, 1927)."""
    if total == 0:
        return 0.0, 1.0
    share, z2 = hits / total, Z95**2
    middle = (share + z2 / (2 * total)) / (1 + z2 / total)
    half = Z95 / (1 + z2 / total) * math.sqrt(share * (1 - share) / total + z2 / (4 * total**2))
    return max(0.0, middle - half), min(1.0, middle + half)


def share(flags) -> dict:
    """{"hits", "of", "share", "low", "high"} of some booleans."""
    flags = list(flags)
    low, high = wilson(sum(flags), len(flags))
    found = sum(flags) / len(flags) if flags else None
    return {"hits": sum(flags), "of": len(flags), "share": found, "low": low, "high": high}


def median(values):
    values = [value for value in values if value is not None]
    return statistics.median(values) if values else None


def part_of(kind: str) -> str:
    return "held out" if is_held_out(kind) else "open"


def kind_row(outcomes: list[Outcome]) -> dict:
    """A kind's row: of the loops in which a verdict is owed, and beside it the share of all that are told."""
    due = [o for o in outcomes if o.due]
    found = [o for o in due if o.told]
    row = {
        "loops": len(outcomes),
        "owed": len(due),
        "told": share(o.told for o in due),
        "told of all": share(o.told for o in outcomes),
        "withdrawn": share(o.withdrawn > 0 for o in outcomes),
        "scans": statistics.fmean(o.scans for o in outcomes),
    }
    if KINDS[outcomes[0].kind].grows:
        row |= {
            "onset error": median(abs(o.onset_error) for o in found if o.onset_error is not None),
            "onset right": share(o.onset_right is True for o in found),
            "rate ratio": median(o.rate_ratio for o in found),
            "rate right": share(o.rate_right is True for o in found),
            "steps until told": median(o.until_told for o in found),
            "findings right": share(o.findings_right for o in found),
        }
    return row


def rows_by_kind(outcomes: list[Outcome]) -> dict[str, dict]:
    groups = collections.defaultdict(list)
    for outcome in outcomes:
        groups[outcome.kind].append(outcome)
    return {kind: kind_row(groups[kind]) for kind in KINDS if kind in groups}


def totals(outcomes: list[Outcome]) -> dict[str, dict]:
    """{"open, growing, 300 steps": shares} for both parts, and for all lengths together."""
    found = {}
    for part in ("open", "held out"):
        for grows in (True, False):
            chosen = [o for o in outcomes if part_of(o.kind) == part and o.grows == grows]
            for steps in [None, *sorted({o.steps for o in chosen})]:
                name = f"{part}, {'growing' if grows else 'turnover'}, {steps or 'all'} steps"
                some = [o for o in chosen if steps is None or o.steps == steps]
                if some:
                    found[name] = total_of(some, grows)
    return found


def total_of(outcomes: list[Outcome], grows: bool) -> dict:
    due = [o for o in outcomes if o.due]
    row = {
        "told": share(o.told for o in due),
        "told of all": share(o.told for o in outcomes),
        "withdrawn": share(o.withdrawn > 0 for o in outcomes),
        "false sites": share(o.false_sites > 0 for o in due),
        "scans": statistics.fmean(o.scans for o in outcomes),
    }
    if grows:
        found = [o for o in due if o.told]
        row |= {
            "onset right": share(o.onset_right is True for o in found),
            "rate right": share(o.rate_right is True for o in found),
            "findings right": share(o.findings_right for o in found),
            "before onset": share(o.told_before_onset for o in outcomes),
            "steps until told": median(o.until_told for o in found),
        }
    return row


def curve(outcomes: list[Outcome], name: str, direction: int, points: int = 200) -> dict:
    """Hits over false alarms as the threshold of one statistic moves, over the loops in which a verdict is owed.

    A loop without the statistic is never told.  "area" is the area below the curve.
    """
    due = [o for o in outcomes if o.due]
    growing = [o.statistics.get(name) for o in due if o.grows]
    turning = [o.statistics.get(name) for o in due if not o.grows]
    values = sorted(
        {v for v in growing + turning if v is not None and not math.isnan(v)}, reverse=direction > 0
    )
    stride = max(1, len(values) // points)
    rows = []
    for threshold in values[::stride] + values[-1:]:
        rows.append([threshold, *(told_share(part, threshold, direction) for part in (turning, growing))])
    xs, ys = [0.0] + [r[1] for r in rows], [0.0] + [r[2] for r in rows]
    xs, ys = xs + [1.0], ys + [ys[-1]]
    area = sum((x1 - x0) * (y0 + y1) / 2 for x0, x1, y0, y1 in zip(xs, xs[1:], ys, ys[1:]))
    return {"threshold, false alarms, hits": rows, "area": area}


def told_share(values, threshold: float, direction: int) -> float:
    told = sum(v is not None and direction * v >= direction * threshold for v in values)
    return told / len(values) if values else 0.0
