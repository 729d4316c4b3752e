"""What belongs to one cause is reported once: entries of a trace, and findings, that are put together."""

import collections
import dataclasses
import os
import sys
from collections.abc import Callable, Iterable, Sequence

from leakprobe.judge.causes.case import ITEM_EDGES, KEY_EDGES, is_opaque, name_of
from leakprobe.judge.entries import Seen, main_of
from leakprobe.judge.fingerprints import narrowed, without_indices
from leakprobe.model import inert
from leakprobe.model.entry import Entry, Member, Path, nodes_of, sum_series
from leakprobe.model.finding import Finding
from leakprobe.model.frames import Frame, FrameTuple, is_user_file
from leakprobe.model.thresholds import LAG, PART
from leakprobe.model.units import COUNT_DIGITS
from leakprobe.model.verdict import Verdict

#: Containers whose entries go with the objects that they refer to weakly.
WEAK_CONTAINERS = frozenset(
    {
        "weakref.WeakKeyDictionary",
        "weakref.WeakValueDictionary",
        "_weakrefset.WeakSet",
        "torch.utils.weak.WeakIdKeyDictionary",
    }
)
#: What weakref.finalize keeps for an object: it goes with that, unless it leads back to it.
FINALIZER = "weakref.finalize._Info"


def merge_garbage(entries: Iterable[Seen]) -> list[Seen]:
    """One entry for unreachable cycles made by the same lines: a walk may enter alike cycles at unlike
    objects.
    """
    kept: list[Seen] = []
    at: dict[tuple[object, ...], int] = {}
    for seen in entries:
        key = (*line_of_garbage(seen.entry), seen.step) if seen.entry.kind == "garbage" else None
        if key is None or key not in at:
            if key is not None:
                at[key] = len(kept)
            kept.append(seen)
            continue
        first = kept[at[key]].entry
        whole = dataclasses.replace(first, members=sum_members([*first.members, *seen.entry.members]))
        kept[at[key]] = dataclasses.replace(seen, entry=whole)
    return kept


def line_of_garbage(entry: Entry) -> tuple[str, int, int, bool | None]:
    """The group of the member with most bytes, and whether the collector can free the cycle."""
    main = main_of(entry.members)
    return main.medium, main.type_id, main.site, entry.collectable


def merge_parts(entries: Iterable[Seen]) -> list[Seen]:
    """Entries that hold what one line makes, each of some steps only, put together under the one that holds
    most.

    That is what a chain of blocks looks like, or a name of its own for each step.
    """
    parts: dict[tuple[object, ...], list[Seen]] = {}
    for seen in entries:
        if seen.entry.kind == "held" and seen.entry.holder is not None:
            main = main_of(seen.entry.members)
            parts.setdefault((main.medium, main.type_id, main.site, seen.step), []).append(seen)
    return [
        put_together(max(same, key=lambda seen: seen.entry.bytes), same)
        for same in parts.values()
        if len(same) > 1
    ]


def merge_small(
    judged: Iterable[Seen], limit: float, line_of: Callable[[Entry], FrameTuple | None]
) -> list[Seen]:
    """Entries that grow by less than ``limit`` each and by more together with what their line makes besides,
    as one.

    ``judged``: with their verdicts; ``line_of(entry)``: the user's line.  What is a small part of
    its line's growth is left out: it comes and goes with the rest.
    """
    total: dict[tuple[object, ...], float] = {}
    small: dict[tuple[object, ...], list[Seen]] = {}
    for seen in judged:
        found, line = seen.judgement, line_of(seen.entry)
        if found is None or found.verdict is not Verdict.LEAK or seen.entry.kind != "held" or line is None:
            continue
        key = (line, seen.step)
        total[key] = total.get(key, 0.0) + seen.rate
        if seen.rate <= limit:
            small.setdefault(key, []).append(seen)
    whole = []
    for line_and_step, parts in small.items():
        whole_rate = total[line_and_step]
        if whole_rate > limit and sum(seen.rate for seen in parts) >= PART * whole_rate:
            whole.append(put_together(max(parts, key=lambda seen: seen.rate), parts, is_part=True))
    return whole


