"""What a report says in words, and tables of text: rich on a terminal, plain in a pipe.

Names, paths and file names come from the program that was watched: none is read as markup, and
what a terminal would obey is shown as \\x1b and the like.
"""

import contextlib
import io
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from leakprobe.model.causes import CAUSES
from leakprobe.model.finding import Finding, PathRow
from leakprobe.model.frames import Frame, FrameRow
from leakprobe.model.report import MIN_STEPS, Report
from leakprobe.model.units import counted, format_rate, format_size
from leakprobe.report.clean import clean
from leakprobe.report.streams import encoding_of, stream_of, write

#: Elements of a path that are shown at its start and at its end; between them stands "...".
PATH_HEAD, PATH_TAIL = 7, 3
ARROW = " -> "
STACK_FRAMES = 5


@contextlib.contextmanager
def console_for(file: TextIO | None = None) -> Iterator[Console]:
    """A console whose text goes to ``file`` (standard output) at the end of the block, without trailing
    spaces.

    Width and colours are rich's decision: NO_COLOR, FORCE_COLOR, TERM and COLUMNS count as they do there.
    """
    out = stream_of(file)
    buffer = Buffer(encoding_of(out), bool(getattr(out, "isatty", bool)()))
    console = Console(file=buffer, force_jupyter=False, highlight=False)
    yield console
    write("".join(line.rstrip() + "\n" for line in buffer.getvalue().splitlines()), out)


class Buffer(io.StringIO):
    """Text for a file of some encoding, a terminal or not."""

    encoding = "utf-8"

    def __init__(self, encoding: str, terminal: bool) -> None:
        super().__init__()
        self.encoding, self._terminal = encoding, terminal

    def isatty(self) -> bool:
        return self._terminal


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
    short = report.run.get("too_short")
    if isinstance(short, int):
        have = "1 recording has" if short == 1 else f"{short} recordings have"
        return f"inconclusive: {have} too few steps, at least {MIN_STEPS} measured ones are needed in each"
    if report.steps["measured"] >= MIN_STEPS:
        return (
            f"inconclusive: what may grow came too rarely for a verdict ({steps} measured, {warmup} warm-up)"
        )
    return f"inconclusive: {steps} measured, at least {MIN_STEPS} are needed"


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
    if finding.kind == "unexplained_growth" and finding.medium == "worker":
        return "memory of a child process"
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


def rows_of(finding: Finding) -> Iterator[tuple[str, str]]:
    if finding.path:
        yield "kept by", path_text(finding.path)
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


def print_rows(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], file: TextIO | None
) -> None:
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
