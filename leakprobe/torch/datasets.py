"""What a dataset holds, attribute by attribute: types, counts, bytes, and the pages that reading it copies.

The walk runs no code of the dataset: attributes come from instance dicts and slots, everything below them
is read in C without touching a reference count.
"""

import dataclasses
import types
from collections.abc import Iterator
from typing import Any

from leakprobe import _core
from leakprobe.errors import LeakprobeError
from leakprobe.model import inert
from leakprobe.model.bounds import DATASET_DEPTH as MAX_DEPTH
from leakprobe.model.bounds import DATASET_ITEMS as MAX_ITEMS
from leakprobe.model.bounds import DATASET_OBJECTS as MAX_OBJECTS
from leakprobe.model.entry import Path, PathNode
from leakprobe.model.facts import HEAP_TYPE, PAGE_BYTES
from leakprobe.model.frames import FIRST_SITE, is_user_file
from leakprobe.model.thresholds import LEVEL

#: Modules whose classes are looked into, besides the user's own.
OPEN_MODULES = ("torch.utils.data", "torchdata", "torchvision.datasets")
ATOMS = (
    int,
    float,
    complex,
    str,
    bytes,
    bool,
    type(None),
    type,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.ModuleType,
)
SIZED = (list, tuple, dict, set, frozenset, bytes, bytearray, str)


@dataclasses.dataclass
class Attribute:
    """One attribute with all that is reached through it first."""

    name: str  # "dataset.paths"
    path: Path
    type: str
    length: int | None
    first_type: str | None  # of its first item
    site: int  # where its first item, or it itself, was allocated; 0 if not known
    region: int
    count: int
    bytes: int  # of objects, whose pages are copied when they are read
    array_bytes: int  # of numpy data, which reading leaves shared
    pages: int
    types: list[_core.TypeTally]

    @property
    def copied_bytes(self) -> int:
        """What reading all of it copies, at most."""
        return self.pages * PAGE_BYTES

    def item_type(self) -> str | None:
        """The type of the items, where nearly all have one."""
        counts = {name: count for name, count, _ in self.types}
        if self.first_type is None or not self.length:
            return None
        return self.first_type if counts.get(self.first_type, 0) >= (1 - LEVEL) * self.length else None

    def describe(self) -> str:
        """ "list of 1,000,000 str"."""
        if self.length is None:
            return self.type
        item = self.item_type()
        return f"{self.type} of {self.length:,} {item}" if item else f"{self.type} of {self.length:,} items"


class DatasetWalk:
    """The attributes of one dataset, largest first; keeps no reference to any of them unless
    ``keep_values``.
    """

    def __init__(self, dataset: object, name: str = "dataset", keep_values: bool = False):
        self._keeps_values = keep_values
        self.values: dict[int, object] = {}  # region -> value, where they are kept
        self.reach = _core.reach_new(MAX_OBJECTS)
        self.attributes: list[Attribute] = []
        self._seen: set[int] = set()
        self._expand(
            dataset,
            name,
            (PathNode(f"{name} {inert.own_name(type(dataset))}", "loader", type_name(dataset)),),
            0,
        )
        self.reach.finish()
        self.attributes.sort(key=lambda a: -a.pages)

    def _expand(self, value: object, name: str, path: Path, depth: int) -> None:
        if id(value) in self._seen:
            return
        parts = list(parts_of(value)) if depth < MAX_DEPTH else []
        if not parts:
            self._add(value, name, path)
            return
        self._seen.add(id(value))
        for key, edge, part in parts:
            if issubclass(type(part), ATOMS) and not issubclass(type(part), (str, bytes)):
                continue
            text = f"{key} {described(part)}"
            self._expand(part, name + key, (*path, PathNode(text, edge, type_name(part))), depth + 1)

    def _add(self, value: object, name: str, path: Path) -> None:
        number = self.reach.add(value)
        found = self.reach.region(number)
        if found["count"] == 0:
            return
        if self._keeps_values:
            self.values[number] = value
        first = first_of(value)
        self.attributes.append(
            Attribute(
                name=name,
                path=path,
                type=type_name(value),
                length=length_of(value),
                first_type=None if first is value else type_name(first),
                site=site_of(first) or site_of(value),
                region=number,
                count=found["count"],
                bytes=found["bytes"],
                array_bytes=found["array_bytes"],
                pages=found["pages"],
                types=found["types"],
            )
        )


def parts_of(value: Any) -> Iterator[tuple[str, str, Any]]:
    """(".name" or "[key]", edge, part) of what is looked into; nothing for what is told as a whole."""
    kind = type(value)
    if inert.is_one_of(kind, (list, tuple)):
        if len(value) <= MAX_ITEMS and any(is_worth_naming(v) for v in value):
            yield from ((f"[{i}]", "item", v) for i, v in enumerate(value))
    elif kind is dict:
        if len(value) <= MAX_ITEMS and any(is_worth_naming(v) for v in value.values()):
            yield from (
                (f"[{key!r}]" if inert.is_one_of(type(key), (str, int)) else "[...]", "value", v)
                for key, v in list(value.items())
            )
    elif is_open(kind):
        yield from ((f".{name}", "attribute", v) for name, v in attributes_of(value))


def is_worth_naming(value: object) -> bool:
    return (not issubclass(type(value), ATOMS) and (length_of(value) or 0) > MAX_ITEMS) or is_open(
        type(value)
    )


def is_open(kind: type) -> bool:
    """True for classes of the user's own, and those of libraries that only wrap datasets."""
    name = inert.module_of(kind)
    if name is None or not inert.flags_of(kind) & HEAP_TYPE:
        return False
    if name.startswith(OPEN_MODULES):
        return True
    return name == "__main__" or is_user_file(inert.file_of_module(name) or "")


def attributes_of(value: object) -> Iterator[tuple[str, Any]]:
    """(name, value) of an instance's own attributes, without running its code."""
    yield from ((str(name), v) for name, v in list(inert.attributes(value).items()))
    for cls in inert.mro_of(type(value)):
        for name, member in list(inert.space_of(cls).items()):
            if type(member) is types.MemberDescriptorType and is_open(cls):
                try:
                    yield name, member.__get__(value)
                except AttributeError:
                    continue


def length_of(value: Any) -> int | None:
    """len() of the built-in containers, of arrays and tensors; of nothing whose len() is the user's own
    code.
    """
    if inert.is_one_of(type(value), SIZED):
        return len(value)
    library = (inert.module_of(type(value)) or "").partition(".")[0]
    shape = getattr(value, "shape", None) if library in ("numpy", "torch", "pandas") else None
    return int(shape[0]) if isinstance(shape, tuple) and shape else None


def described(value: object) -> str:
    length = length_of(value)
    kind = inert.own_name(type(value))
    return kind if length is None else f"({kind}, {length:,} items)"


def type_name(value: object) -> str:
    return inert.class_name(type(value))


def first_of(value: Any) -> Any:
    """The first item of a list, tuple or dict, else the value itself: one item's reference count is touched,
    no more.
    """
    if inert.is_one_of(type(value), (list, tuple)) and value:
        return value[0]
    return next(iter(value.values())) if type(value) is dict and value else value


def site_of(value: object) -> int:
    """The site that made it while a watch was on, or 0."""
    try:
        birth = _core.site_of(value)
    except LeakprobeError:
        return 0
    return birth.site if birth is not None and birth.site >= FIRST_SITE else 0
