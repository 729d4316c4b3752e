"""Per rank how fast each medium grows, and which rank stands out."""

import statistics

from leakprobe.analysis import growth
from leakprobe.model.finding import Note
from leakprobe.model.units import format_rate

#: A rank stands out beyond so many deviations: 1.4826 MAD estimates one of a normal distribution.
OUTLIER, TO_DEVIATION = 3.5, 1.4826
#: And by so many bytes a step, and this share of the median.
LEAST_BYTES, LEAST_SHARE = 1024.0, 0.1
#: Of two ranks one stands out if the other grows by less than this share of it.
SHARE_OF_TWO = 0.25


def rates_of_ranks(recordings) -> list[dict]:
    """Report.ranks: a row per medium that grows on a rank, the slope of its live bytes on each, and the outliers.

    Empty unless there are several ranks.  The slope is Theil and Sen's over the marks after the warm-up.
    """
    ranks = [
        (r.report.run["rank"], r.report) for r in recordings if isinstance(r.report.run.get("rank"), int)
    ]
    if len(ranks) < 2:
        return []
    media = sorted({name for _rank, report in ranks for row in report.timeline for name in row["media"]})
    rows = []
    for medium in [*media, "rss"]:
        slopes = {rank: slope_of(report, medium) for rank, report in ranks}
        if max(map(abs, slopes.values())) >= LEAST_BYTES:
            rows.append({"medium": medium, "rates": slopes, "outliers": outliers(slopes)})
    return rows


def notes_of_ranks(rows) -> list[Note]:
    """One note per row of rates_of_ranks()."""
    return [note_of(row["medium"], row["rates"], row["outliers"]) for row in rows]


def slope_of(report, medium: str) -> float:
    """Bytes a step."""
    first = report.steps["warmup"]
    if medium == "rss":
        points = [
            (row["step"], row["rss"])
            for row in report.memory
            if row["rss"] is not None and row["step"] >= first
        ]
    else:
        points = [
            (row["step"], row["media"].get(medium, {}).get("live_bytes", 0))
            for row in report.timeline
            if row["step"] >= first
        ]
    return growth.slope(points)


def outliers(slopes: dict) -> list:
    """The ranks whose slope is far from the median; of two ranks the one that grows while the other does not."""
    middle = statistics.median(slopes.values())
    if len(slopes) == 2:
        low, high = sorted(slopes, key=slopes.get)
        return [high] if slopes[high] >= LEAST_BYTES and slopes[low] < SHARE_OF_TWO * slopes[high] else []
    spread = TO_DEVIATION * statistics.median(abs(s - middle) for s in slopes.values())
    least = max(OUTLIER * spread, LEAST_BYTES, LEAST_SHARE * abs(middle))
    return [rank for rank, slope in slopes.items() if abs(slope - middle) > least]


def note_of(medium: str, slopes: dict, far: list) -> Note:
    middle = statistics.median(slopes.values())
    spread = statistics.median(abs(s - middle) for s in slopes.values())
    shown = sorted(slopes, key=lambda rank: (rank not in far, rank))[:16]
    rates = ", ".join(f"rank {rank} {format_rate(slopes[rank])}" for rank in shown) + (
        ", ..." if len(slopes) > len(shown) else ""
    )
    word = "memory of the process" if medium == "rss" else medium
    told = f"; outlier: rank {', '.join(map(str, far))}" if far else "; no outlier"
    return Note(
        kind="ranks",
        text=f"{word}: {rates}{told} (median {format_rate(middle)}, MAD {format_rate(spread)})",
        medium=None if medium == "rss" else medium,
        bytes_per_step=round(max(slopes.values()), 1),
    )
