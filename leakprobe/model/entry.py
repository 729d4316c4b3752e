"""What a trace found: who keeps what grows.  The core gives dicts; ``entries_of`` makes these of them, once.

An *entry* is one holder, or one cycle, with the *members* that it keeps: each is a type and a line,
or a medium and a line, with what is alive of each birth step.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from leakprobe.model.facts import POOL_CHUNK
from leakprobe.model.finding import PathRow
from leakprobe.model.media import CACHED
from leakprobe.model.thresholds import HALF, LEAST_EVENTS

#: What is alive by birth step: (step, count, bytes), rising steps.
Series = Sequence[tuple[int, float, float]]
#: held: by objects; outside: by native code; garbage: by nothing that is reachable; lost: by nothing that is
#: known; unseen: of a medium whose owners are not seen; untraced: no trace was taken.
Kind = Literal["held", "outside", "garbage", "lost", "unseen", "untraced"]


#: Of an entry, where this torch does not show what autograd nodes have saved: "maybe" of what no object is
#: known to keep, "joined" of a graph to which that was added.
Unread = Literal["", "maybe", "joined"]


@dataclasses.dataclass(frozen=True, slots=True)
class PathNode:
    """One element of a path or cycle."""

    text: str  # "history (list, 60 items)", "[59]"
    edge: str  # how the one before refers to it: "module", "frame", "key", "attribute", "grad_fn", ...
    type: str | None  # None for what stands for no object
    bases: tuple[str, ...] = ()  # names of its type and of all that this derives from, where a walk told them

    def row(self) -> PathRow:
        """As a report has it."""
        return {"text": self.text, "edge": self.edge, "type": self.type}


Path = tuple[PathNode, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Holder:
    """The object whose contents grow.  Sites and steps are 0 where they are not known."""

    text: str
    type: str
    length: int | None  # items, where it has a length
    bound: int | None  # most items, where it bounds itself
    address: int
    grown_at_site: int  # the line that last enlarged it
    grown_at_step: int
    item_site: int  # the line that made the one item below which all of it is
    site: int  # the line that made it
    step: int
    table_bytes: int = 0  # what a list, dict, set or deque itself takes for its items
    filled: int | None = None  # places of a list that have got their items in the watch


@dataclasses.dataclass(frozen=True, slots=True)
class Member:
    """What one line made of one type, or of one medium, below a holder."""

    type: str | None  # None for a block of the ledger
    type_id: int  # the address of the type; 0 for a block
    medium: str
    site: int
    deep_site: int  # a site of the same line with its whole stack; 0 if not known
    count: int
    bytes: int
    series: Series
    beside: int = 0  # of the bytes: what goes with data that is a member of its own

    @property
    def main_bytes(self) -> int:
        """The bytes by which members are compared: a tensor's data counts as the member that it is."""
        return self.bytes - self.beside

    @property
    def key(self) -> tuple[str, int | str, int]:
        """The key of the group that it is a part of: ("object", type_id, site) or ("block", medium, site)."""
        return ("block", self.medium, self.site) if self.type is None else ("object", self.type_id, self.site)


@dataclasses.dataclass(frozen=True, slots=True)
class View:
    """The tensor or array that keeps a pinned block, and how much of that it shows."""

    type: str
    viewed_bytes: int | None
    storage_bytes: int | None
    block_bytes: int


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """One holder, or one cycle, and what it keeps."""

    kind: Kind
    members: tuple[Member, ...]
    path: Path = ()  # from the root to the member shown; empty where it is not known
    holder: Holder | None = None
    cycle: Path = ()
    collectable: bool | None = None  # of a cycle: whether the collector can free it
    has_graph: bool = False  # a tensor between the holder and the member shown has a grad_fn
    sample: int | None = None  # the place in ``members`` of the one that the path is shown for
    grown_site: int = 0  # the line that last enlarged that member; 0 where its memory does not tell
    address: int = 0  # of that member
    view: View | None = None
    holder_count: int = 1  # so many holders are put together here
    is_part: bool = False  # it grows by less than the limit, and stands for others of its line
    freed: bool = False  # of garbage: a collection has freed it since
    unread: Unread = ""  # whether autograd nodes that can't be read may be what keeps it

    @property
    def bytes(self) -> int:
        return sum(m.bytes for m in self.members)

    @property
    def was_let_go(self) -> bool:
        """True for garbage, and for freed memory that is cached: blocks alone, to which no object leads."""
        return self.kind == "garbage" or (
            self.kind == "lost"
            and all(m.medium in CACHED for m in self.members)
            and all(node.type in (None, "buffer") for node in self.path)
        )


def entries_of(result: Mapping[str, Any]) -> tuple[Entry, ...]:
    """The entries of what _core.trace() gave."""
    entries = tuple(map(entry_of, result["holders"]))
    return entries if result["complete"] else with_unread(entries)


