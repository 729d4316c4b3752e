"""What keeps one object alive, and what would go with it."""

import dataclasses
from typing import Any, TextIO

from leakprobe import _core
from leakprobe.checks import checked_int
from leakprobe.model import renderers
from leakprobe.model.bounds import MOST_PATHS
from leakprobe.model.finding import PathRow
from leakprobe.model.units import parse_limit
from leakprobe.report.dot import path_to_dot
from leakprobe.report.streams import stream_of, write
from leakprobe.report.trees import tree_lines

#: Elements of a path that its repr() shows.
SHOWN = 4


@dataclasses.dataclass(frozen=True)
class RetentionPath:
    """A chain of references from a root to the object; elements are {"text", "edge", "type"}, root first."""

    elements: tuple[PathRow, ...]

    def text(self) -> str:
        """The path as a tree: a line for each element, and between them how the one refers to the next."""
        return "\n".join(tree_lines(self.elements))

    def to_dot(self) -> str:
        """The path as Graphviz dot."""
        return path_to_dot(self.elements)

    def __str__(self) -> str:
        return " -> ".join(element["text"] for element in self.elements)

    def __repr__(self) -> str:
        texts = [element["text"] for element in self.elements]
        shown = texts if len(texts) <= SHOWN else [*texts[: SHOWN - 1], "...", texts[-1]]
        return f"<RetentionPath {' -> '.join(shown)}>"

    def print(self, file: TextIO | None = None) -> None:
        """The path as a tree, in ASCII where the stream's encoding has no signs of trees."""
        write(self.text() + "\n", stream_of(file))

    def _repr_html_(self) -> str:
        """What a notebook shows: the path, root first."""
        shown: str = renderers.call("paths_in_notebook", [self.elements])
        return shown

    def to_dict(self) -> dict[str, Any]:
        return {"path": [dict(e) for e in self.elements]}


class RetentionPaths(list[RetentionPath]):
    """The list of RetentionPath that why() gives; a notebook shows it as paths."""

    def _repr_html_(self) -> str:
        shown: str = renderers.call("paths_in_notebook", [path.elements for path in self])
        return shown


def why(obj: object, most: int = 8, *, max_bytes: str | float | None = None) -> list[RetentionPath]:
    """What keeps ``obj`` alive besides this call: at most ``most`` paths (1 to 64), the nearest root first.

    max_bytes: the most memory that the search may take, such as "2 GiB"; None: any.
    Errors: LeakprobeError "only_this_call" (nothing else keeps it), "shared_object" (numbers, constants,
    interned strings, built-in types), "bad_argument", "dead_object" (a dead weakref proxy), "graph_limit",
    "bad_size", "gc_running".
    """
    checked_int("most", most, 1, MOST_PATHS)
    found: Any = _core.why(obj, most, parse_limit(max_bytes))
    return RetentionPaths(RetentionPath(tuple(path)) for path in found)


def retained_size(obj: object, *, max_bytes: str | float | None = None) -> int:
    """Bytes that would be freed if ``obj`` went: the object and all that only it leads to, buffers included.

    max_bytes and errors as for why(), without "only_this_call".
    """
    return _core.retained_size(obj, parse_limit(max_bytes))
