"""The report as text: rich on a terminal, plain in a pipe.

Names, paths and file names come from the program that was watched: none is read as markup, and
what a terminal would obey is shown as \\x1b and the like.
"""

import contextlib
import io
import os
import sys
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from leakprobe.model.causes import CAUSES
from leakprobe.model.finding import Finding, PathRow, first_wrong
from leakprobe.model.frames import Frame, FrameRow
from leakprobe.model.report import MIN_STEPS, Report
from leakprobe.model.units import format_rate, format_size
from leakprobe.report.clean import clean

#: Elements of a path that are shown at its start and at its end; between them stands "...".
PATH_HEAD, PATH_TAIL = 8, 6
KEPT_BY, ARROW = "kept by", " -> "
STACK_FRAMES = 5


#: Columns in a pipe, unless COLUMNS says otherwise.
PIPE_WIDTH = 120


@contextlib.contextmanager
def console_for(file=None):
    """A console whose text goes to ``file`` (standard output) at the end of the block, without trailing
    spaces.
    """
    file = file or sys.stdout
    terminal = bool(getattr(file, "isatty", bool)())
    width = None if terminal or os.environ.get("COLUMNS", "").isdigit() else PIPE_WIDTH
    encoding = getattr(file, "encoding", None) or "utf-8"
    buffer = Buffer(encoding)
    console = Console(file=buffer, force_terminal=terminal, force_jupyter=False, width=width, highlight=False)
    yield console
    text = "".join(line.rstrip() + "\n" for line in buffer.getvalue().splitlines())
    file.write(text.encode(encoding, "backslashreplace").decode(encoding))


class Buffer(io.StringIO):
    """Text for a file of some encoding: where that is not Unicode, rich draws trees and tables in ASCII."""

    encoding = "utf-8"

    def __init__(self, encoding: str):
        super().__init__()
        self.encoding = encoding


def print_report(report, file=None) -> None:
    """Verdict first, then findings, notes and what could be seen."""
    with console_for(file) as console:
        console.print(Text(verdict_line(report), style=VERDICT_STYLE[report.verdict]))
        for number, finding in enumerate(report.findings, 1):
            console.print()
            print_finding(console, number, finding)
        if report.notes:
            console.print()
        for note in report.notes:
            console.print(Text.assemble(("note  ", "cyan"), clean(f"{note.kind}: {note.text}")))
        if report.media:
            console.print()
            console.print(media_table(report))


VERDICT_STYLE = {"growing": "bold red", "steady": "bold green", "inconclusive": "bold yellow"}


def verdict_line(report: Report) -> str:
    """The first line of a report."""
    warmup, steps = report.steps["warmup"], counted(report.steps["measured"], "step")
    end = sum(report.steps.values())
    as_of = f", as of step {report.as_of_step:,}" if report.as_of_step < end else ""
    if report.verdict == "growing":
        return f"growing: {counted(len(report.findings), 'finding')} in {steps} ({warmup} warm-up){as_of}"
    if report.verdict == "steady":
        return f"steady: nothing grows ({steps} measured, {warmup} warm-up){as_of}"
    if report.steps["measured"] >= MIN_STEPS:
        return (
            f"inconclusive: what may grow came too rarely for a verdict ({steps} measured, {warmup} warm-up)"
        )
    return f"inconclusive: {steps} measured, at least {MIN_STEPS} are needed"


