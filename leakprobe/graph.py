"""The object graph of a snapshot: what there is by type, what retains most, who holds what."""

import base64
import binascii
import dataclasses
import json
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, cast

from leakprobe import _core
from leakprobe.checks import checked_int
from leakprobe.cycles import Cycle, cycles_of
from leakprobe.errors import LeakprobeError
from leakprobe.files import BAD_DATA, read_json
from leakprobe.model.finding import PathRow
from leakprobe.model.frames import FIRST_SITE, SELF_SITE, FrameTuple
from leakprobe.record.parse import cycle_row, named_paths
from leakprobe.retention import RetentionPath

#: Arrays of a saved graph: name => bytes of an element.
ARRAYS = {"row": 4, "edge": 4, "flag": 1, "address": 8, "bytes": 8, "group": 4, "root": 4}
#: Bytes that all arrays together may unpack to, for each character of theirs, and more: real heaps have 2 to
#: 9 (an object takes 37 bytes, of which its address and a reference don't pack well); zlib makes up to 1,030
#: of one.
MOST_EXPANSION, ALWAYS = 32, 2**16


@dataclasses.dataclass(frozen=True)
class TypeRow:
    """All objects of one type, or (type None) all buffers of one medium.  size, retained: bytes.

    retained: what each object alone keeps, itself too, added up, without those below another of the same
        type.
    """

    medium: str
    type: str | None
    count: int
    size: int
    retained: int


@dataclasses.dataclass(frozen=True)
class Dominator:
    """An object and what would go with it.  size, retained: bytes; node: its number in the graph.

    above: the number of the nearest other dominator in the same answer that retains it, or None.
    path: from a root to it.
    """

    node: int
    above: int | None
    medium: str
    type: str | None
    size: int
    retained: int
    path: RetentionPath

    def text(self) -> str:
        elements = self.path.elements
        return elements[-1]["text"] if elements else self.type or "buffer"


