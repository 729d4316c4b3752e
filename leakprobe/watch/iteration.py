"""The iterable that ``Probe.steps()`` gives."""

import operator
from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

from leakprobe.checks import shown
from leakprobe.errors import LeakprobeError

Item = TypeVar("Item")


class Steps(Generic[Item]):
    """An iterable that marks a step whenever its next item is asked for, except for the first.

    Errors: LeakprobeError "bad_argument" for what is none.
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

    def __length_hint__(self) -> int:
        return operator.length_hint(self._iterable)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._iterable, name)

    def __iter__(self) -> Iterator[Item]:
        probe = self._probe
        if probe.is_active():
            probe.epoch()
        iterator, first, marked = iter(self._iterable), True, 0
        while True:
            if not first:
                probe._marking.iterated(probe._steps > marked)
                probe._step_if_on()
            first, marked = False, probe._steps
            try:
                item = next(iterator)
            except StopIteration:
                if probe.is_active():
                    probe._look_at_an_epochs_end()
                return
            yield item
            del item
