"""Per rank how fast each medium grows, and which rank stands out."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from leakprobe.evidence.trends import slope
from leakprobe.model.facts import DEVIATIONS_IN_MAD
from leakprobe.model.report import Report
from leakprobe.model.rows import live_bytes
from leakprobe.model.thresholds import LEAST_APART, NEARLY_ALL, OUTLIER, PART


def rates_of_ranks(reports: Sequence[Report]) -> list[dict[str, Any]]:
    """Report.ranks: a row per medium that grows on a rank, the slope of its live bytes on each, and the
    outliers.

    Empty unless there are several ranks.  The slope is Theil and Sen's over the marks after the warm-up.
    """
    ranks = main_of_ranks(reports)
    if len(ranks) <= 1:
        return []
    media = sorted({name for report in ranks.values() for row in report.timeline for name in row["media"]})
    rows = []
    for medium in [*media, "rss"]:
        slopes = {rank: slope_of(report, medium) for rank, report in ranks.items()}
        if max(map(abs, slopes.values())) >= LEAST_APART:
            rows.append(
                {
                    "medium": medium,
                    "rates": slopes,
                    "outliers": outliers(slopes),
                    "series": {rank: points_of(report, medium) for rank, report in ranks.items()},
                }
            )
    return rows


def main_of_ranks(reports: Sequence[Report]) -> dict[int, Report]:
    """One report of each rank: the one with most steps, of several such the newest.  A restart or a worker
    records under the same rank.
    """
    found: dict[int, Report] = {}
    for report in sorted(reports, key=length_and_start):
        rank = report.run.get("rank")
        if isinstance(rank, int):
            found[rank] = report
    return dict(sorted(found.items()))


def length_and_start(report: Report) -> tuple[int, float]:
    started = report.run.get("started")
    return report.steps["measured"], started if isinstance(started, int | float) else 0.0


def slope_of(report: Report, medium: str) -> float:
    """Bytes a step, after the warm-up."""
    first = report.steps["warmup"]
    return slope([point for point in points_of(report, medium) if point[0] >= first])


def points_of(report: Report, medium: str) -> list[tuple[int, int]]:
    """(step, bytes) of a medium, or of the process ("rss")."""
    if medium == "rss":
        return [(row["step"], row["rss"]) for row in report.memory if row["rss"] is not None]
    return [(row["step"], live_bytes(row["media"], medium)) for row in report.timeline]


def middle_and_spread(slopes: Mapping[int, float]) -> tuple[float, float]:
    """The median of the ranks' slopes, and the median of their distances from it (MAD)."""
    middle = statistics.median(slopes.values())
    return middle, statistics.median(abs(slope - middle) for slope in slopes.values())


def outliers(slopes: Mapping[int, float]) -> list[int]:
    """The ranks whose slope is far from the median; of two ranks the one that grows while the other does
    not.
    """
    if len(slopes) <= 1:
        return []
    low, high, *more = sorted(slopes, key=lambda rank: slopes[rank])
    if not more:
        return [high] if slopes[high] >= LEAST_APART and slopes[low] < PART * slopes[high] else []
    middle, spread = middle_and_spread(slopes)
    least = max(OUTLIER * DEVIATIONS_IN_MAD * spread, LEAST_APART, (1 - NEARLY_ALL) * abs(middle))
    return [rank for rank, slope in slopes.items() if abs(slope - middle) > least]
