"""What keeps one object alive, and what would go with it."""

import dataclasses
import sys

from leakprobe import _core
from leakprobe.model import renderers
from leakprobe.model.units import parse_limit
from leakprobe.report.dot import path_to_dot
from leakprobe.report.trees import tree_lines


@dataclasses.dataclass(frozen=True)
class RetentionPath:
    """A chain of references from a root to the object; elements are {"text", "edge", "type"}, root first."""

    elements: tuple

    def text(self) -> str:
        """The path as a tree: a line for each element, and between them how the one refers to the next."""
        return "\n".join(tree_lines(self.elements))

    def to_dot(self) -> str:
        """The path as Graphviz dot."""
        return path_to_dot(self.elements)

    def __str__(self) -> str:
        return " -> ".join(element["text"] for element in self.elements)

    def __repr__(self) -> str:
        return f"<RetentionPath {self}>"

    def print(self, file=None) -> None:
        print(self.text(), file=file or sys.stdout)

    def _repr_html_(self) -> str:
        """What a notebook shows: the path, root first."""
        return renderers.call("paths_in_notebook", [self.elements])

    def to_dict(self) -> dict:
        return {"path": [dict(e) for e in self.elements]}


class RetentionPaths(list):
    """The list of RetentionPath that why() gives; a notebook shows it as paths."""

    def _repr_html_(self) -> str:
        return renderers.call("paths_in_notebook", [path.elements for path in self])


def why(obj, most: int = 8, *, max_bytes=None) -> list[RetentionPath]:
    """What keeps ``obj`` alive besides this call: at most ``most`` paths, the nearest root first.

    max_bytes: the most memory that the search may take, such as "2 GiB"; None: any.
    Errors: LeakprobeError "only_this_call" (nothing else keeps it), "shared_object" (numbers, constants,
    interned strings, built-in types), "dead_object" (a dead weakref proxy), "graph_limit", "bad_size",
    "gc_running".
    """
    return RetentionPaths(RetentionPath(tuple(path)) for path in _core.why(obj, most, parse_limit(max_bytes)))


def retained_size(obj, *, max_bytes=None) -> int:
    """Bytes that would be freed if ``obj`` went: the object and all that only it leads to, buffers included.

    max_bytes and errors as for why(), without "only_this_call".
    """
    return _core.retained_size(obj, parse_limit(max_bytes))
