"""Paths and cycles as text trees: one line for each object, and between them how the one refers to the
next.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

from leakprobe.model.finding import PathRow
from leakprobe.model.units import format_size
from leakprobe.report.clean import clean


class Retainer(Protocol):
    """An object with what it retains; above: the node of the nearest one that retains it too."""

    @property
    def node(self) -> int: ...

    @property
    def above(self) -> int | None: ...

    @property
    def retained(self) -> int: ...

    def text(self) -> str: ...


#: Edges whose name is in the text of the element already.
_PLAIN = {"root", "frame", "module", "more", "outside", "garbage"}


def tree_lines(elements: Sequence[PathRow], last: str | None = None) -> list[str]:
    """The lines of a path, root first; ``last``: a line in place of the last element's own text.

    ┬─ train() in train.py
    │    ↓ local
    ├─ history (list, 60 items)
    │    ↓ index
    ╰→ [59] Tensor
    """
    lines = []
    for i, element in enumerate(elements):
        is_last = i == len(elements) - 1
        if i and element["edge"] not in _PLAIN:
            lines.append(f"│    ↓ {clean(element['edge'])}")
        text = last if is_last and last is not None else element["text"]
        lines.append(f"{'┬─' if i == 0 else '╰→' if is_last else '├─'} {clean(text)}")
    return lines


def dominator_lines(dominators: Iterable[Retainer]) -> list[str]:
    """Dominators as a tree: each below the nearest one that retains it too.

    ``dominators``: each is below one of the same list, or below none.
    """
    below: dict[int | None, list[Retainer]] = {}
    for row in dominators:
        below.setdefault(row.above, []).append(row)
    lines: list[str] = []
    work = [(row, 0) for row in reversed(below.get(None, []))]
    while work:
        row, depth = work.pop()
        lines.append(
            f"{format_size(row.retained):>9}  {'  ' * depth}{'╰ ' if depth else ''}{clean(row.text())}"
        )
        work.extend((child, depth + 1) for child in reversed(below.get(row.node, [])))
    return lines