def counted(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def print_finding(console, number, finding) -> None:
    head = Text.assemble(
        (f"{number}  ", "bold"),
        ("CYCLE" if finding.kind == "reference_cycle" else "LEAK", "bold red"),
        f"  {amount_of(finding)}   {clean(what_grows(finding))}",
    )
    console.print(head)
    grid = Table.grid(padding=(0, 2))
    grid.add_column(width=12, no_wrap=True)
    grid.add_column(overflow="fold")
    for label, text in rows_of(finding):
        shown = Text(clean(text))
        if label == KEPT_BY:
            underline_wrong(shown, finding.path or [])
        grid.add_row(Text("   " + label, style="dim"), shown)
    console.print(grid)


#: What is counted where there are no bytes to tell.
COUNTED = {
    "fd": "descriptor",
    "thread": "thread",
    "process": "child process",
    "shared": "segment",
}


def amount_of(finding: Finding) -> str:
    """ "+6.0 MiB/step   360 MiB live", or "+1 descriptor/step   65 live" of what has no bytes."""
    if finding.kind == "resource_growth" and not finding.bytes_per_step:
        return f"+{finding.count_per_step:g} {COUNTED.get(finding.medium, finding.medium)}/step   {finding.live_count:,} live"
    return f"{format_rate(finding.bytes_per_step)}   {format_size(finding.live_bytes)} live"


def amounts(finding: Finding) -> str:
    """ "+6.0 MiB/step, 360 MiB live": for the middle of a text."""
    return amount_of(finding).replace("   ", ", ")


def what_grows(finding: Finding) -> str:
    """ "12.0 torch.Tensor a step, cpu"."""
    if finding.kind == "native_growth":
        return "memory of native code (native)"
    if finding.kind == "unexplained_growth":
        return "memory of the process that nothing else explains"
    if finding.kind == "resource_growth":
        count = f", {finding.count_per_step:g} a step" if finding.bytes_per_step else ""
        return f"{finding.type or 'no Python object known'} ({finding.medium}){count}"
    if finding.cause in ("copy_on_access", "copied_by_collection"):
        return f"pages of {finding.type} ({finding.medium}), no longer shared"
    kind = finding.type or "buffers"
    count = f"{finding.count_per_step:g} a step" if finding.count_per_step else "replaced by larger ones"
    return f"{kind} ({finding.medium}), {count}"


def underline_wrong(shown: Text, path: Sequence[PathRow]) -> None:
    """Underline the first reference of a path that should not be, where it is shown."""
    at = first_wrong(path)
    if at is None:
        return
    before = clean("".join(row["text"] + ARROW for row in path[:at]))
    if shown.plain.startswith(before):
        shown.stylize("underline", len(before), len(before) + len(clean(path[at]["text"])))


def rows_of(finding: Finding) -> Iterator[tuple[str, str]]:
    if finding.path:
        yield KEPT_BY, path_text(finding.path)
    if finding.cycle:
        yield "cycle", path_text(finding.cycle)
    holder = finding.holder
    if holder is not None and holder["grown_at"]:
        yield "grown at", f"{frame_text(holder['grown_at'])}  {holder['text']}"
    if finding.allocation_stack:
        yield "allocated", stack_text(finding)
    else:
        yield "allocated", "line not known"
    yield "because", finding.evidence
    yield "cause", cause_text(finding)
    if finding.fix:
        yield "fix", finding.fix


def cause_text(finding: Finding) -> str:
    return CAUSES.get(finding.cause, finding.cause)


def path_text(path: Sequence[PathRow]) -> str:
    texts = [element["text"] for element in path]
    if len(texts) > PATH_HEAD + PATH_TAIL:
        texts = [*texts[:PATH_HEAD], "...", *texts[-PATH_TAIL:]]
    return ARROW.join(texts)


def frame_text(frame: Frame | FrameRow) -> str:
    row = frame if isinstance(frame, dict) else frame.to_dict()
    return f"{os.path.basename(row['filename'])}:{row['lineno']} {row['function']}"


def stack_text(finding: Finding) -> str:
    """The user's own line, then the innermost frames of what it called; without a user's line, the innermost
    frames.
    """
    frames = list(finding.allocation_stack)
    mine = finding.allocation
    if mine is None or mine not in frames:
        return " <- ".join(frame_text(f) for f in frames[:STACK_FRAMES])
    inner = list(reversed(frames[: frames.index(mine)]))
    if len(inner) > STACK_FRAMES:
        inner = inner[-3:]
        return f"{frame_text(mine)} -> ... -> " + " -> ".join(frame_text(f) for f in inner)
    return " -> ".join(frame_text(f) for f in [mine, *inner])


def media_table(report) -> Table:
    """Per medium: live bytes and the mechanism that saw them, or why it was not seen."""
    table = Table(box=None, pad_edge=False, header_style="dim", style="dim")
    table.add_column("medium")
    table.add_column("live", justify="right")
    table.add_column("seen by", overflow="fold")
    for name, row in report.media.items():
        live = format_size(row["live_bytes"]) if row["active"] else "-"
        seen = row["mechanism"] if row["active"] else f"not seen: {row['why_not']}"
        table.add_row(clean(name), live, Text(clean(seen)))
    return table


def print_rows(title, columns, rows, file) -> None:
    table = Table(box=None, pad_edge=False)
    for name in columns:
        table.add_column(
            name, justify="right" if name in ("size", "count", "retained") else "left", overflow="fold"
        )
    for row in rows:
        table.add_row(*(Text(clean(cell)) for cell in row))
    with console_for(file) as console:
        console.print(Text(title, style="italic"))
        console.print(table)


def print_snapshot(snapshot, file=None, limit: int = 20) -> None:
    rows = [(format_size(r.size), r.count, r.medium, r.type or "", r.where()) for r in snapshot.rows[:limit]]
    print_rows(
        f"snapshot at step {snapshot.step}: {len(snapshot)} rows",
        ["size", "count", "medium", "type", "allocated at"],
        rows,
        file,
    )
    if snapshot.graph is not None:
        print_graph(snapshot.graph, file, limit)


def print_graph(graph, file, limit: int) -> None:
    """Types, dominators and cycles of a snapshot."""
    from leakprobe.report.trees import dominator_lines

    info, cycles = graph.info, graph.cycles
    rows = [
        (format_size(r.retained), format_size(r.size), r.count, r.medium, r.type or "")
        for r in graph.by_type()[:limit]
    ]
    title = f"graph: {info['nodes']:,} objects and buffers, {info['edges']:,} references, {counted(len(cycles), 'cycle')} of garbage"
    print_rows(title, ["retained", "size", "count", "medium", "type"], rows, file)
    with console_for(file) as console:
        console.print(Text("\n retained  largest dominators"))
        for line in dominator_lines(graph.dominators(limit)):
            console.print(Text(line), no_wrap=True, overflow="ellipsis")
        for cycle in cycles[:3]:
            console.print(Text("\n" + cycle.text()))


def print_diff(diff, file=None, limit: int = 20) -> None:
    rows = [
        (format_size(r.size_diff), f"{r.count_diff:+}", r.medium, r.type or "", r.where)
        for r in diff.rows[:limit]
    ]
    columns = ["size", "count", "medium", "type", "allocated at"]
    if any(r.path for r in diff.rows[:limit]):
        columns.append("kept by")
        rows = [(*row, path_text(r.path) if r.path else "") for row, r in zip(rows, diff.rows, strict=False)]
    print_rows(
        f"from step {diff.steps[0]} to step {diff.steps[1]}: {len(diff)} rows changed", columns, rows, file
    )
