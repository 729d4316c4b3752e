"""Paths and cycles as text trees: one line for each object, and behind it how the one before refers to it."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from leakprobe.model.finding import PathRow, first_wrong
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


#: Edges whose name is in the text of the element already, and what texts begin with that tell theirs.
_PLAIN = {"root", "frame", "module", "more", "outside", "unseen", "garbage", "buffer", "held"}
_TELLING = (".", "[")


def tree_lines(elements: Sequence[PathRow], last: str | None = None) -> list[str]:
    """The lines of a path, root first; ``last``: a line in place of the last element's own text.

    ┬─ train() in train.py
    ├─ history (list, 60 items)  local
    │  ~~~~~~~~~~~~~~~~~~~~~~~~  older than what grows in it
    ╰→ [59] Tensor

    The first element that is not meant to live as long as it does is underlined, with the reason.
    """
    lines = []
    wrong = first_wrong(elements)
    for i, element in enumerate(elements):
        is_last = i == len(elements) - 1
        text = clean(last if is_last and last is not None else element["text"])
        lines.append(f"{'┬─' if i == 0 else '╰→' if is_last else '├─'} {text}{edge_of(element) if i else ''}")
        if i == wrong:
            lines.append(f"{' ' if is_last else '│'}  {'~' * len(text)}  {clean(element.get('why', ''))}")
    return lines


def edge_of(element: PathRow) -> str:
    """How the one before refers to it, behind its text; "" where that says so itself."""
    edge, text = element["edge"], element["text"]
    if edge in _PLAIN or text.startswith((*_TELLING, edge.partition(" ")[0])):
        return ""
    return f"  {clean(edge)}"


def cycle_lines(cycle: Sequence[PathRow]) -> list[str]:
    """The lines of a cycle: once round it, the last is the first again."""
    return tree_lines(cycle, last=f"{cycle[-1]['text']}: the first again" if len(cycle) > 1 else None)


def shortened(elements: Sequence[PathRow], head: int, tail: int) -> list[PathRow]:
    """The first and the last elements; between them one that says how many are left out."""
    left_out = len(elements) - head - tail
    if left_out <= 1:
        return list(elements)
    gap: PathRow = {"text": f"... {left_out} more", "edge": "more", "type": None}
    return [*elements[:head], gap, *elements[-tail:]]


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
