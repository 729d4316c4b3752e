"""Snapshots and differences as tables, and below them who keeps what: as trees."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TextIO

from rich.text import Text

from leakprobe.model.finding import PathRow
from leakprobe.model.snapshot_rows import SnapshotRow
from leakprobe.model.units import counted, format_size
from leakprobe.report.clean import clean
from leakprobe.report.diagnostic import say
from leakprobe.report.text import console_for, print_rows
from leakprobe.report.trees import Retainer, dominator_lines, tree_lines

#: Rows of a difference whose path is shown.
MOST_PATHS = 5


class Rows(Protocol):
    """A row of a snapshot, of a graph by type."""

    @property
    def medium(self) -> str: ...
    @property
    def type(self) -> str | None: ...
    @property
    def count(self) -> int: ...
    @property
    def size(self) -> int: ...


class TypeRows(Rows, Protocol):
    """A leakprobe.TypeRow."""

    @property
    def retained(self) -> int: ...


class Cycles(Protocol):
    """A leakprobe.Cycle."""

    def text(self) -> str: ...


class GraphLike(Protocol):
    """A leakprobe.Graph."""

    @property
    def info(self) -> Mapping[str, Any]: ...
    @property
    def cycles(self) -> Sequence[Cycles]: ...
    def by_type(self) -> Sequence[TypeRows]: ...
    def dominators(self, most: int = 20) -> Sequence[Retainer]: ...


class SnapshotLike(Protocol):
    """A leakprobe.Snapshot."""

    @property
    def rows(self) -> Sequence[SnapshotRow]: ...
    @property
    def step(self) -> int: ...
    @property
    def graph(self) -> GraphLike | None: ...


class DiffRows(Protocol):
    """A leakprobe.DiffRow."""

    @property
    def medium(self) -> str: ...
    @property
    def type(self) -> str | None: ...
    @property
    def count_diff(self) -> int: ...
    @property
    def size_diff(self) -> int: ...
    @property
    def where(self) -> str: ...
    @property
    def path(self) -> Sequence[PathRow] | None: ...


class DiffLike(Protocol):
    """A leakprobe.Diff."""

    @property
    def rows(self) -> Sequence[DiffRows]: ...
    @property
    def steps(self) -> tuple[int, int]: ...


def print_snapshot(snapshot: SnapshotLike, file: TextIO | None = None, limit: int = 20) -> None:
    every = snapshot.rows
    rows = [(format_size(r.size), r.count, r.medium, r.type or "", r.where()) for r in every[:limit]]
    print_rows(
        f"snapshot at step {snapshot.step}: {counted(len(every), 'row')}",
        ["size", "count", "memory", "type", "allocated at"],
        rows,
        file,
    )
    if snapshot.graph is not None:
        print_graph(snapshot.graph, file, limit)


def print_graph(graph: GraphLike, file: TextIO | None, limit: int) -> None:
    """Types, dominators and cycles of a snapshot."""
    info, cycles = graph.info, graph.cycles
    rows = [
        (format_size(r.retained), format_size(r.size), r.count, r.medium, r.type or "")
        for r in graph.by_type()[:limit]
    ]
    title = (
        f"graph: {info['nodes']:,} objects and buffers, {info['edges']:,} references, "
        f"{counted(len(cycles), 'cycle')} of garbage"
    )
    print_rows(title, ["retained", "size", "count", "memory", "type"], rows, file)
    with console_for(file) as console:
        console.print(Text("\n retained  largest dominators"))
        for line in dominator_lines(graph.dominators(limit)):
            console.print(Text(line), no_wrap=True, overflow="ellipsis")
        for cycle in cycles[:3]:
            console.print(Text("\n" + cycle.text()))


def print_diff(diff: DiffLike, file: TextIO | None = None, limit: int = 20) -> None:
    every = diff.rows[:limit]
    rows = [(format_size(r.size_diff), f"{r.count_diff:+}", r.medium, r.type or "", r.where) for r in every]
    title = f"from step {diff.steps[0]} to step {diff.steps[1]}: {counted(len(diff.rows), 'row')} changed"
    print_rows(title, ["size", "count", "memory", "type", "allocated at"], rows, file)
    kept = [(row, row.path) for row in every if row.path][:MOST_PATHS]
    with console_for(file) as console:
        for row, path in kept:
            console.print()
            head = f"{format_size(row.size_diff)} of {row.type or 'buffers'}, {row.where}, kept by"
            say(console, Text(clean(head), style="dim"), indent=0)
            for line in tree_lines(path):
                say(console, Text(line), indent=0, hang=3)
