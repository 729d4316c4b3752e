"""Which loaders are one and the same to the judge: a program may make its loader anew for each epoch."""

import contextlib
import itertools
import weakref
from typing import Any, NamedTuple

from leakprobe.model.bounds import KEPT_SETS


class Past(NamedTuple):
    """A loader that had workers.  What can't be referred to weakly counts as gone."""

    loader: weakref.ref[Any] | None
    dataset: weakref.ref[Any] | None
    dataset_type: str
    key: int

    def is_followed_by(self, dataset: Any) -> bool:
        """True if a new loader of ``dataset`` takes its place: it is gone, and its dataset is the same, or is
        gone too and was of the same type.
        """
        if alive(self.loader) is not None or self.dataset_type != name_of_type(dataset):
            return False
        before = alive(self.dataset)
        return before is None or before is dataset


class LoaderKeys:
    """A number for each loader, which one that takes the place of another has from it."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._past: list[Past] = []

    def of(self, loader: Any) -> int:
        """Addresses are used again, so a loader is known by a weak reference."""
        dataset = getattr(loader, "dataset", None)
        for one in self._past:
            if alive(one.loader) is loader:
                return one.key
        before = next((one for one in self._past if one.is_followed_by(dataset)), None)
        key = before.key if before is not None else next(self._numbers)
        kept = [one for one in self._past if one is not before]
        present = Past(weak(loader), weak(dataset), name_of_type(dataset), key)
        self._past = [*kept[1 - KEPT_SETS :], present]
        return key


def weak(value: Any) -> "weakref.ref[Any] | None":
    with contextlib.suppress(TypeError):
        return weakref.ref(value)
    return None


def alive(reference: "weakref.ref[Any] | None") -> Any:
    return reference() if reference is not None else None


def name_of_type(value: Any) -> str:
    """A type is not kept: a notebook defines its dataset anew."""
    return f"{type(value).__module__}.{type(value).__qualname__}"