def put_together(first: Seen, parts: Sequence[Seen], *, is_part: bool = False) -> Seen:
    """The members of all parts under the holder of ``first``, one of them; the verdict on that is not
    known yet.
    """
    others = (m for seen in parts if seen is not first for m in seen.entry.members)
    members = sum_members([*first.entry.members, *others])
    entry = dataclasses.replace(first.entry, members=members, holder_count=len(parts), is_part=is_part)
    return dataclasses.replace(first, entry=entry, judgement=None)


def sum_members(members: Iterable[Member]) -> tuple[Member, ...]:
    """Members with the same type, medium and site as one, in the order they first come."""
    kept: dict[tuple[str, int, int], Member] = {}
    for member in members:
        key = (member.medium, member.type_id, member.site)
        first = kept.get(key)
        if first is None:
            kept[key] = member
            continue
        kept[key] = dataclasses.replace(
            first,
            count=first.count + member.count,
            bytes=first.bytes + member.bytes,
            deep_site=first.deep_site or member.deep_site,
            series=tuple(sum_series([first.series, member.series])),
            beside=first.beside + member.beside,
        )
    return tuple(kept.values())


def merge_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Findings that tell one cause, as one with the sum of their bytes; the largest comes first and stands
    for them.
    """
    kept: list[Finding] = []
    for finding in sorted(findings, key=lambda f: (-f.bytes_per_step, f.fingerprint)):
        same = next(
            (at for at, f in enumerate(kept) if is_alike(f, finding) or is_one_cause(f, finding)),
            None,
        )
        if same is None:
            kept.append(finding)
        elif is_told_better(finding, kept[same]):
            kept[same] = added(finding, kept[same])
        else:
            kept[same] = added(kept[same], finding)
    return with_own_fingerprints(kept)


def is_alike(first: Finding, second: Finding) -> bool:
    """Of one fingerprint, and of the same lines or names: losses1 and losses2, filled by two lines, are two
    leaks.
    """
    if first.fingerprint != second.fingerprint:
        return False
    return lines_of(first) == lines_of(second) or names_of(first) == names_of(second)


def lines_of(finding: Finding) -> tuple[object, object]:
    """Which made what is kept, and which put it there."""
    return finding.allocation, finding.holder["grown_at"] if finding.holder else None


def names_of(finding: Finding) -> tuple[str, ...]:
    """Its path without indices and lengths."""
    return tuple(without_indices(node["text"]) for node in finding.path or ())


def with_own_fingerprints(findings: list[Finding]) -> list[Finding]:
    """Where several have one fingerprint, in which names have no digits, each has that of its names."""
    counts = collections.Counter(finding.fingerprint for finding in findings)
    return [
        dataclasses.replace(f, fingerprint=narrowed(f.fingerprint, names_of(f)))
        if counts[f.fingerprint] > 1
        else f
        for f in findings
    ]


def absorbed(
    findings: Iterable[Finding],
    is_part: Callable[[Finding], bool],
    keeps: Callable[[Finding, Finding], bool],
    joined: Callable[[Finding, Finding], Finding],
) -> list[Finding]:
    """Findings without those that are a part of another one: ``keeps(owner, part)`` tells which,
    ``joined(owner, part)`` is both.
    """
    every = list(findings)
    for part in [f for f in every if is_part(f)]:
        owner = next((f for f in every if keeps(f, part)), None)
        if owner is not None:
            every.remove(part)
            every[every.index(owner)] = joined(owner, part)
    return every


def merge_opaque(findings: Iterable[Finding]) -> list[Finding]:
    """Findings without those of objects that no reference leads to, where a container grows by the same line
    and its items are of a type that does not show what it refers to: these keep them.
    """
    return absorbed(findings, lambda f: f.cause == "lost_reference", keeps_in_c, with_kept)


def merge_weak(findings: Iterable[Finding]) -> list[Finding]:
    """Findings without those of entries that go with the objects they refer to weakly, where another keeps as
    many objects since the same time: its holder is what keeps both.
    """
    return absorbed(findings, is_weak, may_keep_entries, added)


def is_weak(finding: Finding) -> bool:
    return is_finalizer(finding) or any(node["type"] in WEAK_CONTAINERS for node in finding.path or ())


def is_finalizer(finding: Finding) -> bool:
    return any(node["type"] == FINALIZER for node in finding.path or ())


def may_keep_entries(owner: Finding, weak: Finding) -> bool:
    """True if the owner gets as many items, or a part of as many, since the same step but one or two."""
    if is_weak(owner) or owner.holder is None or owner.onset_step is None or weak.onset_step is None:
        return False
    if is_finalizer(weak) and owner.allocation != weak.allocation:
        return False  # the finalizer itself may be what keeps it
    return comes_with(weak, owner) and abs(owner.onset_step - weak.onset_step) <= LAG


def comes_with(second: Finding, first: Finding) -> bool:
    """True if about as many of the second come as of the first, or a multiple."""
    each = second.count_per_step / first.count_per_step if first.count_per_step > 0 else 0.0
    whole = round(each)
    return whole >= 1 and abs(each - whole) < PART * whole


def keeps_in_c(owner: Finding, lost: Finding) -> bool:
    """True if about as many are lost as the owner gets new items, or a multiple, all by one line."""
    if owner.holder is None or owner.type is None or not is_opaque(owner.type):
        return False
    lines = [owner.allocation, owner.holder["grown_at"] and Frame(**owner.holder["grown_at"])]
    return lost.allocation in lines and comes_with(lost, owner)


def with_kept(owner: Finding, lost: Finding) -> Finding:
    """The bytes are those of the one that has more: objects of such types may count what they keep."""
    return dataclasses.replace(
        owner,
        medium=lost.medium,
        evidence=f"{owner.evidence}; {lost.type} objects that nothing is seen to refer to come with them, "
        f"{lost.count_per_step:g} a step: {owner.type} does not show the garbage collector what it refers "
        "to, and is assumed to keep them",
        bytes_per_step=max(owner.bytes_per_step, lost.bytes_per_step),
        live_bytes=max(owner.live_bytes, lost.live_bytes),
    )


def is_told_better(second: Finding, first: Finding) -> bool:
    """True if only the second finding of what is never ended or closed begins in the user's own code, or if
    the first of two tables is of the standard library, which keeps things for the library that was called.
    """
    if is_one_call(first, second):
        return is_of_python(first) and not is_of_python(second)
    return is_one_thing(first, second) and not is_own(first) and is_own(second)


def is_of_python(finding: Finding) -> bool:
    """True if the path begins at a module of the standard library."""
    root = next(iter(nodes_of(finding.path)), None)
    return root is not None and root.edge == "module" and root.text.split(".")[0] in sys.stdlib_module_names


def is_one_thing(first: Finding, second: Finding) -> bool:
    """True for two tables that have what one line opens or begins: the program's, and a library's."""
    return (
        first.cause == second.cause
        and first.cause in ("never_ended", "never_closed")
        and first.allocation is not None
        and first.allocation == second.allocation
    )


def is_one_statement(first: Finding, second: Finding) -> bool:
    """True for containers that one statement fills, and that differ by the key or the place that another
    container has them under: ``index[word].add(number)``.
    """
    if first.holder is None or second.holder is None or first.holder["grown_at"] != second.holder["grown_at"]:
        return False
    if first.holder["grown_at"] is None and (
        first.allocation is None
        or second.allocation is None
        or place(first.allocation) != place(second.allocation)
    ):
        return False
    paths = down_to_holder(first), down_to_holder(second)
    return are_alike(*paths) or is_another_name(*paths) or is_another_name(*reversed(paths))


def is_one_holder(first: Finding, second: Finding) -> bool:
    """True for what a holder keeps, and what is replaced all the time in what it keeps."""
    roots = [node.text for one in (first, second) for node in nodes_of(one.path)[:1]]
    return first.holder is not None and first.holder == second.holder and len(set(roots)) == 1 < len(roots)


def is_one_call(first: Finding, second: Finding) -> bool:
    """True for tables of libraries that get their entries together, by one line of the user's."""
    if first.cause != "library_registry" or second.cause != "library_registry":
        return False
    if first.holder is None or second.holder is None or is_own(first) or is_own(second):
        return False
    return (
        first.allocation == second.allocation
        and first.holder["grown_at"] == second.holder["grown_at"]
        and (comes_with(second, first) or comes_with(first, second))
    )


