"""What keeps one object alive, and what would go with it."""

import dataclasses
import sys

from leakprobe import _core


@dataclasses.dataclass(frozen=True)
class RetentionPath:
    """A chain of references from a root to the object; elements are {"text", "edge", "type"}, root first."""

    elements: tuple

    def text(self) -> str:
        """The path as a tree, one line for each element."""
        lines = []
        for i, element in enumerate(self.elements):
            lines.append(f"{'┬─' if i == 0 else '╰→' if i == len(self.elements) - 1 else '├→'} {element['text']}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return " -> ".join(element["text"] for element in self.elements)

    def print(self, file=None) -> None:
        print(self.text(), file=file or sys.stdout)

    def to_dict(self) -> dict:
        return {"path": [dict(e) for e in self.elements]}


def why(obj, most: int = 8) -> list[RetentionPath]:
    """What keeps ``obj`` alive besides this call: at most ``most`` paths, the nearest root first.

    Errors: LeakprobeError "only_this_call" (nothing else keeps it), "shared_object" (numbers, constants, interned
    strings, built-in types), "dead_object" (a dead weakref proxy), "gc_running".
    """
    return [RetentionPath(tuple(path)) for path in _core.why(obj, most)]


def retained_size(obj) -> int:
    """Bytes that would be freed if ``obj`` went: the object and all that only it leads to, buffers included."""
    return _core.retained_size(obj)
