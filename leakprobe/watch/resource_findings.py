"""From the series of resources.py to findings and notes.

A finding that is there already, of the files or threads themselves, gets a sentence; it is not doubled.
"""

import dataclasses
import gc
import os

from leakprobe.judge.entries import holder_of, stack_of
from leakprobe.judge.fingerprints import fingerprint, without_numbers
from leakprobe.model.entry import Entry, Path, nodes_of, rows_of
from leakprobe.model.finding import Finding, Note
from leakprobe.model.frames import Frame, innermost_user_frame
from leakprobe.model.units import format_rate, format_size
from leakprobe.watch.resources import CACHED_SHAPES, PER_BLOCK

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
WORDS = {
    "fd": ("open descriptors", "descriptor"),
    "thread": ("threads", "thread"),
    "process": ("child processes", "process"),
    "shared": ("mapped segments of /dev/shm", "segment"),
}
FIXES = {
    "fd": ("never_closed", "close it when it is done with, best by a with statement"),
    "shared": ("never_closed", "close and unlink the segment when it is done with"),
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


def add_resources(engine, entries: list[Entry], findings: list, notes: list) -> None:
    """Add what grows besides objects and blocks to findings and notes.

    ``entries``: those of the last trace.
    """
    resources = engine.resources
    told = {medium: resources.rise_of(medium) for medium in ("fd", "thread", "process", "shared")}
    for medium, rise in told.items():
        if rise is None or (
            medium == "shared" and (told["fd"] or any(f.medium == "shared" for f in findings))
        ):
            continue
        add_count(medium, rise, engine, entries, findings)
    native = resources.native_rise(bookkeeping_of(engine) + graph_rate(entries))
    if native is not None and resources.may_fill_a_cache(native):
        notes.append(always_new_note(native))
    elif native is not None:
        findings.append(native_finding(native, engine))
    by_size = resources.rise_by_size()
    if by_size is not None and native is None:
        notes.append(by_size_note(by_size))
    retained = resources.retained_rise()
    if retained is not None and native is None:
        notes.append(retention_note(retained))


def is_of_torch(type_name) -> bool:
    """True for the name of a type of tensors or of autograd nodes; of blocks it is None."""
    return str(type_name).startswith("torch") or str(type_name).endswith("Backward0")


def bookkeeping_of(engine) -> float:
    """Bytes a step for the C++ side of torch objects that grow: what they hold besides their buffers."""
    groups = engine.last_look.suspects if engine.last_look else []
    count = sum(g.count_rate for g in groups if is_of_torch(g.type))
    return PER_BLOCK * count


def graph_rate(entries) -> float:
    """Bytes a step of autograd nodes that were traced to a holder, and of what torch keeps beside each
    node.
    """
    nodes = [m for e in entries for m in e.members if m.medium == "native" and m.series]
    return sum(1.5 * m.bytes / (m.series[-1][0] - m.series[0][0] + 1) for m in nodes)


# ---- counts ----


def add_count(medium, rise, engine, entries, findings) -> None:
    makers = makers_of(medium, engine)
    is_shared = medium == "fd" and engine.resources.fastest_kind() == SHARED_KIND
    entry = next((e for e in entries if carries(e, makers, rise, is_shared)), None)
    if entry is not None:
        if entry.kind == "garbage" and gc.isenabled():
            return
        place = next((i for i, f in enumerate(findings) if is_of(f, entry)), None)
        if place is not None:
            findings[place] = attached(findings[place], medium, rise, engine.resources)
            return
    findings.append(count_finding(medium, rise, entry, makers, engine))


def makers_of(medium, engine) -> dict:
    """{(type, site): live ones} of the Python objects that hold what grows."""
    known = engine.resources.makers.get(medium, {})
    types = {"fd": DESCRIPTOR_TYPES, "process": PROCESS_TYPES}.get(medium, frozenset())
    groups = engine.last_look.suspects if engine.last_look else []
    return known | {(g.type, g.site): g.live_count for g in groups if g.type in types}


def carries(entry, makers, rise, is_shared=False) -> bool:
    """True if the members of a traced entry are the makers of at least half of the rise; where descriptors of
    shared memory rise, blocks of that are: each keeps its own.
    """
    count = sum(
        m.count for m in entry.members if (m.type, m.site) in makers or (is_shared and m.medium == "shared")
    )
    return count > 0 and count >= 0.5 * rise.total


def is_of(finding: Finding, entry: Entry) -> bool:
    """True if a finding was made of a traced entry."""
    return bool(finding.path and entry.path) and shape(nodes_of(finding.path)) == shape(entry.path)


def shape(path: Path) -> list[tuple]:
    return [(node.edge, node.type, without_numbers(node.text)) for node in path]


def attached(finding, medium, rise, resources) -> Finding:
    """The finding with the rise of what its objects hold."""
    found = dataclasses.replace(
        finding, evidence=f"{finding.evidence}; {evidence_of(medium, rise, resources)}"
    )
    if found.cause not in VAGUE_CAUSES:
        return found
    cause, fix = FIXES[medium]
    return dataclasses.replace(found, cause=cause, fix=f"{fix}{line_of(found.allocation)}")


def evidence_of(medium, rise, resources) -> str:
    words = WORDS[medium][0]
    kind = resources.fastest_kind() if medium == "fd" else None
    return (
        f"{words} rose at {rise.rises} of {rise.of} marks, from {rise.first[1]:,} to {rise.last[1]:,} "
        f"between step {rise.first[0]} and step {rise.last[0]}{f', most of kind {kind}' if kind else ''}"
    )


def line_of(frame) -> str:
    return f", {os.path.basename(frame.filename)}:{frame.lineno}" if frame else ""


def count_finding(medium, rise, entry, makers, engine) -> Finding:
    key = maker_of_most(makers, rise)
    stack = stack_of(key[1]) if key else []
    measured = ""
    if medium == "fd" and not stack:
        stack, measured = engine.native_lines.verdict(rise.slope, "fd")
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
        count_per_step=round(rise.slope, 2),
        live_bytes=0,
        live_count=int(rise.last[1]),
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


def maker_of_most(makers, rise):
    """The (type, site) that made at least half of what rose, or None: a line is not guessed."""
    key = max(makers, key=makers.get, default=None)
    return key if key is not None and makers[key] >= 0.5 * rise.total else None


# ---- malloc ----


def native_finding(rise, engine) -> Finding:
    stack, measured = engine.native_lines.verdict(rise.slope)
    user = innermost_user_frame(stack)
    allocation = Frame(*user) if user else None
    evidence = (
        f"malloc's live bytes beyond those of Python, numpy and torch rose at {rise.rises} of {rise.of} marks, by "
        f"{format_size(rise.total)} between step {rise.first[0]} and step {rise.last[0]}, "
        f"{format_size(rise.spread)} off a straight line; {measured or 'line not known'}"
    )
    if engine.resources.always_new_sizes():
        evidence += "; nearly every step brought tensors of sizes not met before, and some libraries keep something for each shape"
    return Finding(
        fingerprint=fingerprint("native_growth", (), "native", stack),
        kind="native_growth",
        pattern="per_step",
        medium="native",
        type=None,
        bytes_per_step=round(rise.slope, 1),
        count_per_step=0.0,
        live_bytes=int(rise.steady_total),
        live_count=0,
        confidence=rise.confidence,
        evidence=evidence,
        allocation=allocation,
        allocation_stack=[Frame(*f) for f in stack],
        holder=None,
        path=None,
        cycle=None,
        cause="native_growth",
        fix=f"free what the native call allocates, or report it to the library{line_of(allocation)}"
        if allocation
        else None,
        onset_step=rise.first[0],
    )


def by_size_note(rise) -> Note:
    return rise_note(
        rise,
        "filling",
        ", only in steps that brought tensors of new sizes, as a library's cache by shape does; it ends where "
        "shapes come again (pad or bucket them, or bound the cache)",
    )


def always_new_note(rise) -> Note:
    return rise_note(
        rise,
        "filling, or a leak",
        ", and nearly every step brought tensors of sizes not met before: what a library keeps "
        f"for each shape (oneDNN: of {CACHED_SHAPES:,}) can't be told from a leak until shapes come again (pad or bucket them to know)",
    )


def rise_note(rise, word: str, why: str) -> Note:
    text = (
        f"{word}: malloc's live bytes beyond those of Python, numpy and torch rose by {format_size(rise.total)} between step {rise.first[0]} "
        f"and step {rise.last[0]}{why}"
    )
    return Note(
        kind="bounded",
        text=text,
        medium="native",
        bytes_per_step=round(rise.slope, 1),
        live_bytes=int(rise.total),
    )


def retention_note(rise) -> Note:
    text = (
        f"malloc keeps {format_size(rise.last[1])} that was freed, {format_rate(rise.slope)}, while what is in use is level: "
        "no leak, malloc_trim(0) would return most of it"
    )
    return Note(
        kind="allocator_retention",
        text=text,
        medium="native",
        bytes_per_step=round(rise.slope, 1),
        live_bytes=int(rise.last[1]),
    )
