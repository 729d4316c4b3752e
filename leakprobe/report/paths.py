"""Retention paths and cycles in full, as trees: with lines on a terminal, indented in a pipe."""

from collections.abc import Iterable, Sequence
from typing import TextIO

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from leakprobe.model.finding import Finding, Note, PathRow
from leakprobe.model.frames import Frame, FrameRow
from leakprobe.report.clean import clean
from leakprobe.report.text import amount_of, cause_text, console_for, frame_text, what_grows


def print_path(number: int, finding: Finding, file: TextIO) -> None:
    """All of the path of one finding, its cycle, its stack in full."""
    with console_for(file) as console:
        console.print(Text(f"{number}  {amount_of(finding)}   {clean(what_grows(finding))}", style="bold"))
        console.print(Text(clean(f"fingerprint {finding.fingerprint}, {cause_text(finding)}"), style="dim"))
        if finding.path:
            console.print()
            console.print(chain(finding.path, "who keeps it, root first"))
        if finding.cycle:
            console.print()
            console.print(ring(finding.cycle))
        grown_at = finding.holder["grown_at"] if finding.holder else None
        if grown_at:
            console.print()
            console.print(Text(clean(f"grown at {full(grown_at)}")))
        print_stack(console, finding.allocation_stack)
        if not finding.path and not finding.cycle:
            console.print("who keeps it is not known")


def print_cycles(items: Iterable[Finding | Note], file: TextIO) -> int:
    """The cycles of findings and notes; how many there are."""
    with console_for(file) as console:
        found = [(item, item.cycle) for item in items if item.cycle]
        for number, (item, cycle) in enumerate(found, 1):
            said = item.text if isinstance(item, Note) else item.evidence
            console.print(Text(clean(f"{number}  {item.medium}, {said}"), style="bold"))
            console.print(ring(cycle))
            print_stack(console, item.allocation_stack or [])
            console.print()
        if not found:
            console.print("no reference cycles were recorded")
    return len(found)


def chain(path: Iterable[PathRow], title: str) -> Tree:
    """Each element under the one that holds it."""
    tree = branch = Tree(Text(title, style="dim"))
    for element in path:
        branch = branch.add(label(element))
    return tree


def ring(cycle: Iterable[PathRow]) -> Tree:
    """The elements one after the other; the last is the first again."""
    tree = Tree(Text("cycle: each refers to the next, the last is the first again", style="dim"))
    for element in cycle:
        tree.add(label(element))
    return tree


def label(element: PathRow) -> Text:
    kind = element.get("type")
    return Text.assemble(
        clean(element["text"]), (clean(f"  {element['edge']}{f', {kind}' if kind else ''}"), "dim")
    )


def print_stack(console: Console, stack: Sequence[Frame | FrameRow]) -> None:
    if not stack:
        return
    console.print(Text("\nallocated, innermost first", style="dim"))
    for frame in stack:
        console.print(Text(clean("  " + full(frame))))


def full(frame: Frame | FrameRow) -> str:
    frame = frame if isinstance(frame, dict) else frame.to_dict()
    return (
        f"{frame['filename']}:{frame['lineno']} {frame['function']}"
        if frame["filename"]
        else frame_text(frame)
    )