def with_unread(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """The entries where nodes of autograd graphs could not be read: tensors that no object is known to keep
    are added to the one graph that is kept, or marked where there is none, or several.
    """
    found = [e for e in entries if may_be_saved(e)]
    graphs = [e for e in entries if e.kind == "held" and e.has_graph]
    if not found or len(graphs) != 1:
        return tuple(dataclasses.replace(e, unread="maybe") if e in found else e for e in entries)
    members = (*graphs[0].members, *(m for e in found for m in e.members))
    whole = dataclasses.replace(graphs[0], members=members, unread="joined")
    return tuple(whole if e is graphs[0] else e for e in entries if e not in found)


def may_be_saved(entry: Entry) -> bool:
    """True for tensors, and memory of torch's, that no object is known to keep."""
    if (
        entry.kind != "outside"
        or entry.holder is not None
        or (entry.path and entry.path[0].edge != "outside")
    ):
        return False
    _, *below = entry.path or (None,)
    held = next(iter(below), None)
    return held is None or held.type in (None, "buffer") or "torch.Tensor" in held.bases


#: Of objects that own nothing outside of Python.
NOTHING = (0.0, False)


def with_owned(
    entries: tuple[Entry, ...], rows: Iterable[tuple[int, int, float, bool]], grew_by: int
) -> tuple[Entry, ...]:
    """The entries with what their objects own outside of Python: (type_id, site, bytes of one, whether these
    are beside data, as a tensor's are).

    Objects that share memory each say all of it: what exceeds by far ``grew_by``, the growth of the process,
    is no growth.
    """
    owned = {(type_id, site): (size, is_beside) for type_id, site, size, is_beside in rows if size > 0}
    if not owned:
        return entries
    members = [m for e in entries for m in e.members if m.type is not None]
    claimed = sum(m.count * owned.get((m.type_id, m.site), NOTHING)[0] for m in members)
    if claimed > grew_by / HALF + POOL_CHUNK:
        return entries
    return tuple(
        dataclasses.replace(
            e, members=tuple(member_with(m, *owned.get((m.type_id, m.site), NOTHING)) for m in e.members)
        )
        for e in entries
    )


def as_in_the_loop(entry: Entry) -> Entry:
    """The entry as it was while the loop ran, if its garbage is one container that got something in many
    steps: it could be reached as long as it did, and what kept it has ended with the loop.
    """
    steps = {step for member in entry.members for step, _, _ in member.series}
    if entry.kind != "garbage" or entry.holder is None or entry.holder_count > 1 or len(steps) < LEAST_EVENTS:
        return entry
    return dataclasses.replace(entry, kind="held", cycle=(), collectable=None)


def member_with(member: Member, bytes_each: float, is_beside: bool) -> Member:
    if member.type is None or bytes_each <= 0:
        return member
    series = tuple((step, count, size + count * bytes_each) for step, count, size in member.series)
    owned = round(member.count * bytes_each)
    beside = owned if is_beside else 0
    return dataclasses.replace(member, bytes=member.bytes + owned, series=series, beside=beside)


def entry_of(row: Mapping[str, Any]) -> Entry:
    holder, view = row["holder"], row["view"]
    return Entry(
        kind=row["kind"],
        members=tuple(member_of(m) for m in row["members"]),
        path=nodes_of(row["path"]),
        holder=Holder(**holder) if holder is not None else None,
        cycle=nodes_of(row["cycle"]),
        collectable=row["collectable"],
        has_graph=row["has_graph"],
        sample=row["sample"],
        grown_site=row["grown_site"],
        address=row["address"],
        view=View(**view) if view is not None else None,
        holder_count=row["holder_count"],
    )


def member_of(row: Mapping[str, Any]) -> Member:
    return Member(**{**row, "series": tuple(row["series"])})


def nodes_of(rows: Iterable[Mapping[str, Any]] | None) -> Path:
    """The elements of a path as a report or a walk has it; none of None."""
    return tuple(
        PathNode(row["text"], row["edge"], row["type"], tuple(row.get("bases", ()))) for row in rows or ()
    )


def sum_series(serieses: Iterable[Series]) -> Series:
    """One series from several, step by step."""
    serieses = list(serieses)
    if len(serieses) == 1:
        return serieses[0]
    total: dict[int, list[float]] = {}
    for series in serieses:
        for step, count, size in series:
            row = total.setdefault(step, [0, 0])
            row[0] += count
            row[1] += size
    return [(step, count, size) for step, (count, size) in sorted(total.items())]


def rows_of(path: Path) -> list[PathRow] | None:
    """A path as a report has it; None where it is not known."""
    return [node.row() for node in path] or None
