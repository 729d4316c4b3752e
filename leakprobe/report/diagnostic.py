"""The report as a compiler's diagnostics: what grows, the lines of source, who keeps it, what to change."""

import dataclasses
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TextIO

from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.table import Table
from rich.text import Text

from leakprobe.model.causes import printed
from leakprobe.model.finding import Finding, PathRow
from leakprobe.model.frames import PACKAGE_DIR, Frame, is_user_file, library_dirs
from leakprobe.model.report import Report
from leakprobe.model.rows import PeakRow
from leakprobe.model.source import excerpts, places_of
from leakprobe.model.units import format_size
from leakprobe.report.clean import clean
from leakprobe.report.places import grown_at, is_file, place_of
from leakprobe.report.text import (
    PATH_HEAD,
    PATH_TAIL,
    VERDICT_STYLE,
    amount_of,
    cause_text,
    console_for,
    frame_text,
    stack_text,
    verdict_line,
    what_grows,
)
from leakprobe.report.trees import cycle_lines, shortened, tree_lines

#: Lines of source above and below the one that is meant.
AROUND = 1
#: What a finding stands below, and what its lines are indented by.
INDENT = 3
#: Columns of a label and the space behind it.
LABEL = 11
#: How Finding.fix says the change of a line: "what to do: `before` becomes `after`".
CODE, BECOMES = ": `", "` becomes `"
Sources = Mapping[str, Mapping[int, str]]


@dataclasses.dataclass(frozen=True)
class Mark:
    """One line that a finding names: what it does, and whether the finding stands there."""

    frame: Frame
    does: str
    is_main: bool


def print_report(report: Report, file: TextIO | None = None, *, verbose: bool = False) -> None:
    """Verdict first, then findings and notes, then what could not be seen."""
    with console_for(file) as console:
        say(console, Text(verdict_line(report), style=VERDICT_STYLE[report.verdict]), indent=0)
        texts = excerpts(places_of(report.findings)) if report.source is None else report.source
        for number, finding in enumerate(report.findings, 1):
            console.print()
            print_finding(console, number, finding, texts, verbose)
        if report.notes:
            console.print()
        for note in report.notes:
            head = Text.assemble((f"note[{code_of(note.kind)}]", "cyan"), ": ")
            say(console, head + Text(clean(note.text)), indent=0, hang=INDENT)
        print_media(console, report, verbose)


def code_of(cause: str) -> str:
    """ "graph-kept": what `leakprobe explain` takes."""
    return printed(clean(cause))


def print_finding(console: Console, number: int, finding: Finding, texts: Sources, verbose: bool) -> None:
    head = Text.assemble(
        (f"leak[{code_of(finding.cause)}]", "bold red"), (f": {clean(cause_text(finding))}", "bold")
    )
    say(console, head, indent=0, lead=Text(f"{number}  ", style="bold"))
    say(console, Text(f"{amount_of(finding)}   {clean(what_grows(finding))}"))
    marks = marks_of(finding)
    print_places(console, finding, marks, texts)
    print_trees(console, finding, verbose)
    rows = [("because", Text(clean(finding.evidence)))]
    if has_inner_frames(finding):
        rows.insert(0, ("allocated", Text(clean(stack_text(finding)))))
    advice, old, new = change_of(finding)
    if advice:
        rows.append(("help", Text(clean(advice), style="bold green")))
    for label, text in rows:
        labelled(console, label, text)
    print_change(console, old, new, marks, texts)
    if finding.cause != "unknown":
        labelled(console, "more", Text(f"leakprobe explain {code_of(finding.cause)}", style="dim"))


# ---- lines ----


def say(
    console: Console, text: Text, *, indent: int = INDENT, hang: int = 0, lead: Text | None = None
) -> None:
    """The text folded to the width, behind ``indent`` columns; its later lines below the end of ``lead``, or
    behind ``hang`` columns more.
    """
    before = Text(" " * indent) + (lead or "")
    hang += cell_len(before.plain)
    width = max(10, console.width - hang)
    for at, line in enumerate(text.wrap(console, width, overflow="fold")):
        line.rstrip()
        console.print((Text(" " * hang) if at else before) + line, soft_wrap=True)


def labelled(console: Console, label: str, text: Text) -> None:
    """ "   because   51 kept since step 5"."""
    say(console, text, lead=Text(f"{label:{LABEL}}", style="dim"))


# ---- places and source ----


