"""From the series of resources.py to findings and notes.

A finding that is there already, of the files or threads themselves, gets a sentence; it is not doubled.
"""

import dataclasses
import itertools
import os
from collections.abc import Iterable, Sequence

from leakprobe.judge.entries import stack_of
from leakprobe.judge.rises import Rise
from leakprobe.model.entry import Entry, PathNode, nodes_of
from leakprobe.model.facts import CACHED_SHAPES
from leakprobe.model.finding import Finding, Note
from leakprobe.model.frames import FrameTuple
from leakprobe.model.media import ON_CUDA, family
from leakprobe.model.thresholds import LITTLE, NODE_SHARE, PART, PER_BLOCK
from leakprobe.model.units import format_rate, format_size
from leakprobe.watch import shared_findings
from leakprobe.watch.count_findings import add_count, finding_of_bytes, line_of, lines_of_kept
from leakprobe.watch.engine import Engine
from leakprobe.watch.native_samples import Grower

#: Of growth that may be a library's table by shape.
NEW_SIZES = (
    "; nearly every step brought tensors of sizes not seen before, and some libraries "
    "keep something for each shape"
)


def add_resources(engine: Engine, entries: list[Entry], findings: list[Finding], notes: list[Note]) -> None:
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
    native = resources.native_rise(bookkeeping_of(engine, entries))
    is_growing = native is not None
    if native is not None and resources.may_fill_a_cache(native):
        notes.append(always_new_note(native))
        native = None
    if native is not None and resources.python_is_in_malloc:
        notes.append(with_python_note(native))
        native = None
    notes += add_native_growth(native, resources.pool_rise(), engine, entries, findings)
    by_size = resources.rise_by_size()
    if by_size is not None and not is_growing:
        notes.append(by_size_note(by_size))
    retained = resources.retained_rise()
    if retained is not None and not is_growing:
        notes.append(retention_note(retained))


def is_of_torch(type_name: str | None) -> bool:
    """True for the name of a type of tensors or of autograd nodes; of blocks it is None."""
    return str(type_name).startswith("torch") or str(type_name).endswith("Backward0")


def bookkeeping_of(engine: Engine, entries: Sequence[Entry]) -> float:
    """Bytes a step for the C++ side of torch objects and nodes that grow: what they hold besides buffers."""
    groups = engine.last_look.suspects if engine.last_look else []
    count = sum(g.count_rate for g in groups if is_of_torch(g.type))
    return PER_BLOCK * count + graph_rate(entries)


def graph_rate(entries: Iterable[Entry]) -> float:
    """Bytes a step of autograd nodes that were traced to a holder, and of what torch keeps beside each
    node.
    """
    nodes = [m for e in entries for m in e.members if m.medium == "native" and m.series]
    return sum(NODE_SHARE * m.bytes / (m.series[-1][0] - m.series[0][0] + 1) for m in nodes)


# ---- malloc ----


def add_native(native: Iterable[Finding], entries: Sequence[Entry], findings: list[Finding]) -> None:
    """Add findings of native memory; to that of a container which grows by the same lines, if there is one:
    what it keeps owns the memory.
    """
    owned: dict[int, list[Finding]] = {}
    for found in native:
        place = next((i for i, f in enumerate(findings) if owns(f, found, entries)), None)
        if place is None:
            findings.append(found)
        else:
            owned.setdefault(place, []).append(found)
    for place, parts in owned.items():
        findings[place] = with_owned(findings[place], parts)


def with_owned(owner: Finding, parts: Sequence[Finding]) -> Finding:
    """A container's finding with the native memory that its items own; a line may have several samples."""
    rate = sum(found.bytes_per_step for found in parts)
    lines = "".join(dict.fromkeys(line_of(found.allocation) for found in parts))
    return dataclasses.replace(
        owner,
        bytes_per_step=round(owner.bytes_per_step + rate, 1),
        live_bytes=owner.live_bytes + sum(found.live_bytes for found in parts),
        evidence=(
            f"{owner.evidence}; {format_rate(rate)} of it is memory of a library that its items own{lines}"
        ),
    )


