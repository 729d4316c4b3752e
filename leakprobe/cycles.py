"""Garbage in cycles: what only a collection would free, and what the collector can't free at all."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, TextIO

from leakprobe import _core
from leakprobe.model import renderers
from leakprobe.model.finding import PathRow
from leakprobe.model.frames import FIRST_SITE, FrameTuple, innermost_user_frame
from leakprobe.model.units import format_size, parse_limit
from leakprobe.report.clean import clean
from leakprobe.report.dot import cycle_to_dot
from leakprobe.report.streams import stream_of, write
from leakprobe.report.trees import cycle_lines


@dataclasses.dataclass(frozen=True)
class Cycle:
    """One strongly connected component of garbage, with all that only it keeps.

    path: elements {"text", "edge", "type"} once round the cycle, the first repeated at the end.
    objects: (type, count, bytes), most bytes first.
    bytes: by kind of memory.
    lacks: the edge that the collector can't see, {"source", "text", "edge", "type"}, or None.
    held_by: the Cycle that refers to this one, or None.
    sites: ((filename, lineno, function), count, bytes) where members were allocated, if a watch saw it.
    """

    path: tuple[PathRow, ...]
    members: int
    objects: tuple[tuple[str, int, int], ...]
    bytes: dict[str, int]
    collectable: bool
    lacks: dict[str, Any] | None
    sites: tuple[tuple[FrameTuple, int, int], ...]
    tracked: int
    held_by: "Cycle | None" = dataclasses.field(default=None, repr=False)

    @property
    def total_bytes(self) -> int:
        return sum(self.bytes.values())

    @property
    def count(self) -> int:
        """Objects of the cycle and of what it keeps."""
        return sum(count for _type, count, _bytes in self.objects)

    def why(self) -> str:
        """One sentence: who can free it, or why nobody does."""
        if self.collectable:
            return "gc.collect() frees it"
        if self.lacks:
            return (
                f"the collector can't free it: it does not see {self.lacks['source']} -> {self.lacks['text']}"
            )
        if self.held_by is not None:
            return "the collector can't free it: another such cycle holds it"
        return "the collector can't free it"

    def text(self) -> str:
        """The cycle as a tree: once round it, then what it keeps."""
        media = ", ".join(
            f"{format_size(size)} {medium}"
            for medium, size in sorted(self.bytes.items(), key=lambda i: -i[1])
        )
        lines = [
            f"CYCLE  {self.members} member{'s' * (self.members != 1)}, keeps {self.count} objects, {media}",
            clean(self.why()),
        ]
        lines += cycle_lines(self.path)
        lines += [
            f"   {count} x {clean(name)}, {format_size(size)}" for name, count, size in self.objects[:8]
        ]
        lines += [
            f"   allocated {clean(frame[0])}:{frame[1]} {clean(frame[2])}, {count} x"
            for frame, count, _size in self.sites[:4]
        ]
        return "\n".join(lines)

    def to_dot(self) -> str:
        """The cycle as Graphviz dot; an edge that the collector can't see is dashed and red."""
        return cycle_to_dot(self)

    def __repr__(self) -> str:
        return f"<Cycle of {self.members} members, {format_size(self.total_bytes)}: {self.why()}>"

    def print(self, file: TextIO | None = None) -> None:
        """The cycle as a tree, in ASCII where the stream's encoding has no signs of trees."""
        write(self.text() + "\n", stream_of(file))

    def _repr_html_(self) -> str:
        """What a notebook shows: who can free it, and once round it."""
        shown: str = renderers.call(
            "cycle_in_notebook", self.path, self.text().partition("\n")[0], self.why()
        )
        return shown

    def to_dict(self) -> dict[str, Any]:
        return {
            "path": [dict(p) for p in self.path],
            "members": self.members,
            "count": self.count,
            "objects": [{"type": name, "count": count, "bytes": size} for name, count, size in self.objects],
            "bytes": dict(self.bytes),
            "collectable": self.collectable,
            "lacks": dict(self.lacks) if self.lacks else None,
            "sites": [
                {"filename": f[0], "lineno": f[1], "function": f[2], "count": n, "bytes": b}
                for f, n, b in self.sites
            ],
            "held_by_another": self.held_by is not None,
        }


def find_cycles(torch: bool = True, *, max_bytes: str | float | None = None) -> list[Cycle]:
    """All garbage in cycles, largest first; nothing is collected and nothing is changed.

    torch=False leaves out what only torch's own getters show.  max_bytes: the most memory that the search may
    take, such as "2 GiB"; None: any.  Errors: LeakprobeError "graph_limit", "bad_size", "gc_running",
    "already_active".
    """
    rows: Any = _core.find_cycles(torch, 0, parse_limit(max_bytes))
    for row in rows:
        row["sites"] = [
            (_core.site_frames(site) if site >= FIRST_SITE else (), count, size)
            for site, count, size in row["sites"]
        ]
    return cycles_of(rows)


def cycles_of(rows: Iterable[Mapping[str, Any]]) -> list[Cycle]:
    """Cycles of what the core found, with frames in place of sites; largest first."""
    made: list[Cycle] = []
    for row in rows:
        made.append(
            Cycle(
                path=tuple(row["path"]),
                members=row["members"],
                objects=tuple(sorted(map(tuple, row["objects"]), key=lambda o: (-o[2], o[0]))),
                bytes=row["bytes"],
                collectable=row["collectable"],
                lacks=row["lacks"],
                sites=frames_of(row["sites"]),
                tracked=row["tracked"],
                held_by=None if row["held_by"] is None else made[row["held_by"]],
            )
        )
    return sorted(made, key=lambda cycle: (-cycle.total_bytes, [part["text"] for part in cycle.path]))


def frames_of(sites: Iterable[tuple[Any, int, int]]) -> tuple[tuple[FrameTuple, int, int], ...]:
    found: list[tuple[FrameTuple, int, int]] = []
    for stack, count, size in sites:
        frame = innermost_user_frame(stack) or (stack[0] if stack else None)
        if frame:
            filename, lineno, function = frame
            found.append(((filename, lineno, function), count, size))
    return tuple(sorted(found, key=lambda s: (-s[2], s[0])))
