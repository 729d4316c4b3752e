"""From counts that rise to findings: descriptors, threads, child processes, segments of shared memory."""

import dataclasses
import os
from collections.abc import Sequence

from leakprobe import _core
from leakprobe.judge.entries import holder_of, stack_of
from leakprobe.judge.fingerprints import fingerprint, without_numbers
from leakprobe.judge.merging import comes_with
from leakprobe.judge.rises import Rise
from leakprobe.model.entry import Entry, Path, nodes_of, rows_of, sum_series
from leakprobe.model.finding import Finding
from leakprobe.model.frames import Frame, FrameTuple, innermost_user_frame
from leakprobe.model.thresholds import HALF, LAG
from leakprobe.model.units import COUNT_DIGITS
from leakprobe.watch.engine import Engine
from leakprobe.watch.resources import Makers, Resources

#: Types whose objects hold a descriptor each.
DESCRIPTOR_TYPES = frozenset(
    {
        "_io.FileIO",
        "socket.socket",
        "_socket.socket",
        "ssl.SSLSocket",
        "mmap.mmap",
        "posix.ScandirIterator",
        "select.epoll",
        "multiprocessing.connection.Connection",
        "os.DirEntry",
    }
)
PROCESS_TYPES = frozenset({"subprocess.Popen"})
#: Types whose objects hold a segment of shared memory each.
SEGMENT_TYPES = frozenset({"mmap.mmap", "multiprocessing.shared_memory.SharedMemory"})
WORDS = {
    "fd": ("open descriptors", "descriptor"),
    "thread": ("threads", "thread"),
    "process": ("child processes", "process"),
    "shared": ("segments of shared memory", "segment"),
}
FIXES = {
    "fd": ("never_closed", "close it when you are done with it, ideally in a with statement"),
    "shared": ("never_closed", "close() the segment when you are done with it, and unlink() its name"),
    "thread": (
        "never_ended",
        "end the thread (an event it waits for with a timeout) and join() it, or use one pool",
    ),
    "process": ("never_ended", "end the process and wait for it (join(), wait()), or use one pool"),
}
#: What resources call descriptors of shared memory.
SHARED_KIND = "shm"
#: Causes that a more telling one may replace.
VAGUE_CAUSES = frozenset(
    {"growing_container", "growing_attribute", "unbounded_cache", "held_outside_python", "unknown"}
)


def add_count(medium: str, rise: Rise, engine: Engine, entries: list[Entry], findings: list[Finding]) -> None:
    makers = makers_of(medium, engine)
    is_shared = medium == "fd" and engine.resources.fastest_kind() == SHARED_KIND
    entry = next((e for e in entries if carries(e, makers, rise, is_shared)), None)
    if entry is not None:
        if entry.kind == "garbage" and _core.QuietCollector.is_on_outside():
            return
        place = next((i for i, f in enumerate(findings) if is_of(f, entry)), None)
        if place is not None:
            findings[place] = attached(findings[place], medium, rise, engine.resources)
            return
    found = count_finding(medium, rise, entry, makers, engine)
    place = next((i for i, f in enumerate(findings) if says_already(f, found, entries)), None)
    if place is not None:
        findings[place] = attached(findings[place], medium, rise, engine.resources)
    else:
        findings.append(found)


def makers_of(medium: str, engine: Engine) -> Makers:
    """{(type, site): live ones of births since the warm-up} of the Python objects that hold what grows."""
    known: Makers = engine.resources.makers.get(medium, {})
    types = {"fd": DESCRIPTOR_TYPES, "process": PROCESS_TYPES, "shared": SEGMENT_TYPES}.get(
        medium, frozenset()
    )
    groups = engine.last_look.suspects if engine.last_look else ()
    since = engine.warmup
    return known | {
        (g.type, g.site): round(sum(count for step, count, _ in g.series if step >= since))
        for g in groups
        if g.type in types
    }


def carries(entry: Entry, makers: Makers, rise: Rise, is_shared: bool = False) -> bool:
    """True if the members of a traced entry are the makers of at least half of the rise, up to the walk that
    met them; where descriptors of shared memory rise, blocks of that are: each keeps its own.
    """
    series = sum_series(
        m.series for m in entry.members if (m.type, m.site) in makers or (is_shared and m.medium == "shared")
    )
    last = max((step for step, _, _ in series), default=rise.first[0])
    until_then = min(rise.total, rise.slope * (last - rise.first[0]))
    return bool(series) and sum(count for _, count, _ in series) >= HALF * until_then


def is_of(finding: Finding, entry: Entry) -> bool:
    """True if a finding was made of a traced entry."""
    return bool(finding.path and entry.path) and shape(nodes_of(finding.path)) == shape(entry.path)


