"""The report for other programs: Perfetto (trace events), CSV, Graphviz dot.  Each gives the text of a
file.
"""

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

from leakprobe.model.finding import PathRow
from leakprobe.model.media import family
from leakprobe.model.report import Report
from leakprobe.model.rows import MEMORY_COLUMNS, MemoryRow, TimelineRow, live_bytes
from leakprobe.report.clean import clean
from leakprobe.report.text import amount_of, what_grows

#: One event of a trace; which keys it has depends on its "ph".
TraceEvent = dict[str, Any]


def to_perfetto(report: Report) -> str:
    """Trace events as JSON: a counter for RSS, each medium and each CUDA device's cache, a slice for each
    step, an instant for each finding.

    Format: "Trace Event Format" of the Chromium project; ts is in microseconds since the watch began.
    """
    pid = report.run.get("pid", 1)
    name = clean(report.run.get("program", "program"))
    events: list[TraceEvent] = [
        {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}
    ]
    before = 0.0
    for row, memory in zip(report.timeline, report.memory):
        at = round(row["time"] * 1e6)
        events.append(slice_of_step(pid, row["step"], before, at))
        events += counters_of_mark(pid, at, row, memory)
        before = at
    for number, finding in enumerate(report.findings, 1):
        text = clean(f"finding {number}: {amount_of(finding)} {what_grows(finding)}")
        events.append(
            {"ph": "i", "s": "p", "name": text, "cat": "finding", "pid": pid, "tid": 1, "ts": before}
        )
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}, allow_nan=False) + "\n"


def slice_of_step(pid: int, step: int, began: float, ended: float) -> TraceEvent:
    return {
        "ph": "X",
        "name": f"step {step}",
        "cat": "step",
        "pid": pid,
        "tid": 1,
        "ts": began,
        "dur": max(0, ended - began),
    }


def counters_of_mark(pid: int, at: float, row: TimelineRow, memory: MemoryRow) -> list[TraceEvent]:
    """The media's live bytes, then what is known of the process and, where a look was taken, of the devices
    ("cuda:0 reserved").
    """
    media = [
        counter(pid, at, f"{medium} live bytes", m["live_bytes"])
        for medium, m in sorted(row["media"].items())
    ]
    keys = [*MEMORY_COLUMNS, *sorted(key for key in memory if family(key) == "cuda")]
    known = [key for key in keys if isinstance(memory.get(key), (int, float))]
    return [*media, *(counter(pid, at, clean(key), memory[key]) for key in known)]


def counter(pid: int, at: float, name: str, value: float) -> TraceEvent:
    return {"ph": "C", "name": name, "pid": pid, "tid": 0, "ts": at, "args": {"bytes": value}}


def to_csv(report: Report) -> str:
    """One row per mark: step, epoch, time, memory of the process, live bytes per medium."""
    media = sorted({name for row in report.timeline for name in row["media"]})
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["step", "epoch", "time", *MEMORY_COLUMNS, *(clean(f"live_{name}") for name in media)])
    for row, memory in zip(report.timeline, report.memory):
        known = [
            memory.get(key) if isinstance(memory.get(key), (int, float)) else "" for key in MEMORY_COLUMNS
        ]
        live = [live_bytes(row["media"], name) for name in media]
        writer.writerow([row["step"], row["epoch"], f"{row['time']:.6f}", *known, *live])
    return out.getvalue()


def to_dot(report: Report) -> str:
    """Paths and cycles of all findings as a graph for Graphviz; elements that read the same are one node."""
    lines = [
        "digraph leakprobe {",
        '  rankdir=LR; node [shape=box, fontname="sans-serif", fontsize=10]; edge [fontname="sans-serif", fontsize=9];',
    ]
    nodes: dict[tuple[str, ...], str] = {}
    for number, finding in enumerate(report.findings, 1):
        last = path_edges(finding.path or [], nodes, lines)
        end = ring_edges(finding.cycle or [], number, lines)
        target = f"finding{number}"
        lines.append(
            f"  {target} [label={quoted(f'{number}  {amount_of(finding)} | {what_grows(finding)}')}, style=filled, fillcolor=mistyrose];"
        )
        if last or end:
            lines.append(f"  {last or end} -> {target};")
    return "\n".join([*lines, "}"]) + "\n"


def path_edges(path: Sequence[PathRow], nodes: dict[tuple[str, ...], str], lines: list[str]) -> str | None:
    """Add the elements of a path and the edges between them; the node of the last."""
    previous: str | None = None
    prefix: tuple[str, ...] = ()
    for element in path:
        prefix = (*prefix, element["text"])
        if prefix not in nodes:
            nodes[prefix] = f"n{len(nodes)}"
            lines.append(f"  {nodes[prefix]} [label={quoted(element['text'])}];")
            if previous is not None:
                lines.append(f"  {previous} -> {nodes[prefix]} [label={quoted(element['edge'])}];")
        previous = nodes[prefix]
    return previous


def ring_edges(cycle: Sequence[PathRow], number: int, lines: list[str]) -> str | None:
    """Add a cycle, whose last element is its first again; the node of the first."""
    if not cycle:
        return None
    names = [f"c{number}_{i}" for i in range(max(1, len(cycle) - 1))]
    lines += [f"  {name} [label={quoted(e['text'])}];" for name, e in zip(names, cycle)]
    for i, name in enumerate(names):
        lines.append(
            f"  {name} -> {names[(i + 1) % len(names)]} [label={quoted(cycle[min(i + 1, len(cycle) - 1)]['edge'])}];"
        )
    return names[0]


def quoted(text: object) -> str:
    """A string of the dot language."""
    escaped = clean(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


FORMATS = {"perfetto": to_perfetto, "csv": to_csv, "dot": to_dot}