def marks_of(finding: Finding) -> list[Mark]:
    """The lines that a finding names, its own first: where its holder grows if that is the
    user's, else where it is allocated.
    """
    grows, born = grown_at(finding), finding.allocation
    holder = f"grows {finding.holder['text']}" if finding.holder else "grows"
    if grows is None:
        main = place_of(finding)
        return [Mark(main, "allocates", True)] if main is not None else []
    if born is None or (born.filename, born.lineno) == (grows.filename, grows.lineno):
        return [Mark(grows, f"allocates, and {holder}" if born is not None else holder, True)]
    of_library = is_user_file(born.filename) and not is_user_file(grows.filename)
    found = [Mark(grows, holder, not of_library), Mark(born, "allocates", of_library)]
    return sorted(found, key=lambda mark: not mark.is_main)


def print_places(console: Console, finding: Finding, marks: list[Mark], texts: Sources) -> None:
    """The lines with source around them; those close together in one block."""
    if not marks:
        say(console, Text("--> line not known", style="blue"))
    shown: set[Mark] = set()
    digits = len(str(max((mark.frame.lineno + AROUND for mark in marks), default=0)))
    for mark in marks:
        if mark in shown:
            continue
        near = [m for m in marks if is_near(m, mark)]
        shown |= set(near)
        source = texts.get(mark.frame.filename, {})
        lines = [] if mark.frame.lineno not in source else block(near, source)
        arrow = "-->" if mark.is_main else ":::"
        does = "" if lines else f", {clean(mark.does)}"
        say(console, Text.assemble((f"{arrow} ", "blue"), place_text(mark.frame) + does), hang=4)
        for line in lines:
            print_line(console, line, digits)


def place_text(frame: Frame) -> str:
    """ "train.py:58 in step"."""
    inside = "" if frame.function == "<module>" else f" in {clean(frame.function)}"
    return f"{shown_file(frame.filename)}:{frame.lineno}{inside}"


def is_near(mark: Mark, other: Mark) -> bool:
    same = mark.frame.filename == other.frame.filename
    return same and abs(mark.frame.lineno - other.frame.lineno) <= AROUND + 1


def block(marks: list[Mark], source: Mapping[int, str]) -> list[tuple[int, str, Mark | None]]:
    """(line number, its text, what is marked there) of each line from above the first to below the last."""
    numbers = sorted(mark.frame.lineno for mark in marks)
    by_line = {mark.frame.lineno: mark for mark in marks}
    found = range(numbers[0] - AROUND, numbers[-1] + AROUND + 1)
    rows = [(n, clean(source[n].expandtabs(4).rstrip()), by_line.get(n)) for n in found if n in source]
    while rows and not rows[-1][1]:
        rows.pop()
    return rows[not rows[0][1] :] if rows else []


def print_line(console: Console, row: tuple[int, str, Mark | None], digits: int) -> None:
    """A line of source, cut at the width; below a marked one an underline and what it does."""
    number, text, mark = row
    width = max(10, console.width - INDENT - digits - 3)
    gutter = " " * INDENT + f"{number:{digits}} | "
    if cell_len(text) > width:
        text = chop_cells(text, width - 3)[0] + "..."
    console.print(Text.assemble((gutter, "blue"), text), soft_wrap=True)
    if mark is None:
        return
    code = text.lstrip()
    lead, style = len(text) - len(code), "bold red" if mark.is_main else "yellow"
    below = Text(" " * (INDENT + digits) + " | ", style="blue")
    line = ("^" if mark.is_main else "-") * cell_len(code)
    does = clean(mark.does)
    if lead + cell_len(line) + 1 + cell_len(does) <= width:
        console.print(Text.assemble(below, (f"{' ' * lead}{line} {does}", style)), soft_wrap=True)
        return
    console.print(Text.assemble(below, (" " * lead + line, style)), soft_wrap=True)
    for part in Text(does, style=style).wrap(console, max(10, width - lead), overflow="fold"):
        part.rstrip()
        console.print(Text.assemble(below, " " * lead, part), soft_wrap=True)


def shown_file(filename: str) -> str:
    """The name from the current folder on, or from that of packages or of the standard library, else all of
    it.
    """
    if not is_file(filename):
        return clean(filename or "?")
    if filename.startswith(PACKAGE_DIR):
        return clean(f"leakprobe/{filename.removeprefix(PACKAGE_DIR)}")
    parts = filename.split("/")
    for folder in ("site-packages", "dist-packages"):
        if folder in parts:
            return clean("/".join(parts[parts.index(folder) + 1 :]))
    for folder in library_dirs():
        if filename.startswith(folder):
            return clean(filename.removeprefix(folder))
    try:
        relative = os.path.relpath(filename)
    except (OSError, ValueError):  # the folder is gone
        return clean(filename)
    return clean(filename if relative.split(os.sep)[0] == os.pardir else relative)