def says_already(finding: Finding, found: Finding, entries: Sequence[Entry] = ()) -> bool:
    """True if a finding of objects says already what the count would: one line opens or begins them, or as
    many come that have to be closed as descriptors of which no object is known.
    """
    if finding.cause != found.cause:
        return False
    line = found.allocation
    is_one_line = line is not None and (line.filename, line.lineno) in lines_of_kept(finding, entries)
    is_unknown = found.medium == "fd" and found.type is None
    is_at_once = abs((found.onset_step or 0) - (finding.onset_step or 0)) <= LAG
    return is_one_line or (is_unknown and is_at_once and comes_with(found, finding))


def lines_of_kept(finding: Finding, entries: Sequence[Entry]) -> set[tuple[str, int]]:
    """(file, line) of the user's lines that made what a finding says is kept, or put it where it is."""
    sites = {m.site for e in entries if is_of(finding, e) for m in e.members}
    made = (innermost_user_frame(stack_of(site)) for site in sites)
    lines = {(user[0], user[1]) for user in made if user is not None}
    if finding.allocation is not None:
        lines.add((finding.allocation.filename, finding.allocation.lineno))
    grown_at = finding.holder["grown_at"] if finding.holder is not None else None
    if grown_at is not None:
        lines.add((grown_at["filename"], grown_at["lineno"]))
    return lines


def shape(path: Path) -> list[tuple[str, str | None, str]]:
    return [(node.edge, node.type, without_numbers(node.text)) for node in path]


def attached(finding: Finding, medium: str, rise: Rise, resources: Resources) -> Finding:
    """The finding with the rise of what its objects hold.  Tensors in shared memory can't be closed: their
    descriptors go with them, and what keeps them is the cause.
    """
    found = dataclasses.replace(
        finding, evidence=f"{finding.evidence}; {evidence_of(medium, rise, resources)}"
    )
    if found.cause not in VAGUE_CAUSES or found.medium == "shared":
        return found
    cause, fix = FIXES[medium]
    return dataclasses.replace(found, cause=cause, fix=f"{fix}{line_of(found.allocation)}")


def evidence_of(medium: str, rise: Rise, resources: Resources) -> str:
    words = WORDS[medium][0]
    kind = resources.fastest_kind() if medium == "fd" else None
    return (
        f"{words} rose at {rise.rises} of {rise.of} marks, from {rise.first[1]:,} to {rise.last[1]:,} "
        f"between step {rise.first[0]} and step {rise.last[0]}{f', most of kind {kind}' if kind else ''}"
    )


def line_of(frame: Frame | None) -> str:
    return f", {os.path.basename(frame.filename)}:{frame.lineno}" if frame else ""


def count_finding(medium: str, rise: Rise, entry: Entry | None, makers: Makers, engine: Engine) -> Finding:
    key = maker_of_most(makers, rise)
    stack: Sequence[FrameTuple] = stack_of(key[1]) if key else []
    measured = ""
    if medium == "fd" and not stack:
        stack, measured = engine.native_lines.verdict(rise.slope, medium)
    user = innermost_user_frame(stack)
    allocation = Frame(*user) if user else None
    cause, fix = FIXES[medium]
    return Finding(
        fingerprint=fingerprint("resource_growth", entry.path if entry else (), medium, stack),
        kind="resource_growth",
        pattern="per_step",
        medium=medium,
        type=key[0] if key else None,
        bytes_per_step=0.0,
        count_per_step=round(rise.slope, COUNT_DIGITS),
        live_bytes=0,
        live_count=int(rise.total),
        confidence=rise.confidence,
        evidence=evidence_of(medium, rise, engine.resources) + (f"; {measured}" if measured else ""),
        allocation=allocation,
        allocation_stack=[Frame(*f) for f in stack],
        holder=holder_of(entry) if entry else None,
        path=rows_of(entry.path) if entry else None,
        cycle=rows_of(entry.cycle) if entry else None,
        cause=cause,
        fix=f"{fix}{line_of(allocation)}",
        onset_step=rise.first[0],
    )


def finding_of_bytes(
    kind: str, medium: str, stack: Sequence[FrameTuple], rise: Rise, evidence: str
) -> Finding:
    """Of bytes that rise and no object stands for, at the line of a stack; cause and fix are the caller's."""
    user = innermost_user_frame(stack)
    return Finding(
        fingerprint=fingerprint(kind, (), medium, stack),
        kind=kind,
        pattern="per_step",
        medium=medium,
        type=None,
        bytes_per_step=round(rise.slope, 1),
        count_per_step=0.0,
        live_bytes=int(rise.total),
        live_count=0,
        confidence=rise.confidence,
        evidence=evidence,
        allocation=Frame(*user) if user else None,
        allocation_stack=[Frame(*f) for f in stack],
        holder=None,
        path=None,
        cycle=None,
        cause="unknown",
        fix=None,
        onset_step=rise.first[0],
    )


def maker_of_most(makers: Makers, rise: Rise) -> tuple[str | None, int] | None:
    """The (type, site) that made at least half of what rose, or None: a line is not guessed."""
    key = max(makers, key=lambda key: makers[key], default=None)
    return key if key is not None and makers[key] >= HALF * rise.total else None
