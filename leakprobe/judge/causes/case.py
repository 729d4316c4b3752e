"""What the rules see of a leak: types with their bases, edges, provenance and media; no text that a user can
name.

A name counts only where the type that owns it gives it away: ``_forward_hooks`` of a torch Module.
"""

import dataclasses
import functools
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from leakprobe.model import inert
from leakprobe.model.bounds import CACHED_NAMES
from leakprobe.model.entry import Holder, Kind, Path, PathNode
from leakprobe.model.frames import FrameTuple

#: What a rule gives: the cause and the fix, or None.
Found = tuple[str, str] | None

#: The flag of types whose objects show the collector what they refer to (Py_TPFLAGS_HAVE_GC): of the flags
#: that these containers have in common the one that int has not.
HAVE_GC = tuple.__flags__ & dict.__flags__ & ~int.__flags__
#: Of their objects a walk reads what they refer to by other means.
READ_OTHERWISE = frozenset({"numpy", "torch"})
#: An edge to what stands under a key of a dict, with a factory for missing ones too.
KEY_EDGES = ("item", "default dict entry")
#: And to what has a place in a list or tuple.
ITEM_EDGES = (*KEY_EDGES, "index")
#: An edge to an attribute of an instance is of one of these kinds.
ATTRIBUTE_EDGES = ("attribute", "slot", "class attribute")
#: Edges to what the program has a name for; an index or a key is none.
NAMED_EDGES = (*ATTRIBUTE_EDGES, "global", "local", "closure")


@dataclasses.dataclass(frozen=True)
class Case:
    """What the rules may look at."""

    kind: Kind
    pattern: str
    path: Path
    holder: Holder | None
    media: frozenset[str]
    types: frozenset[str]
    line: str | None  # "train.py:61" where the holder grew or the growing thing was allocated
    made: str | None = None  # the same of the line that made what the holder refers to, in each step
    collectable: bool | None = None  # of a cycle: whether the collector can free it
    cycle: Path = ()
    in_library: bool = False  # the path begins in a module that is not the user's own
    has_graph: bool = False  # a tensor below the holder has a grad_fn
    steps: int = 0  # in so many steps was something born that is alive
    item_steps: int | None = None  # and of what the holder itself refers to; None where that is not known
    stack: Sequence[FrameTuple] = ()  # of the line that grew the holder, or that allocated, innermost first
    made_by: Sequence[
        FrameTuple
    ] = ()  # of the line that allocated, innermost first; empty where it is not known
    several: bool = False  # the entry stands for several holders
    collector: str = ""  # why the collector does not free garbage by itself: "" where it does
    unread: bool = False  # an autograd node that can't be read may be what keeps it
    frozen: bool = False  # as many objects as are in these cycles were frozen (gc.freeze()) in the meantime

    @functools.cached_property
    def depth(self) -> int:
        """The place of the holder on the path; 0 if it is not there."""
        return depth_of(self.holder, self.path)

    @property
    def above(self) -> Path:
        """The path down to the holder; all of it where there is none."""
        return self.path[: self.depth + 1] if self.holder is not None else self.path

    @property
    def below(self) -> Path:
        """The path below the holder."""
        return self.path[self.depth + 1 :] if self.holder is not None else self.path

    @property
    def holding(self) -> PathNode | None:
        """The holder as an element of the path."""
        return self.path[self.depth] if self.holder is not None and self.path else None

    @property
    def holder_bases(self) -> frozenset[str]:
        """Names of the holder's type and of what it derives from; empty where there is no holder."""
        if self.holder is None:
            return frozenset()
        node = self.holding
        is_same = node is not None and node.type == self.holder.type
        return bases(node) if node is not None and is_same else bases_of(self.holder.type)

    def has_type(self, *names: str) -> bool:
        """True if something on the path is an instance of such a type."""
        return any(is_a(node, *names) for node in self.path)

    def held_by_base(self, *names: str) -> bool:
        """True if the holder, or what leads to it, is an instance of such a class, given with its module."""
        return any(is_a(node, *names) for node in self.above)

    def on_cycle(self, *names: str) -> bool:
        """True if the cycle goes through an instance of such a type."""
        return any(is_a(node, *names) for node in self.cycle)


def depth_of(holder: Holder | None, path: Path) -> int:
    """The place of a holder on its path; 0 if it is not there.  What "NAME in OWNER" names is the owner."""
    text = holder.text if holder is not None else ""
    for i in reversed(range(len(path))):
        if path[i].text == text:
            return i
        if i > 0 and f"{path[i].text} in {path[i - 1].text}" == text:
            return i - 1
    return 0


def bases(node: PathNode) -> frozenset[str]:
    """Names of the node's type and of all that it derives from; a module's dict stands for the module."""
    return frozenset(node.bases) if node.type in node.bases else bases_of(node.type or "")


def is_a(node: PathNode, *names: str) -> bool:
    """True for an instance of one of these types or of a subclass; built-in types have no module."""
    return not bases(node).isdisjoint(names)


def is_one(type_name: str, names: Iterable[str]) -> bool:
    """The same of a type that is known by its name only."""
    return not bases_of(type_name).isdisjoint(names)


@functools.lru_cache(maxsize=CACHED_NAMES)
def bases_of(name: str) -> frozenset[str]:
    """Names of a class and of its bases, found by its name without running its code; its name alone if it
    can't be found.
    """
    found = class_of(name)
    if found is None:
        return frozenset({name})
    return frozenset({name, *map(inert.class_name, inert.mro_of(found))} - {"object"})


def is_opaque(name: str) -> bool:
    """True for a class of an extension that does not show the collector what its objects refer to."""
    module, _, _ = name.partition(".")
    if module == name or module in READ_OTHERWISE or module in sys.stdlib_module_names:
        return False
    found = class_of(name)
    return found is not None and not inert.flags_of(found) & HAVE_GC


def class_of(name: str) -> type | None:
    """The class of that name, found without running its code."""
    parts = name.split(".")
    found: Any = None
    split = 0
    for split in range(len(parts) - 1, 0, -1):
        found = sys.modules.get(".".join(parts[:split]))
        if found is not None:
            break
    for part in parts[split:] if found is not None else ():
        found = inert.space_of(found).get(part)
    return found if inert.is_class(found) else None


def name_of(node: PathNode) -> str:
    """The name that the one before has for it: an attribute, a global or a local variable."""
    return node.text.split(" ")[0].lstrip(".")


def is_attribute(owner: PathNode, node: PathNode, names: Iterable[str], *classes: str) -> bool:
    """True if ``node`` is an attribute with one of these names of an instance of one of these classes."""
    return node.edge in ATTRIBUTE_EDGES and is_a(owner, *classes) and name_of(node) in names


def at(case: Case) -> str:
    return f", {case.line}" if case.line else ""