def has_inner_frames(finding: Finding) -> bool:
    """True if more is known of the allocation than the user's own line."""
    stack = finding.allocation_stack
    return bool(stack) and (finding.allocation is None or stack[0] != finding.allocation)


# ---- who keeps it ----


def print_trees(console: Console, finding: Finding, verbose: bool) -> None:
    if finding.path:
        path = finding.path if verbose else shortened(finding.path, PATH_HEAD, PATH_TAIL)
        print_tree(console, "kept by", tree_lines(path))
    if finding.cycle:
        cycle: list[PathRow] = finding.cycle if verbose else shortened(finding.cycle, PATH_HEAD, PATH_TAIL)
        print_tree(console, "cycle", cycle_lines(cycle))


def print_tree(console: Console, title: str, lines: Iterable[str]) -> None:
    say(console, Text(title, style="dim"))
    for line in lines:
        style = "red" if "~~" in line[:6] else ""
        say(console, Text(line, style=style), hang=INDENT)


# ---- what to change ----


def change_of(finding: Finding) -> tuple[str, str, str]:
    """(advice, code before, code after) of Finding.fix; what it does not have is empty."""
    fix = finding.fix or ""
    advice, _, rest = fix.partition(CODE)
    old, found, new = rest.removesuffix("`").rpartition(BECOMES)
    return (advice, old, new) if found and rest.endswith("`") else (fix, "", "")


def print_change(console: Console, old: str, new: str, marks: list[Mark], texts: Sources) -> None:
    """The line before and after the change, whole where its source is known."""
    if not old:
        return
    before, after = old, new
    for text in (texts.get(m.frame.filename, {}).get(m.frame.lineno, "") for m in marks):
        if old in text:
            before, after = text.strip(), text.strip().replace(old, new, 1)
            break
    for sign, code, style in (("-", before, "red"), ("+", after, "green")):
        say(console, Text(clean(code), style=style), lead=Text(f"{'':{LABEL}}{sign} ", style=style))


# ---- what was seen ----


def print_media(console: Console, report: Report, verbose: bool) -> None:
    """What was not seen, by the reason; with ``verbose`` all kinds of memory in a table, and
    what was live at their highest points.
    """
    if not report.media:
        return
    if verbose:
        for peak in report.peaks:
            console.print()
            console.print(peak_table(peak))
        console.print()
        console.print(media_table(report))
        return
    why: dict[str, list[str]] = {}
    for name, row in report.media.items():
        if not row["active"]:
            why.setdefault(row["why_not"] or "not active", []).append(name)
    if why:
        console.print()
    for reason, names in why.items():
        say(
            console,
            Text(clean(f"not seen: {', '.join(names)} ({reason})"), style="dim"),
            indent=0,
            hang=INDENT,
        )


def peak_table(row: PeakRow) -> Table:
    """What was live at the highest point of a medium, by role and line."""
    title = (
        f"{clean(row['medium'])} at its highest reading, {format_size(row['bytes'])} in step {row['step']:,}"
    )
    table = Table(
        box=None, pad_edge=False, header_style="dim", style="dim", title=Text(title), title_justify="left"
    )
    table.add_column("role")
    table.add_column("count", justify="right")
    table.add_column("bytes", justify="right")
    table.add_column("allocated at", overflow="fold")
    for part in row["parts"]:
        place = frame_text(part["allocation"]) if part["allocation"] else "line not known"
        table.add_row(part["role"], f"{part['count']:,}", format_size(part["bytes"]), Text(clean(place)))
    return table


def media_table(report: Report) -> Table:
    """Of each kind of memory live bytes and the mechanism that saw them, or why it was not seen."""
    table = Table(box=None, pad_edge=False, header_style="dim", style="dim")
    table.add_column("memory")
    table.add_column("live", justify="right")
    table.add_column("seen by", overflow="fold")
    for name, live, seen in media_rows(report):
        table.add_row(clean(name), live, Text(clean(seen)))
    return table


def media_rows(report: Report) -> Iterator[tuple[str, str, str]]:
    for name, row in report.media.items():
        live = format_size(row["live_bytes"]) if row["active"] else "-"
        yield name, live, str(row["mechanism"]) if row["active"] else f"not seen: {row['why_not']}"
