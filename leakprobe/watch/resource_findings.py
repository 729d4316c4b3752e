"""From the series of resources.py to findings and notes.

A finding that is there already, of the files or threads themselves, gets a sentence; it is not doubled.
"""

import dataclasses

from leakprobe.judge.fingerprints import fingerprint
from leakprobe.model.entry import Entry
from leakprobe.model.finding import Finding, Note
from leakprobe.model.frames import Frame, innermost_user_frame
from leakprobe.model.units import format_rate, format_size
from leakprobe.watch import shared_findings
from leakprobe.watch.count_findings import add_count, line_of
from leakprobe.watch.resources import CACHED_SHAPES


def add_resources(engine, entries: list[Entry], findings: list, notes: list) -> None:
    """Add what grows besides objects and blocks to findings and notes.

    ``entries``: those of the last trace.
    """
    resources = engine.resources
    is_known = any(f.medium == "shared" for f in findings)  # torch's own segments
    for medium in ("fd", "thread", "process"):
        rise = resources.rise_of(medium)
        if rise is not None:
            add_count(medium, rise, engine, entries, findings)
    if not is_known:
        shared_findings.add_segments(engine, entries, findings, notes)
    native = resources.native_rise(bookkeeping_of(engine) + graph_rate(entries))
    if native is not None and resources.may_fill_a_cache(native):
        notes.append(always_new_note(native))
    elif native is not None:
        add_native(native_finding(native, engine), findings)
    pool = resources.pool_rise()
    if pool is not None:
        add_native(pool_finding(pool, engine), findings)
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
    return 2048.0 * count


def graph_rate(entries) -> float:
    """Bytes a step of autograd nodes that were traced to a holder, and of what torch keeps beside each
    node.
    """
    nodes = [m for e in entries for m in e.members if m.medium == "native" and m.series]
    return sum(1.5 * m.bytes / (m.series[-1][0] - m.series[0][0] + 1) for m in nodes)


# ---- malloc ----


def add_native(found: Finding, findings: list) -> None:
    """Add a finding of native memory; to that of a container which grows by the same line, if there is one:
    what it keeps owns the memory.
    """
    place = next((i for i, f in enumerate(findings) if owns(f, found)), None)
    if place is None:
        findings.append(found)
        return
    owner = findings[place]
    findings[place] = dataclasses.replace(
        owner,
        bytes_per_step=round(owner.bytes_per_step + found.bytes_per_step, 1),
        live_bytes=owner.live_bytes + found.live_bytes,
        evidence=f"{owner.evidence}; of it {format_rate(found.bytes_per_step)} are memory of a library "
        f"that its items own: {found.evidence}",
    )


def owns(owner: Finding, found: Finding) -> bool:
    """True if what a container keeps is made, or put into it, by the line that native memory comes from."""
    if found.allocation is None or owner.kind != "retained" or owner.medium != "python":
        return False
    grown_at = (owner.holder or {}).get("grown_at") or {}
    lines = {(owner.allocation.filename, owner.allocation.lineno)} if owner.allocation else set()
    lines.add((grown_at.get("filename"), grown_at.get("lineno")))
    return (found.allocation.filename, found.allocation.lineno) in lines


def native_finding(rise, engine) -> Finding:
    stack, measured = engine.native_lines.verdict(rise.slope)
    evidence = (
        f"malloc's live bytes beyond those of Python, numpy and torch rose at {rise.rises} of {rise.of} marks, by "
        f"{format_size(rise.total)} between step {rise.first[0]} and step {rise.last[0]}, "
        f"{format_size(rise.spread)} off a straight line; {measured or 'line not known'}"
    )
    if engine.resources.always_new_sizes():
        evidence += "; nearly every step brought tensors of sizes not met before, and some libraries keep something for each shape"
    return finding_of_native(rise, stack, evidence)


def pool_finding(rise, engine) -> Finding:
    """Of memory that a library maps for itself."""
    stack, measured = engine.native_lines.verdict(rise.slope, "pool")
    evidence = (
        f"memory that libraries have mapped outside of malloc rose at {rise.rises} of {rise.of} marks, by "
        f"{format_size(rise.total)} between step {rise.first[0]} and step {rise.last[0]}; "
        f"{measured or 'line not known'}"
    )
    return finding_of_native(rise, stack, evidence)


def finding_of_native(rise, stack, evidence: str) -> Finding:
    user = innermost_user_frame(stack)
    allocation = Frame(*user) if user else None
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