def down_to_holder(finding: Finding) -> Path:
    """The path to the holder, and that; empty where it is a name in a namespace."""
    path, text = nodes_of(finding.path), finding.holder["text"] if finding.holder else ""
    return next((path[: at + 1] for at in range(len(path)) if path[at].text == text), ())


def are_alike(first: Path, second: Path) -> bool:
    """True for two paths of the same names, all but those of items."""
    return (
        0 < len(first) == len(second)
        and any(node.edge in KEY_EDGES for node in first)
        and all(
            one.edge == other.edge
            and one.type == other.type
            and (one.edge in KEY_EDGES or name_of(one) == name_of(other))
            for one, other in zip(first, second, strict=True)
        )
    )


def is_another_name(of_item: Path, other: Path) -> bool:
    """True if the holder is the same part of an object of one class, where one is an item of a container and
    the other has a name of its own: what a loop over the container leaves behind.
    """
    items = [at for at, node in enumerate(of_item) if node.edge in ITEM_EDGES]
    part = of_item[items[-1] :] if items else ()
    if len(part) <= 1 or len(part) >= len(other):
        return False
    (item, *below), (named, *below_named) = part, other[-len(part) :]
    return item.type == named.type and all(
        (one.edge, one.type, name_of(one)) == (another.edge, another.type, name_of(another))
        for one, another in zip(below, below_named, strict=True)
    )


