"""The iterable that ``Probe.steps()`` gives."""

import operator
from collections.abc import Generator, Iterable, Iterator
from typing import Any, Generic, TypeVar

from leakprobe.checks import shown
from leakprobe.errors import LeakprobeError

Item = TypeVar("Item")

#: Attributes of a Steps itself; all others are those of what it goes through.
OWN = frozenset({"_probe", "_iterable", "_loop"})


class Steps(Generic[Item]):
    """An iterable that marks a step whenever its next item is asked for, except for the first.

    Items by index, attributes and ``len()`` are those of what it goes through.
    Errors: LeakprobeError "bad_argument" for what is not iterable.
    """

    def __init__(self, probe: Any, iterable: Iterable[Item]) -> None:
        if not any(hasattr(type(iterable), name) for name in ("__iter__", "__getitem__")):
            raise LeakprobeError(
                "steps() takes what a loop can go through, such as a DataLoader or range(100), "
                f"not {shown(iterable)}",
                "bad_argument",
            )
        self._probe = probe
        self._iterable: Any = iterable

    def __len__(self) -> int:
        return len(self._iterable)

    def __bool__(self) -> bool:
        try:
            return len(self._iterable) > 0
        except TypeError:  # a generator, a DataLoader of a stream
            return True

    def __length_hint__(self) -> int:
        return operator.length_hint(self._iterable)

    def __getattr__(self, name: str) -> Any:
        # Special methods are those of this class, and a copy asks for them before it has any attribute.
        if name in OWN or (name.startswith("__") and name.endswith("__")):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._iterable, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in OWN:
            super().__setattr__(name, value)
        else:
            setattr(self._iterable, name, value)

    def __getitem__(self, key: Any) -> Any:
        return self._iterable[key]

    def __reversed__(self) -> Iterator[Item]:
        """The items from the last one on, with steps marked between them too."""
        return IteratorSteps(self._probe, reversed(self._iterable))

    def __iter__(self) -> Iterator[Item]:
        return loop_over(self._probe, self._iterable)


class IteratorSteps(Steps[Item]):
    """Of an iterator: ``next()`` goes on where a loop has left it, and a loop where ``next()`` has."""

    def __init__(self, probe: Any, iterable: Iterable[Item]) -> None:
        super().__init__(probe, iterable)
        self._loop: Any = None  # the generator of the loop that has begun

    def __iter__(self) -> Iterator[Item]:
        if self._loop is None or self._loop.gi_frame is None:  # some begin again after their end
            self._loop = loop_over(self._probe, self._iterable)
        loop: Iterator[Item] = self._loop
        return loop

    def __next__(self) -> Item:
        return next(iter(self))


def steps_over(probe: Any, iterable: Iterable[Item]) -> Steps[Item]:
    """The items of ``iterable``; of an iterator, with ``next()``."""
    kind = IteratorSteps if hasattr(type(iterable), "__next__") else Steps
    return kind(probe, iterable)


def loop_over(probe: Any, iterable: Iterable[Item]) -> Generator[Item, None, None]:
    """One loop; it refers to no Steps, which would be a cycle with what a loop that was left has."""
    if probe.is_active():
        probe.epoch()
    iterator, first, marked = iter(iterable), True, 0
    while True:
        if not first:
            probe._marking.iterated(probe._steps > marked)
            probe._step_if_on()
        first, marked = False, probe._steps
        try:
            yield next(iterator)  # no local variable, so that it is not kept while the caller has it
        except StopIteration:
            if probe.is_active():
                probe._look_at_an_epochs_end()
            return
