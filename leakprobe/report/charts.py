"""What the charts of a page are drawn from: columns of numbers that the report has, thinned."""

import itertools
from collections.abc import Sequence
from typing import Any

from leakprobe.model.epochs import epoch_peaks
from leakprobe.model.frames import Frame
from leakprobe.model.media import is_on_host
from leakprobe.model.report import Report
from leakprobe.model.roles import SHOWN_ROLES, roles_over_steps
from leakprobe.model.rows import MemoryRow, TimelineRow, live_bytes
from leakprobe.report.clean import clean
from leakprobe.report.words import Words

#: Marks that are drawn; of more, the highest and the lowest of each span.
MOST_POINTS = 400
#: Frames of a stack in the flame graph, boxes of it in all, and the least share of all bytes that has one.
MOST_FRAMES, MOST_BOXES, LEAST_SHARE = 16, 400, 0.001
#: Rows of the tables that stand beside the charts, and epochs in a chart.
MOST_ROWS, MOST_EPOCHS = 24, 60
#: Points of a rank in a chart of all ranks.
MOST_RANK_POINTS = 120
#: Functions of torch that stand between a call of a module and its forward(): they hide what is called.
PASSING_ON = frozenset({"Module._wrapped_call_impl", "Module._call_impl", "_wrapped_call_impl", "_call_impl"})

Rows = list[tuple[TimelineRow, MemoryRow]]


def rows_of(report: Report) -> Rows:
    """Rows of the timeline, each with its row of memory."""
    return list(zip(report.timeline, report.memory))


def memory_chart(report: Report) -> dict[str, Any]:
    """Columns of the chart of memory over steps: one per medium, RSS, and what of RSS none of them has."""
    rows = highs_and_lows(rows_of(report), MOST_POINTS)
    names = sorted({name for row, _ in rows for name in row["media"]}, key=lambda n: (n != "python", n))
    live = {name: [live_bytes(row["media"], name) for row, _ in rows] for name in names}
    media = {clean(name): values for name, values in live.items() if any(values)}
    of_host = {name: values for name, values in media.items() if is_on_host(name)}
    rss = [memory["rss"] for _, memory in rows]
    probe = [memory["probe_overhead"] for _, memory in rows]
    rest = [
        max(0, r - p - sum(live)) if r is not None else None
        for r, p, *live in zip(rss, probe, *of_host.values())
    ]
    epochs = [
        row["step"] for before, row in itertools.pairwise(report.timeline) if row["epoch"] != before["epoch"]
    ]
    return {
        "step": [row["step"] for row, _ in rows],
        "time": [round(row["time"], 3) for row, _ in rows],
        "media": media,
        "on_devices": [name for name in media if name not in of_host],
        "rss": rss,
        "probe": probe,
        "rest": rest,
        "warmup": report.steps["warmup"],
        "epochs": epochs[:MOST_EPOCHS],
    }


def memory_rows(report: Report) -> dict[str, Any]:
    """The same as a table of some marks: {"media": names, "rows": [(step, RSS or None, [bytes])]}."""
    chosen = thinned(rows_of(report), MOST_ROWS)
    names = sorted({name for row, _ in chosen for name in row["media"]}, key=lambda n: (n != "python", n))
    return {
        "media": names,
        "rows": [
            (row["step"], memory["rss"], [live_bytes(row["media"], n) for n in names])
            for row, memory in chosen
        ],
    }


