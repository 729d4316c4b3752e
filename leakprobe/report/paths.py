"""Findings with their whole path and stack, and cycles, as trees."""

from collections.abc import Iterable, Sequence
from typing import TextIO

from rich.console import Console
from rich.text import Text

from leakprobe.model.finding import Finding, Note
from leakprobe.model.frames import Frame
from leakprobe.model.report import Report
from leakprobe.model.source import excerpts, places_of
from leakprobe.report.clean import clean
from leakprobe.report.diagnostic import place_text, print_finding, print_tree, say
from leakprobe.report.text import console_for
from leakprobe.report.trees import cycle_lines


def print_path(number: int, finding: Finding, report: Report, file: TextIO | None) -> None:
    """One finding of a report with all of its path, its cycle and its stack."""
    texts = excerpts(places_of([finding])) if report.source is None else report.source
    with console_for(file) as console:
        print_finding(console, number, finding, texts, verbose=True)
        if not finding.path and not finding.cycle:
            say(console, Text("who keeps it is not known"))
        print_stack(console, finding.allocation_stack)
        console.print()
        say(console, Text(f"fingerprint {clean(finding.fingerprint)}", style="dim"), indent=0)


def print_cycles(items: Iterable[Finding | Note], file: TextIO | None) -> int:
    """The cycles of findings and notes; how many there are."""
    with console_for(file) as console:
        found = [(item, item.cycle) for item in items if item.cycle]
        for number, (item, cycle) in enumerate(found, 1):
            said = item.text if isinstance(item, Note) else item.evidence
            say(console, Text(clean(f"{number}  {item.medium}, {said}"), style="bold"), indent=0, hang=3)
            print_tree(console, "cycle", cycle_lines(cycle))
            print_stack(console, item.allocation_stack or [])
            console.print()
        if not found:
            console.print("no reference cycles were recorded")
    return len(found)


def print_stack(console: Console, stack: Sequence[Frame]) -> None:
    if not stack:
        return
    say(console, Text("allocated, innermost first", style="dim"))
    for frame in stack:
        say(console, Text(place_text(frame) if frame.filename else clean(frame.function)), indent=6, hang=3)
