"""Other functions in place of those of torch's classes, from the time that the program has imported torch
until they are taken back.

torch is never imported here.
"""

import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import threading
import types
from collections.abc import Callable, Sequence
from typing import Any

from leakprobe.model import inert

_ABSENT: Any = object()


class Patches:
    """What one watch has replaced.  A subclass gives ``_hook()``, which is called once what it needs is
    there, and calls ``replace()``.
    """

    #: What ``_hook()`` needs.
    modules: tuple[str, ...] = ("torch.utils.data",)
    #: Once this is imported they are there.
    awaited = "torch"

    def __init__(self) -> None:
        self._finder: AfterImport | None = None
        self._replaced: list[
            tuple[Any, str, Any, Any]
        ] = []  # (owner, name, original or _ABSENT, replacement)

    def install(self) -> None:
        """Hook at once if what is needed is imported, else when the program imports it.

        ``_hook()`` imports nothing then, and takes its modules from sys.modules: the thread that waits for
        this may be importing them.
        """
        if all(inert.imported(name) is not None for name in self.modules):
            self._hook()
        else:
            self._finder = AfterImport(self.awaited, self._hook)
            sys.meta_path.insert(0, self._finder)

    def remove(self) -> None:
        """Take everything back; what somebody else has replaced since is left."""
        if self._finder is not None:
            self._finder.leave()
        for owner, name, original, replacement in reversed(self._replaced):
            if owner.__dict__.get(name) is not replacement:
                continue
            if original is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, original)
        self._replaced.clear()

    def replace(self, owner: Any, name: str, replacement: Any) -> None:
        """Set an attribute of a class until ``remove()``; a function gets the names of the one that it stands
        for.
        """
        original = owner.__dict__.get(name, _ABSENT)
        if original is not _ABSENT and hasattr(original, "__qualname__"):
            replacement.__name__, replacement.__qualname__, replacement.__doc__ = (
                name,
                original.__qualname__,
                original.__doc__,
            )
        self._replaced.append(
            (owner, name, original, replacement)
        )  # before it is done: a signal may come in between
        setattr(owner, name, replacement)

    def _hook(self) -> None:
        raise NotImplementedError


def with_subclasses(cls: type) -> list[type]:
    """The class and all that are derived from it by now."""
    found = [cls]
    sub: type
    for sub in cls.__subclasses__():
        found += with_subclasses(sub)
    return found


class AfterImport(importlib.abc.MetaPathFinder):
    """Calls ``then`` once, after the module ``name`` has been imported.

    Who only asks where the module is gets its spec too, so the finder stays until the import.
    """

    def __init__(self, name: str, then: Callable[[], None]):
        self._name, self._then = name, then
        self._asking: set[int] = set()  # threads that look for it with the other finders

    def leave(self) -> None:
        with contextlib.suppress(ValueError):
            sys.meta_path.remove(self)

    def imported(self) -> None:
        if self in sys.meta_path:
            self.leave()
            self._then()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        thread = threading.get_ident()
        if fullname != self._name or self not in sys.meta_path or thread in self._asking:
            return None
        self._asking.add(thread)
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._asking.discard(thread)
        if spec is not None and spec.loader is not None:
            spec.loader = _LoaderThen(spec.loader, self.imported)
        return spec


class _LoaderThen(importlib.abc.Loader):
    """A loader that does what another does, then calls a function."""

    def __init__(self, loader: importlib.abc.Loader, then: Callable[[], None]):
        self._loader, self._then = loader, then

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: types.ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._then()