def highs_and_lows(rows: Rows, most: int) -> Rows:
    """At most so many of the rows (timeline, memory): of each span those with most and fewest bytes, first
    and last kept.
    """
    if len(rows) <= most:
        return rows

    def height(i: int) -> float:
        row, memory = rows[i]
        return float(memory["rss"] or sum(m["live_bytes"] for m in row["media"].values()))

    spans = (most - 2) // 2
    edges = [1 + i * (len(rows) - 2) // spans for i in range(spans + 1)]
    kept = {0, len(rows) - 1}
    for first, end in itertools.pairwise(edges):
        kept |= {max(range(first, end), key=height), min(range(first, end), key=height)}
    return [rows[i] for i in sorted(kept)]


def role_chart(report: Report) -> dict[str, Any]:
    """{medium: {"step": [...], "roles": {role: [bytes]}}} at the highest point of the steps that
    were read.
    """
    found = {}
    for medium, readings in roles_over_steps(report.memory).items():
        chosen = thinned(readings, MOST_POINTS)
        found[clean(medium)] = {
            "step": [step for step, _ in chosen],
            "roles": {role: [roles.get(role, 0) for _, roles in chosen] for role in SHOWN_ROLES},
        }
    return found


def role_rows(report: Report) -> list[dict[str, Any]]:
    """Of each medium the reading with most bytes: {"medium", "step", "total", "roles": [(role, bytes)]}."""
    found = []
    for medium, readings in roles_over_steps(report.memory).items():
        step, roles = max(readings, key=lambda r: sum(r[1].values()))
        rows = [(role, roles.get(role, 0)) for role in SHOWN_ROLES]
        found.append({"medium": medium, "step": step, "total": sum(roles.values()), "roles": rows})
    return found


def epoch_chart(report: Report) -> dict[str, Any]:
    """{medium: {"epoch": [...], "step": [...], "peak": [...], "end": [...]}} where there are several
    epochs.
    """
    peaks = epoch_peaks(report.timeline)
    if len({peak.epoch for peak in peaks}) < 2:
        return {}
    found: dict[str, Any] = {}
    for peak in peaks:
        columns = found.setdefault(clean(peak.medium), {"epoch": [], "step": [], "peak": [], "end": []})
        for name, value in (
            ("epoch", peak.epoch),
            ("step", peak.peak_step),
            ("peak", peak.peak_bytes),
            ("end", peak.end_bytes),
        ):
            columns[name].append(value)
    return found


def rank_chart(report: Report) -> dict[str, Any]:
    """{medium: {"outliers": [...], "ranks": {rank: {"step": [...], "bytes": [...]}}}} of a merged report."""
    return {
        clean(row["medium"]): {
            "outliers": row["outliers"],
            "ranks": {
                str(rank): {"step": [p[0] for p in points], "bytes": [p[1] for p in points]}
                for rank, points in ((r, thinned(p, MOST_RANK_POINTS)) for r, p in row["series"].items())
            },
        }
        for row in report.ranks
        if row.get("series")
    }


def thinned(rows: Sequence[Any], most: int) -> list[Any]:
    """About so many of the rows, evenly, the last one too."""
    return [*rows[: -1 : max(1, len(rows) // most)], rows[-1]] if rows else []


def icicle(report: Report, words: Words) -> dict[str, Any]:
    """Boxes of the flame graph: stacks of the sites, outermost frame first; a box is the sum of what is under
    it.

    What is smaller than LEAST_SHARE of all is put together, box by box.
    """
    root = Box("all sites")
    for row in report.sites:
        stack = [f for f in reversed(row["allocation_stack"]) if not f.filename.startswith("<frozen")]
        kind = clean(row["type"] or f"buffers of {row['medium']}")
        root.add([words(row["medium"]), *stack_labels(stack, words), kind], row["live_bytes"])
    boxes = list(root.boxes("", None, LEAST_SHARE * root.value))
    boxes = boxes[:1] + sorted(boxes[1:], key=lambda box: -box[3])[:MOST_BOXES]
    return {
        "ids": [box[0] for box in boxes],
        "labels": [box[1] for box in boxes],
        "parents": [box[2] for box in boxes],
        "values": [box[3] for box in boxes],
    }


def stack_labels(stack: Sequence[Frame], words: Words) -> list[str]:
    """Outermost first; a line whose callers are not known stands under its file."""
    if not stack:
        return ["line not known"]
    if len(stack) == 1:
        return [
            words.file(stack[0].filename).rpartition("/")[2] + " (callers not known)",
            words.label(stack[0]),
        ]
    shown = [frame for frame in stack if frame.function not in PASSING_ON]
    return [words.label(frame) for frame in shown[-MOST_FRAMES:]]


class Box:
    """A box of the flame graph while it is built."""

    def __init__(self, label: str):
        self.label, self.value = label, 0
        self.inner: dict[str, Box] = {}

    def add(self, labels: Sequence[str], value: int) -> None:
        box = self
        box.value += value
        for label in labels:
            box = box.inner.setdefault(label, Box(label))
            box.value += value

    def boxes(self, key: str, parent: str | None, least: float) -> "list[tuple[str, str, str | None, int]]":
        """(id, label, id of the parent, value), parents first."""
        found = [(key, self.label, parent, self.value)]
        work: list[tuple[str, Box]] = [(key, self)]
        while work:
            key, box = work.pop()
            small = [inner for inner in box.inner.values() if inner.value < least]
            large = [inner for inner in box.inner.values() if inner.value >= least]
            for inner in large:
                found.append((f"{key}/{inner.label}", inner.label, key, inner.value))
                work.append((f"{key}/{inner.label}", inner))
            if small:
                label = f"{len(small)} smaller"
                found.append((f"{key}/{label}", label, key, sum(inner.value for inner in small)))
        return found
