"""What is read of the program's classes, instances and modules without running code of theirs.

A metaclass may answer for ``__module__``, a property for ``__dict__`` or ``__class__``, and what lies in
sys.modules may be any object, such as one that imports, and fails to, when it is asked for ``__file__``.
"""

import sys
import types
from collections.abc import Iterable, Mapping
from typing import Any, cast

_MRO, _FLAGS = type.__dict__["__mro__"], type.__dict__["__flags__"]
_NAME, _MODULE = type.__dict__["__qualname__"], type.__dict__["__module__"]
_SPACE, _OF_MODULE = type.__dict__["__dict__"], vars(types.ModuleType)["__dict__"]


def is_one_of(kind: type, kinds: Iterable[type]) -> bool:
    """True for one of these classes itself."""
    return any(kind is one for one in kinds)


def is_class(found: object) -> bool:
    return issubclass(type(found), type)


def mro_of(kind: type) -> tuple[type, ...]:
    found: tuple[type, ...] = _MRO.__get__(kind)
    return found


def flags_of(kind: type) -> int:
    found: int = _FLAGS.__get__(kind)
    return found


def own_name(kind: type) -> str:
    """The name of a class within its module."""
    return str(_NAME.__get__(kind))


def module_of(kind: type) -> str | None:
    """The name of a class's module; None where it is no text."""
    try:
        found = _MODULE.__get__(kind)
    except AttributeError:
        return None
    return found if type(found) is str else None


def class_name(kind: type) -> str:
    """ "module.Class"; the built-in ones, and those whose module is no text, have their own name only."""
    module, name = module_of(kind), own_name(kind)
    return name if module in (None, "builtins") else f"{module}.{name}"


def space_of(found: object) -> Mapping[str, Any]:
    """The names of a class or a module; none of what is neither."""
    if is_class(found):
        return cast(Mapping[str, Any], _SPACE.__get__(found))
    try:
        return cast(Mapping[str, Any], _OF_MODULE.__get__(found) or {})
    except TypeError:
        return {}


def attributes(found: object) -> dict[str, Any]:
    """An instance's own dict; an empty one where it has none."""
    for kind in mro_of(type(found)):
        own = _SPACE.__get__(kind).get("__dict__")
        if type(own) is types.GetSetDescriptorType:
            held = own.__get__(found)
            return held if type(held) is dict else {}
    return {}


def imported(name: str) -> Any:
    """The module, or None where it is not imported, or where something stands in for it, such as a mock."""
    found = sys.modules.get(name)
    return found if issubclass(type(found), types.ModuleType) else None


def file_of_module(name: str) -> str | None:
    """Where an imported module lies; None of what is not imported, and of modules without a file."""
    found = space_of(sys.modules.get(name)).get("__file__")
    return found if type(found) is str else None
