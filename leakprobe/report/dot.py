"""Paths, cycles and dominators as Graphviz dot."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from leakprobe.model.finding import PathRow
from leakprobe.model.units import format_size
from leakprobe.report.clean import clean
from leakprobe.report.trees import Retainer

Attributes = Mapping[str, str]
Node = tuple[int, str, Attributes]
Edge = tuple[int, int, str, Attributes]


class Ring(Protocol):
    """A cycle; lacks: what the collector can't see of its first edge, or None."""

    @property
    def path(self) -> Sequence[PathRow]: ...

    @property
    def lacks(self) -> object: ...


def quote(text: object) -> str:
    """A quoted dot string; what a terminal would obey is escaped, and no character ends the string early."""
    return '"' + clean(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def digraph(nodes: Iterable[Node], edges: Iterable[Edge], name: str = "leakprobe") -> str:
    """nodes: (id, label, attributes); edges: (from id, to id, label, attributes).  Attributes: dicts of plain
    words.
    """
    lines = [f"digraph {quote(name)} {{", "  rankdir=LR;", '  node [shape=box, fontname="monospace"];']
    for number, label, attributes in nodes:
        lines.append(f"  n{number} [{listed({'label': label, **attributes})}];")
    for source, target, label, attributes in edges:
        lines.append(f"  n{source} -> n{target} [{listed({'label': label, **attributes})}];")
    return "\n".join([*lines, "}"]) + "\n"


def listed(attributes: Attributes) -> str:
    return ", ".join(f"{key}={quote(value)}" for key, value in attributes.items())


def path_to_dot(elements: Sequence[PathRow]) -> str:
    """A chain from the root (an ellipse) to the object (bold)."""
    nodes: list[Node] = []
    edges: list[Edge] = []
    for i, element in enumerate(elements):
        style = {"shape": "ellipse"} if i == 0 else {"style": "bold"} if i == len(elements) - 1 else {}
        nodes.append((i, element["text"], style))
        if i:
            edges.append((i - 1, i, element["edge"], {}))
    return digraph(nodes, edges, "retention path")


def cycle_to_dot(cycle: Ring) -> str:
    """A ring; an edge that the collector can't see is dashed and red."""
    ring = cycle.path[:-1] or cycle.path
    nodes: list[Node] = [(i, element["text"], {}) for i, element in enumerate(ring)]
    edges: list[Edge] = []
    for i, element in enumerate(cycle.path[1:]):
        unseen = cycle.lacks is not None and i == 0
        edges.append(
            (i, (i + 1) % len(ring), element["edge"], {"style": "dashed", "color": "red"} if unseen else {})
        )
    return digraph(nodes, edges, "cycle")


def dominators_to_dot(dominators: Sequence[Retainer], references: Iterable[tuple[int, int]]) -> str:
    """Dominators with what they retain; dotted: the dominator tree, where there is no reference beside it.

    references: (node, node) pairs among them.
    """
    number = {row.node: i for i, row in enumerate(dominators)}
    nodes: list[Node] = [
        (i, f"{row.text()} [{format_size(row.retained)}]", {}) for i, row in enumerate(dominators)
    ]
    pairs = {(number[a], number[b]) for a, b in references if a in number and b in number and a != b}
    edges: list[Edge] = [(a, b, "", {}) for a, b in sorted(pairs)]
    for row in dominators:
        if row.above is not None and (number[row.above], number[row.node]) not in pairs:
            edges.append((number[row.above], number[row.node], "", {"style": "dotted"}))
    return digraph(nodes, edges, "dominators")
