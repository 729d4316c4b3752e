"""Findings of growth of the process, and of processes it began, that nothing else explains."""

import dataclasses
from collections.abc import Iterable

from leakprobe.judge.rises import Rise
from leakprobe.model.finding import Finding, Note
from leakprobe.model.media import PRIVATE
from leakprobe.model.thresholds import LEAST_UNEXPLAINED
from leakprobe.model.units import format_rate, format_size
from leakprobe.watch.children import Children
from leakprobe.watch.count_findings import finding_of_bytes

FIX = "enter leakprobe.watch() in what that process runs, which finds the line, or let it end now and then"


def explained_by(findings: Iterable[Finding], notes: Iterable[Note]) -> float:
    """Bytes a step of private memory that findings and notes account for."""
    rows = [(f.medium, f.bytes_per_step) for f in findings] + [(n.medium, n.bytes_per_step) for n in notes]
    return sum(rate for medium, rate in rows if medium in PRIVATE and rate is not None)


def unexplained(rise: Rise | None, explained: float, seen: float, beside: float) -> Finding | None:
    """A finding of what is not explained, if that is more than what is: one leak is one finding.

    Bytes a step: ``explained`` by findings and notes; ``seen`` at any line, below the limit too; ``beside``:
    what libraries may keep for what is seen, such as the C++ side of a tensor.
    """
    known = max(explained, seen) + beside
    if rise is None or rise.slope - known < max(LEAST_UNEXPLAINED, known):
        return None
    seen_part = f", of which at most {format_rate(known)} is accounted for" if known else ""
    evidence = (
        f"private memory of the process rose at {rise.rises} of {rise.of} readings, by "
        f"{format_size(rise.total)} between step {rise.first[0]} and step {rise.last[0]}{seen_part}; "
        "neither objects, buffers nor malloc's blocks explain it"
    )
    found = finding_of_bytes("unexplained_growth", "native", [], rise, evidence)
    rate = rise.slope - known
    return dataclasses.replace(found, bytes_per_step=round(rate, 1), live_bytes=int(rise.came_at(rate)))


def of_children(children: Children, limit: float) -> Finding | None:
    """A finding of the child processes that grow and are not watched: what they keep is not seen."""
    rises = sorted(children.rises(limit), key=lambda one: -one[1].slope)
    if not rises:
        return None
    (who, most), others = rises[0], len(rises) - 1
    if others:
        who += f", and of {others} other child process{'es' if others > 1 else ''},"
    total, slope = sum(rise.total for _, rise in rises), sum(rise.slope for _, rise in rises)
    evidence = (
        f"private memory of {who} rose at {most.rises} of {most.of} readings, by {format_size(total)} "
        f"between step {most.first[0]} and step {most.last[0]}; it is not watched"
    )
    found = finding_of_bytes("unexplained_growth", "worker", [], most, evidence)
    return dataclasses.replace(found, fix=FIX, bytes_per_step=round(slope, 1), live_bytes=int(total))