class Graph:
    """What a snapshot knows of the object graph; numbers and texts only, no object is kept alive."""

    def __init__(self, core: _core.Graph, names: str, cycles: str) -> None:
        # Out of Python's heap: what this holds must not show up as objects of the program in the next
        # snapshot.
        self.core, self._names, self._cycles = core, _core.keep_text(names), _core.keep_text(cycles)

    def __repr__(self) -> str:
        return f"<leakprobe graph: {self.info['nodes']:,} nodes>"

    @property
    def cycles(self) -> list[Cycle]:
        """Garbage in cycles, as find_cycles() lists it."""
        return cycles_of(json.loads(self._cycles.get()))

    @property
    def info(self) -> "_core.GraphInfo":
        """nodes, edges, roots, bytes (of memory that the graph takes) and nanoseconds of the stages."""
        return self.core.info()

    def by_type(self) -> list[TypeRow]:
        """TypeRow for each type and for the buffers of each medium, most bytes retained first."""
        retained: dict[str | None, int] = {}
        for row in self.core.retained_by_type():
            retained[row.type] = retained.get(row.type, 0) + row.bytes
        total: dict[tuple[str, str | None], list[int]] = {}
        for group in self.core.groups():
            if group.site != SELF_SITE and group.count:
                entry = total.setdefault((group.medium, group.type), [0, 0])
                entry[0] += group.count
                entry[1] += group.bytes
        rows = [
            TypeRow(m, n, count, size, size if n is None else retained[n])
            for (m, n), (count, size) in total.items()
        ]
        return sorted(rows, key=lambda r: (-r.retained, r.medium, r.type or ""))

    def dominators(self, most: int = 20) -> list[Dominator]:
        """The ``most`` objects that retain most, largest first."""
        nodes = self.core.largest(checked_int("dominators(): most", most, 1))
        listed, names = set(nodes), self.names()
        return [self.dominator(node, listed, names) for node in nodes]

    def dominator(self, node: int, listed: Collection[int], names: dict[int, list[PathRow]]) -> Dominator:
        found = self.core.node(node)
        at = found.dominator
        while at not in listed:
            step = self.core.node(at).dominator
            if step == at:
                break
            at = step
        above = at if at in listed and at != node else None
        path = RetentionPath(self.elements(node, names))
        return Dominator(node, above, found.medium, found.type, found.bytes, found.retained, path)

    def names(self) -> dict[int, list[PathRow]]:
        """Paths that were named while the objects were there: node => elements."""
        return {int(node): path for node, path in json.loads(self._names.get()).items()}

    def elements(self, node: int, names: dict[int, list[PathRow]]) -> tuple[PathRow, ...]:
        """The path to a node: named as far as it was named when the snapshot was taken, by types from there
        on.
        """
        tail: list[PathRow] = []
        for at in reversed(self.core.path(node)):
            if at in names:
                return (*names[at], *reversed(tail))
            found = self.core.node(at)
            text = found.type.rpartition(".")[2] if found.type else f"buffer ({found.medium})"
            tail.append({"text": text, "edge": "reference", "type": found.type or "buffer"})
        return tuple(reversed(tail))

    def block_nodes(self) -> Iterator[tuple[int, int]]:
        """(address, node) of each block of the ledger."""
        parts = self.core.parts()
        blocks = {number for number, group in enumerate(self.core.groups()) if group.type is None}
        groups, addresses = memoryview(parts["group"]).cast("I"), memoryview(parts["address"]).cast("Q")
        for node, (number, address) in enumerate(zip(groups, addresses)):
            if number in blocks:
                yield address, node

    def holders(self, older: "Graph | None" = None) -> dict[int, list[tuple[int, int, int]]]:
        """group => (holder node, count, bytes) of its nodes, or of those that ``older`` lacks; most first.

        A node is taken for the same if address and type are: one that took the place of another is missed.
        """
        found: dict[int, list[tuple[int, int, int]]] = {}
        for row in self.core.holders(older.core if older is not None else None):
            found.setdefault(row.group, []).append((row.holder, row.count, row.bytes))
        return {group: sorted(rows, key=lambda r: (-r[1], r[0])) for group, rows in found.items()}

    def groups(self) -> list[tuple[str, str | None, int]]:
        """(medium, type, site) of each group, by its number."""
        return [(group.medium, group.type, group.site) for group in self.core.groups()]

    def paths(self, type_name: str, most: int = 8) -> list[tuple[RetentionPath, int, int]]:
        """(path to a holder, objects of the type below it, their bytes), most objects first.

        type_name: "dict", "torch.Tensor", ... as in by_type().
        Errors: LeakprobeError "bad_argument", also for no such type.
        """
        checked_int("paths(): most", most, 1)
        groups = [
            i
            for i, group in enumerate(self.core.groups())
            if group.type == type_name and group.site != SELF_SITE
        ]
        if not groups:
            raise LeakprobeError(
                f"there was no object of type {type_name!r:.80} when the snapshot was taken; see by_type()",
                "bad_argument",
            )
        total: dict[int, list[int]] = {}
        holders = self.holders()
        for holder, count, size in (row for group in groups for row in holders.get(group, ())):
            entry = total.setdefault(holder, [0, 0])
            entry[0] += count
            entry[1] += size
        names = self.names()
        largest = sorted(total.items(), key=lambda i: (-i[1][0], i[0]))[:most]
        return [
            (RetentionPath(self.elements(holder, names)), count, size) for holder, (count, size) in largest
        ]

    def references(self, nodes: Iterable[int]) -> list[tuple[int, int]]:
        """The references among these nodes."""
        nodes = set(nodes)
        return [(a, b) for a in nodes for b in self.core.referents(a) if b in nodes]

    # ---- files ----

    def to_saved(self, stack_of: Callable[[int], Iterable[FrameTuple]]) -> dict[str, Any]:
        """All of it as JSON can hold it; stack_of(site) gives the frames of a site."""
        parts: dict[str, Any] = {**self.core.parts()}
        saved = {name: packed(parts.pop(name)) for name in ARRAYS}
        stacks = {
            site: [list(f) for f in stack_of(site)]
            for _type, site, _medium in parts["groups"]
            if site >= FIRST_SITE
        }
        return {**saved, **parts, "stacks": stacks, "names": self._names.get(), "cycles": self._cycles.get()}

    @classmethod
    def from_saved(cls, saved: object) -> "Graph":
        """Errors: LeakprobeError "bad_graph"."""
        if not isinstance(saved, dict) or not all(
            isinstance(saved.get(key), str) for key in (*ARRAYS, "names", "cycles")
        ):
            raise LeakprobeError("the graph in the file is damaged: parts of it are missing", "bad_graph")
        left = ALWAYS + MOST_EXPANSION * sum(len(saved[name]) for name in ARRAYS)
        parts = {}
        for name in ARRAYS:
            parts[name] = unpacked(saved[name], name, left)
            left -= len(parts[name])
        # As the file has them: the core looks at each.
        whole: Any = {**{k: saved.get(k) for k in ("groups", "types", "named", "alive")}, **parts}
        core = _core.graph_load(whole)
        nodes = len(parts["flag"])
        try:
            names = named_paths(read_json(saved["names"]), nodes)
            cycles = [cycle_row(row, i) for i, row in enumerate(read_json(saved["cycles"]))]
            return cls(core, json.dumps(names), json.dumps(cycles))
        except BAD_DATA as error:
            raise LeakprobeError("the graph in the file is damaged: names or cycles", "bad_graph") from error


def packed(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data, 1)).decode("ascii")


def unpacked(text: str, name: str, most: int) -> bytes:
    try:
        data = base64.b64decode(text, validate=True)
        unpacker = zlib.decompressobj()
        result = unpacker.decompress(data, max(1, most))
        if not unpacker.eof:
            raise zlib.error("cut or too long")
    except (binascii.Error, zlib.error, ValueError) as error:
        raise LeakprobeError(f"the graph in the file is damaged: {name}: {error}", "bad_graph") from error
    return result


def take(max_bytes: int = 0) -> tuple[Graph, _core.Census]:
    """The object graph of now, and a census of its objects.

    Errors: LeakprobeError "graph_limit", "gc_running", "already_active".
    """
    core, cycles, names, census = _core.graph_take(True, max_bytes)
    for row in cycles:
        saved = cast(dict[str, Any], row)  # in place, since there may be many
        saved["sites"] = [
            (list(map(list, _core.site_frames(site))) if site >= FIRST_SITE else [], count, size)
            for site, count, size in row["sites"]
        ]
    return Graph(core, json.dumps(names), json.dumps(cycles)), cast(_core.Census, census)
