"""The difference of two snapshots."""

import dataclasses
import functools
import os
from collections.abc import Iterable, Iterator
from typing import Any, Protocol, TextIO

from leakprobe.checks import checked_int
from leakprobe.graph import Graph
from leakprobe.model import renderers
from leakprobe.model.finding import PathRow
from leakprobe.model.frames import SELF_SITE, FrameTuple
from leakprobe.model.snapshot_rows import SnapshotRow, stack_of


class Taken(Protocol):
    """What is compared: a Snapshot."""

    step: int
    core: Any
    graph: Graph | None

    @property
    def type_names(self) -> dict[int, str]: ...

    def __iter__(self) -> Iterator[SnapshotRow]: ...

    def graph_stack(self, site: int) -> Iterable[FrameTuple]: ...


@dataclasses.dataclass(frozen=True)
class DiffRow:
    """One kind of memory, type and site whose live blocks changed.

    count_diff, size_diff: newer minus older; sizes in bytes.
    stack: frames (filename, lineno, function), innermost first.
    where: "train.py:58" of the user's own code, else of the innermost frame, else why there is none.
    holder: where the newer snapshot has a graph and the row grew, what holds most of the new ones, as
        {"text", "edge", "type", "count"}; else None.
    path: likewise the path from a root to them, elements {"text", "edge", "type"}.
    """

    medium: str
    type: str | None
    stack: tuple[FrameTuple, ...]
    count_diff: int
    size_diff: int
    where: str
    holder: dict[str, Any] | None = None
    path: tuple[PathRow, ...] | None = None


class Diff:
    """What changed between two snapshots; iterating gives DiffRow, the largest change first."""

    def __init__(self, older: Taken, newer: Taken):
        rows = [r for r in merged(changes(older, newer)) if r.count_diff or r.size_diff]
        if newer.graph is not None:
            rows = with_holders(rows, older, newer)
        self.rows: list[DiffRow] = sorted(rows, key=lambda r: (-abs(r.size_diff), r.medium, r.where))
        self.steps = (older.step, newer.step)

    def __iter__(self) -> Iterator[DiffRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"<leakprobe diff from step {self.steps[0]} to step {self.steps[1]}, {len(self)} rows>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the largest changes."""
        shown: str = renderers.call("diff_in_notebook", self.rows, self.steps)
        return shown

    def to_dict(self) -> dict[str, Any]:
        rows = [{**dataclasses.asdict(r), "stack": [list(f) for f in r.stack]} for r in self.rows]
        return {"schema_version": 1, "steps": list(self.steps), "rows": rows}

    def to_html(self, path: str | os.PathLike[str], *, redact: bool = False) -> None:
        """Write one self-contained page, readable by its owner only; needs jinja2 and plotly.

        redact: names of folders are left out.  Errors: LeakprobeError "missing_package", "unwritable_file" or
        "foreign_file".
        """
        renderers.call("diff_to_html", self, path, redact=redact)

    def print(self, file: TextIO | None = None, limit: int = 20) -> None:
        """A table of the ``limit`` largest changes, 1 or more.  Errors: LeakprobeError "bad_argument"."""
        from leakprobe.report.listings import print_diff

        checked_int("limit", limit, 1)
        print_diff(self, file=file, limit=limit)


def with_holders(rows: Iterable[DiffRow], older: Taken, newer: Taken) -> list[DiffRow]:
    """The rows, those that grew with the holder of most of what is new."""
    graph = newer.graph
    by_key: dict[Any, tuple[int, int]] = {}
    numbers: dict[Any, list[int]] = {}
    if graph is None:
        return list(rows)
    for number, group in enumerate(graph.core.groups()):
        if group.site != SELF_SITE:
            key = (group.medium, group.type or "", tuple(newer.graph_stack(group.site)))
            numbers.setdefault(key, []).append(number)
    holders, names = graph.holders(older.graph), graph.names()
    for key, groups in numbers.items():
        total: dict[int, int] = {}
        for holder, count, _size in (row for group in groups for row in holders.get(group, ())):
            total[holder] = total.get(holder, 0) + count
        if total:
            by_key[key] = max(total.items(), key=lambda i: (i[1], -i[0]))
    return [
        with_holder(row, by_key.get((row.medium, row.type or "", row.stack)), graph, names) for row in rows
    ]


def with_holder(
    row: DiffRow, found: tuple[int, int] | None, graph: Graph, names: dict[int, list[PathRow]]
) -> DiffRow:
    if found is None or max(row.count_diff, row.size_diff) <= 0:
        return row
    node, count = found
    path = graph.elements(node, names)
    kind = row.type.rpartition(".")[2] if row.type else f"buffer ({row.medium})"
    held: PathRow = {"text": f"{count} x {kind}", "edge": "held", "type": row.type or "buffer"}
    return dataclasses.replace(row, holder={**path[-1], "count": count}, path=(*path, held))


def changes(older: Taken, newer: Taken) -> Iterator[SnapshotRow]:
    """SnapshotRow of each difference; count and size are differences."""
    before, after = older.type_names, newer.type_names
    if older.core is not None and newer.core is not None and agree(before, after):
        names, stacks = {**before, **after}, functools.cache(stack_of)
        for row in newer.core.diff(older.core):
            yield SnapshotRow(
                row.medium, names.get(row.type_id), stacks(row.site), 0, 0, row.count_diff, row.size_diff
            )
        return
    yield from newer
    for row in older:
        yield dataclasses.replace(row, count=-row.count, size=-row.size)


def agree(a: dict[int, str], b: dict[int, str]) -> bool:
    """True if no address stands for two types: a class may die and another take its place."""
    return all(b.get(type_id, name) == name for type_id, name in a.items())


def merged(rows: Iterable[SnapshotRow]) -> Iterator[DiffRow]:
    """DiffRow by what the rows read as: sites may differ and read the same."""
    total: dict[Any, list[Any]] = {}
    places: dict[Any, str] = {}
    for row in rows:
        entry = total.setdefault(row.key, [row, 0, 0])
        entry[1] += row.count
        entry[2] += row.size
    for row, count, size in total.values():
        if row.stack not in places:
            places[row.stack] = row.where()
        yield DiffRow(row.medium, row.type, row.stack, count, size, places[row.stack])
