"""A frozen copy of what is alive, by medium, type and allocation site."""

import dataclasses
import json
import os
from collections.abc import Iterable, Iterator
from typing import Any, TextIO

from leakprobe import _core
from leakprobe.checks import checked_bool, checked_int, checked_path
from leakprobe.cycles import Cycle
from leakprobe.diff import Diff
from leakprobe.errors import LeakprobeError
from leakprobe.files import BAD_DATA, read_file, read_json, write_private
from leakprobe.graph import Dominator, Graph, TypeRow, take
from leakprobe.model import renderers
from leakprobe.model.frames import SELF_SITE, FrameTuple
from leakprobe.model.snapshot_rows import SnapshotRow, stack_of
from leakprobe.model.units import parse_limit
from leakprobe.record.parse import snapshot_row, stack, whole
from leakprobe.report.dot import dominators_to_dot
from leakprobe.retention import RetentionPath

SCHEMA = "leakprobe-snapshot"
SCHEMA_VERSION = 1


class Snapshot:
    """What was alive when it was taken; iterating gives SnapshotRow, sorted by size, largest first.

    It can be pickled, as what save() writes.

    graph: the Graph, or None for a snapshot without one; then by_type(), dominators(), cycles, paths() and
        to_dot() raise LeakprobeError "no_graph".
    """

    def __init__(
        self,
        rows: list[SnapshotRow] | None,
        step: int,
        core: Any = None,
        type_names: dict[int, str] | None = None,
        graph: Graph | None = None,
    ) -> None:
        self._rows, self.step = rows, step
        self.core, self._type_names = core, _core.keep_text(json.dumps(type_names or {}))
        self.graph = graph
        self.saved_stacks: dict[int, tuple[FrameTuple, ...]] | None = None

    @property
    def type_names(self) -> dict[int, str]:
        """The types of the core's rows, by number."""
        return {int(type_id): name for type_id, name in json.loads(self._type_names.get()).items()}

    @property
    def rows(self) -> list[SnapshotRow]:
        if self._rows is None:
            names = self.type_names
            self._rows = merged_rows(row_of(names, row) for row in self.core.rows())
        return sorted(self._rows, key=lambda r: -r.size)

    def __iter__(self) -> Iterator[SnapshotRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return (
            f"<leakprobe snapshot at step {self.step}{', with its graph' if self.graph is not None else ''}>"
        )

    def _repr_html_(self) -> str:
        """What a notebook shows: the largest rows."""
        shown: str = renderers.call("snapshot_in_notebook", self.rows, self.step)
        return shown

    def diff(self, older: "Snapshot") -> Diff:
        """What changed from ``older`` to this snapshot.  Errors: as of leakprobe.diff()."""
        return diff(older, self)

    def _known_graph(self) -> Graph:
        if self.graph is None:
            raise LeakprobeError(
                "this snapshot has no object graph: take it with snapshot(graph=True)", "no_graph"
            )
        return self.graph

    def by_type(self) -> list[TypeRow]:
        """Count, size and retained bytes of each type, and of the buffers of each medium; most retained
        first.
        """
        return self._known_graph().by_type()

    def dominators(self, most: int = 20) -> list[Dominator]:
        """The ``most`` objects with the largest retained size, as Dominator, largest first."""
        return self._known_graph().dominators(most)

    @property
    def cycles(self) -> list[Cycle]:
        """Garbage in cycles when the snapshot was taken, as Cycle, largest first."""
        return self._known_graph().cycles

    def paths(self, type_name: str, most: int = 8) -> list[tuple[RetentionPath, int, int]]:
        """(RetentionPath to a holder, objects of the type below it, their bytes), most objects first."""
        return self._known_graph().paths(type_name, most)

    def to_dot(self, most: int = 30) -> str:
        """The ``most`` largest dominators and the references among them, as Graphviz dot."""
        rows = self.dominators(most)
        return dominators_to_dot(rows, self._known_graph().references(row.node for row in rows))

    def to_dict(self) -> dict[str, Any]:
        """Rows, and with a graph what it says by type, of the largest dominators and of cycles: plain
        data.
        """
        rows = [{**dataclasses.asdict(r), "stack": [list(f) for f in r.stack]} for r in self.rows]
        made: dict[str, Any] = {
            "schema": SCHEMA,
            "schema_version": SCHEMA_VERSION,
            "step": self.step,
            "rows": rows,
        }
        if self.graph is not None:
            made["types"] = [dataclasses.asdict(r) for r in self.by_type()]
            made["dominators"] = [{**dataclasses.asdict(r), **r.path.to_dict()} for r in self.dominators()]
            made["cycles"] = [c.to_dict() for c in self.cycles]
        return made

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the snapshot as JSON, its graph too, readable by its owner only.

        Errors: LeakprobeError "unwritable_file" or "foreign_file"; a file that is there must be a snapshot.
        """
        write_private(path, self._saved(), "snapshot")

    def _saved(self) -> bytes:
        made = self.to_dict()
        if self.graph is not None:
            made["graph"] = self.graph.to_saved(self.graph_stack)
        return json.dumps(made).encode()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as save() writes it."""
        return type(self)._of_saved, (self._saved(), "what was pickled")

    def __copy__(self) -> "Snapshot":
        """Itself, as it does not change."""
        return self

    def __deepcopy__(self, _memo: object) -> "Snapshot":
        return self

    def graph_stack(self, site: int) -> tuple[FrameTuple, ...]:
        """The frames of a site of the graph's groups."""
        return stack_of(site) if self.saved_stacks is None else self.saved_stacks.get(site, ())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Snapshot":
        """Read what save() wrote; all of it is checked now, so that no later call fails on it.

        Errors: LeakprobeError "unreadable_file", "wrong_schema" or "bad_graph".
        """
        path = checked_path("path", path)
        return cls._of_saved(read_file(path), path)

    @classmethod
    def _of_saved(cls, content: bytes, path: str) -> "Snapshot":
        try:
            data = read_json(content.decode("utf-8"))
        except BAD_DATA as error:
            raise LeakprobeError(f"{path} can't be read as a snapshot: {error}", "unreadable_file") from error
        if not isinstance(data, dict) or (data.get("schema"), data.get("schema_version")) != (
            SCHEMA,
            SCHEMA_VERSION,
        ):
            raise LeakprobeError(
                f"{path} is not a snapshot of schema version {SCHEMA_VERSION}: save it again with this "
                "version",
                "wrong_schema",
            )
        try:
            made = cls([SnapshotRow(**snapshot_row(row)) for row in data["rows"]], whole(data["step"]))
            if "graph" in data:
                made.graph = Graph.from_saved(data["graph"])
                made.saved_stacks = {
                    int(site): stack(frames) for site, frames in data["graph"]["stacks"].items()
                }
        except LeakprobeError as error:
            raise LeakprobeError(f"{path} can't be read as a snapshot: {error}", error.code) from error
        except BAD_DATA as error:
            raise LeakprobeError(
                f"{path} can't be read as a snapshot: {error!r:.200}", "unreadable_file"
            ) from error
        return made

    def print(self, file: TextIO | None = None, limit: int = 20) -> None:
        """A table of the ``limit`` largest rows, 1 or more; with a graph also of its types and dominators.

        Errors: LeakprobeError "bad_argument".
        """
        from leakprobe.report.listings import print_snapshot

        checked_int("limit", limit, 1)
        print_snapshot(self, file=file, limit=limit)


def snapshot(graph: bool = False, *, max_bytes: str | float | None = None) -> Snapshot:
    """A Snapshot of now: native blocks of the ledger and, by a census, Python objects.

    Without a watch, sites are unknown, and native blocks are seen by the graph only, as far as arrays and
    tensors lead to them.  graph=True adds the object graph, with retained sizes, cycles and paths; it keeps
    no object alive.
    max_bytes: the most memory that taking the graph may use, such as "2 GiB"; None: any.
    Errors: LeakprobeError "graph_limit", "bad_argument", "bad_size", "gc_running", "already_active".
    """
    checked_bool("graph", graph)
    limit = parse_limit(max_bytes)
    with _core.QuietCollector():
        taken = take(limit) if graph else None
        census = _core.census(True, 0, 2**32 - 1, 2**32 - 1, True) if taken is None else taken[1]
        core, names = rows_of(census)
        return Snapshot(None, _core.step(), core, names, None if taken is None else taken[0])


def diff(older: Snapshot, newer: Snapshot) -> Diff:
    """The Diff of two snapshots, older first.  Errors: LeakprobeError "bad_argument" for anything else."""
    for name, value in (("older", older), ("newer", newer)):
        if not isinstance(value, Snapshot):
            raise LeakprobeError(
                f"diff(): {name} must be a Snapshot from leakprobe.snapshot(), not {type(value).__name__}",
                "bad_argument",
            )
    return Diff(older, newer)


def is_own_type(name: str) -> bool:
    """True for leakprobe's own classes, but not for those of its demos."""
    return name.startswith("leakprobe.") and not name.startswith("leakprobe.demo.")


def rows_of(census: _core.Census) -> tuple[Any, dict[int, str]]:
    """The rows in the core, and the names of their types."""
    groups = [g for g in census.top(2**31 - 1) if g.site != SELF_SITE and not is_own_type(g.type)]
    rows = [(g.type_id, g.site, g.first_step, g.last_step, g.count, g.bytes) for g in groups]
    return _core.snapshot_new(rows), {g.type_id: g.type for g in groups}


def row_of(type_names: dict[int, str], row: _core.LedgerRow) -> SnapshotRow:
    """A row of the core as text."""
    return SnapshotRow(
        row.medium,
        type_names.get(row.type_id),
        stack_of(row.site),
        row.first_step,
        row.last_step,
        row.count,
        row.bytes,
    )


def merged_rows(rows: Iterable[SnapshotRow]) -> list[SnapshotRow]:
    """Rows with the same key joined: several sites may read the same once they are text."""
    merged: dict[Any, SnapshotRow] = {}
    for row in rows:
        other = merged.get(row.key)
        if other is None:
            merged[row.key] = row
            continue
        merged[row.key] = dataclasses.replace(
            other,
            count=other.count + row.count,
            size=other.size + row.size,
            first_step=min(other.first_step, row.first_step),
            last_step=max(other.last_step, row.last_step),
        )
    return list(merged.values())