def is_own(finding: Finding) -> bool:
    return begins_in_user_code(nodes_of(finding.path), finding.allocation_stack)


def is_one_cause(first: Finding, second: Finding) -> bool:
    """True if the second finding is a consequence of the first, or the same thing seen at another of its
    lines.
    """
    if (
        first.allocation is None
        or second.allocation is None
        or first.kind != second.kind
        or first.pattern != second.pattern
    ):
        return False
    if first.cause == second.cause == "held_outside_python":
        return (
            first.holder is None
            and second.holder is None
            and place(first.allocation) == place(second.allocation)
        )
    if first.cause == second.cause == "optimizer_state":
        return optimizer_of(first) == optimizer_of(second)
    if is_one_holder(first, second):
        return True
    if is_one_thing(first, second) or is_one_statement(first, second) or is_one_call(first, second):
        return True
    if second.path is None or first.path is None or first.allocation != second.allocation:
        return False
    return is_own(first) and not is_own(second)


def optimizer_of(finding: Finding) -> list[str]:
    """The path down to the optimizer: its groups and its state grow together."""
    path = down_to_holder(finding) or nodes_of(finding.path)
    # the last such attribute: a variable that leads there may have such a name too
    own = [i for i, n in enumerate(path) if n.edge == "attribute" and name_of(n) in ("state", "param_groups")]
    return [node.text for node in path[: own[-1] if own else 0]]


def place(frame: Frame) -> tuple[str, str]:
    return frame.filename, frame.function


def begins_in_user_code(path: Path, stack: Iterable[Frame]) -> bool:
    """True if the path begins at a module or a frame of the user's own code; ``stack``: Frames that may tell
    whose.
    """
    if not path:
        return False
    root = path[0]
    if root.edge == "module":
        return root.text == "__main__" or is_user_file(inert.file_of_module(root.text) or "")
    if root.edge == "frame":
        name = root.text.rpartition(" in ")[-1]
        return any(os.path.basename(f.filename) == name and is_user_file(f.filename) for f in stack)
    return False


def place_of(finding: Finding) -> str:
    """ "history (list, 60 items) of train": the holder and where its path begins."""
    holder = finding.holder["text"] if finding.holder else ""
    return f"{holder} of {finding.path[0]['text']}" if finding.path else holder


def added(first: Finding, second: Finding) -> Finding:
    """The first finding with the bytes of the second; of one holder with its count, else the second's holder
    is named.
    """
    is_same = first.fingerprint == second.fingerprint
    is_told = is_same or second.holder is None or is_one_holder(first, second)
    also = "" if is_told else f"; also kept by {place_of(second)}"
    return dataclasses.replace(
        first,
        evidence=first.evidence + also,
        bytes_per_step=round(first.bytes_per_step + second.bytes_per_step, 1),
        live_bytes=first.live_bytes + second.live_bytes,
        count_per_step=round(first.count_per_step + second.count_per_step, COUNT_DIGITS)
        if is_same
        else first.count_per_step,
        live_count=first.live_count + second.live_count if is_same else first.live_count,
        onset_step=min((f.onset_step for f in (first, second) if f.onset_step is not None), default=None),
    )