def owns(owner: Finding, found: Finding, entries: Sequence[Entry]) -> bool:
    """True if what a container keeps is made, or put into it, by a line that native memory comes from; types
    that are built in have none, unless an object of C keeps them.  A driver notes down its blocks, whoever
    keeps them.
    """
    if found.allocation is None or owner.kind != "retained":
        return False
    if not is_of_driver(owner) and not has_library_objects(owner):
        return False
    lines = lines_of_kept(owner, entries)
    return any((frame.filename, frame.lineno) in lines for frame in found.allocation_stack)


def is_of_driver(owner: Finding) -> bool:
    return family(owner.medium) in ON_CUDA


def has_library_objects(owner: Finding) -> bool:
    """True if what is kept, or is on the way to it from the container, is of a type that is not built in."""
    below = itertools.dropwhile(lambda node: not is_holder(node, owner), nodes_of(owner.path))
    kept = [owner.type, *(node.type for node in itertools.islice(below, 1, None))]
    return any("." in (name or "") for name in kept) or any(n.edge == "memory" for n in nodes_of(owner.path))


def is_holder(node: PathNode, owner: Finding) -> bool:
    return owner.holder is not None and node.text == owner.holder["text"]


def add_native_growth(
    native: Rise | None,
    pool: Rise | None,
    engine: Engine,
    entries: Sequence[Entry],
    findings: list[Finding],
) -> list[Note]:
    """One finding for each line that samples know, and for what they do not explain: a note if that has no
    line and is less, as one leak is one finding, and samples miss a part of each.
    """
    each = ((native, native_finding), (pool, pool_finding))
    rises = [(rise, make) for rise, make in each if rise is not None]
    whole = sum(rise.slope for rise, _ in rises)
    if not whole:
        return []
    growers, sampled = growers_of(engine, whole)
    if sampled > (1 + PART) * whole:
        growers, sampled = [], 0.0
    is_all = sampled >= (1 - PART) * whole
    share = max(1, whole / sampled) if is_all else 1
    native_parts = [sampled_finding(grower, grower.rate * share, rises[0][0]) for grower in growers]
    notes = []
    for rise, make in () if is_all else rises:
        explained = sampled * rise.slope / whole
        found = make(rise, engine)
        rest = dataclasses.replace(
            found,
            bytes_per_step=round(found.bytes_per_step - explained, 1),
            live_bytes=max(0, found.live_bytes - int(rise.came_at(explained))),
        )
        if rest.allocation is None and rest.bytes_per_step < explained:
            notes.append(rest_note(rest))
        else:
            native_parts.append(rest)
    add_native(native_parts, entries, findings)
    return notes


def growers_of(engine: Engine, whole: float) -> tuple[list[Grower], float]:
    """The lines whose samples are a part of so many bytes a step that counts, and the sum of their rates."""
    growers = [g for g in engine.native_samples.growers if g.rate >= LITTLE * whole]
    return growers, sum(grower.rate for grower in growers)


def add_rest(
    rest: Finding, rise: Rise, engine: Engine, entries: Sequence[Entry], findings: list[Finding]
) -> None:
    """Add what the process grows by and nothing else explains; as growth of the lines whose samples make as
    much, where too few walks have shown how much of malloc's is Python's.
    """
    whole = rest.bytes_per_step
    growers, sampled = growers_of(engine, whole)
    if not (1 - PART) * whole <= sampled <= (1 + PART) * whole:
        findings.append(rest)
        return
    what = "private memory of the process"
    parts = [sampled_finding(grower, grower.rate * whole / sampled, rise, what) for grower in growers]
    add_native(parts, entries, findings)


