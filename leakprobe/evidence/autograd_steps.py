"""Which step made a node of an autograd graph: torch numbers nodes in the order that it makes them."""

import array
from collections.abc import Callable

from leakprobe.model import inert
from leakprobe.model.bounds import MOST_MARKS, THINNING


class AutogradSteps:
    """torch's next number for an autograd node, as of the marks.

    torch counts thread by thread: nodes that another thread than the marking one makes are told wrongly or
    not at all, and since such a thread has made fewer nodes, they mostly count as born in the warm-up.
    """

    def __init__(self) -> None:
        self._next_number: Callable[[], int] | None = None
        self._numbers, self._steps = (
            array.array("q"),
            array.array("q"),
        )  # objects would grow the heap that is watched
        self._stride = 1

    def mark(self, step: int) -> None:
        """Note the number at the mark that begins ``step``."""
        next_number = self._next_number or self._find_torch()
        if next_number is None or step % self._stride:
            return
        del self._numbers[len(self._steps) :]  # of a mark that a signal cut short
        self._numbers.append(next_number())
        self._steps.append(step)
        if len(self._steps) > MOST_MARKS:  # of a range of steps only the last is known then
            self._numbers, self._steps = self._numbers[::THINNING], self._steps[::THINNING]
            self._stride *= THINNING

    def columns(self) -> "tuple[array.array[int], array.array[int]]":
        """The arrays that hold the marks."""
        return self._numbers, self._steps

    def _find_torch(self) -> Callable[[], int] | None:
        """What gives the number, once torch is imported, by someone else, and has it."""
        autograd = getattr(getattr(inert.imported("torch"), "_C", None), "_autograd", None)
        self._next_number = getattr(autograd, "_get_sequence_nr", None)
        return self._next_number

    @property
    def is_known(self) -> bool:
        """True if torch has told its number at a mark."""
        return bool(self._steps)

    def marks(self) -> list[tuple[int, int]]:
        """[(number, step)] for ``_core.trace``, the step being the last one of those that the mark stands
        for.
        """
        last = [step - 1 for step in self._steps[1:]] + list(self._steps[-1:])
        return list(zip(self._numbers, last))

    def merged(self) -> list[tuple[int, int]]:
        """(first, last) of steps that are known together only."""
        return [(first, after - 1) for first, after in zip(self._steps, self._steps[1:]) if after - 1 > first]