def sampled_finding(
    grower: Grower, rate: float, rise: Rise, what_rose: str = "memory outside of Python"
) -> Finding:
    """Of a line whose blocks were sampled; ``rate``: its part of what is measured."""
    caller = f"{os.path.basename(grower.library)} {grower.function}".strip()
    words = f", given out to {caller}" if caller else ""
    evidence = (
        f"blocks of this line, {grower.samples:,} of them sampled{words}: "
        f"{grower.judgement.reason}; with it {what_rose} rose at {rise.rises} of {rise.of} marks, "
        f"by {format_size(rise.total)} between step {rise.first[0]} and step {rise.last[0]}"
    )
    found = finding_of_native(rise, stack_of(grower.site), evidence)
    return dataclasses.replace(found, bytes_per_step=round(rate, 1), live_bytes=int(rise.came_at(rate)))


def native_finding(rise: Rise, engine: Engine) -> Finding:
    stack, measured = engine.native_lines.verdict(rise.slope)
    evidence = (
        f"malloc's live bytes beyond those of Python, numpy and torch rose at {rise.rises} of {rise.of} marks, "
        f"by {format_size(rise.total)} between step {rise.first[0]} and step {rise.last[0]}, "
        f"{format_size(rise.spread)} off a straight line; {measured or 'line not known'}"
    )
    if engine.resources.always_new_sizes():
        evidence += NEW_SIZES
    return finding_of_native(rise, stack, evidence)


def pool_finding(rise: Rise, engine: Engine) -> Finding:
    """Of memory that a library maps for itself."""
    stack, measured = engine.native_lines.verdict(rise.slope, "pool")
    evidence = (
        f"memory that libraries have mapped outside of malloc rose at {rise.rises} of {rise.of} marks, by "
        f"{format_size(rise.total)} between step {rise.first[0]} and step {rise.last[0]}; "
        f"{measured or 'line not known'}"
    )
    return finding_of_native(rise, stack, evidence)


def finding_of_native(rise: Rise, stack: Sequence[FrameTuple], evidence: str) -> Finding:
    fix = "free what the native call allocates, or what it was given to keep, or report it to the library"
    found = finding_of_bytes("native_growth", "native", stack, rise, evidence)
    return dataclasses.replace(
        found,
        live_bytes=int(rise.steady_total),
        cause="native_growth",
        fix=f"{fix}{line_of(found.allocation)}" if found.allocation else None,
    )


def by_size_note(rise: Rise) -> Note:
    return rise_note(
        rise,
        "filling",
        ", only in steps that brought tensors of new sizes, as a library's cache by shape does; it ends where "
        "shapes come again (pad or bucket them, or bound the cache)",
    )


def always_new_note(rise: Rise) -> Note:
    return rise_note(
        rise,
        "filling, or a leak",
        ", and nearly every step brought tensors of sizes not seen before: what a library keeps "
        f"for each shape (oneDNN: up to {CACHED_SHAPES:,}) can't be distinguished from a leak until shapes come again (pad or bucket them to find out)",
    )


def with_python_note(rise: Rise) -> Note:
    return rise_note(
        rise,
        "not attributed",
        ", and PYTHONMALLOC has Python's own memory in malloc too, of which only objects are counted: run "
        "with PYTHONMALLOC=pymalloc to find out",
    )


def rise_note(rise: Rise, word: str, why: str) -> Note:
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


def rest_note(rest: Finding) -> Note:
    text = (
        f"{format_rate(rest.bytes_per_step)} more of memory outside of Python grows with that of the lines "
        "that are known, and its own line is not: samples met none that it came from"
    )
    return Note(kind="gap", text=text, medium="native", bytes_per_step=rest.bytes_per_step)


def retention_note(rise: Rise) -> Note:
    text = (
        f"malloc keeps {format_size(rise.last[1])} that was freed, {format_rate(rise.slope)}, while what is in use is level: "
        "not a leak, malloc_trim(0) would return most of it"
    )
    return Note(
        kind="allocator_retention",
        text=text,
        medium="native",
        bytes_per_step=round(rise.slope, 1),
        live_bytes=int(rise.last[1]),
    )
