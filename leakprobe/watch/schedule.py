"""When something costly is due: at growing distances, and within a share of the time that goes by."""

import contextlib
import dataclasses
import enum
import math
import time
from collections.abc import Iterator

from leakprobe.model.bounds import (
    DEAR_S,
    FOLLOW_S,
    FOLLOWED_MARKS,
    LOOK_PRICE,
    LOOK_STEPS,
    REACH,
    WALK_PRICE,
    WORKER_WALK_PRICE,
)
from leakprobe.model.budget import Budget


class Moment(enum.Enum):
    """When a mark is visited, which says how much is done there."""

    IN_LOOP = "in the loop"  # what is due, in slices
    EPOCH_END = "epoch's end"  # a whole look, and a walk where something grows
    END = "end"  # the same, and a walk where anything rose


class Depth(enum.Enum):
    """How far a walk of the heap goes."""

    NONE = "none"
    CENSUS = "census"  # what is alive, by line and type
    HOLDERS = "holders"  # and who keeps what grows


@dataclasses.dataclass(frozen=True, slots=True)
class Price:
    """What one kind of work may cost: seconds at any time, and a share of the time that goes by; and the
    distance of one to the next, as a share of the measured steps.  ``dear_s``: seconds that are only spent
    again for what is known already once REACH times the steps have gone by; ``steps``: to the next at least.
    """

    allowance_s: float
    share: float
    stretch: float
    dear_s: float = DEAR_S
    steps: int = 1


#: Readings of live counts and of the native blocks, with the scan that follows where some rise.
LOOK = Price(*LOOK_PRICE, steps=LOOK_STEPS)
#: Walks of the heap, for who keeps what grows.
WALK = Price(*WALK_PRICE)
#: The same in a DataLoader worker, whose every walk copies pages of its parent; none is put off for what is
#: known, since a worker may be killed, and its last walk is what the parent reports.
WALK_OF_WORKER = Price(*WORKER_WALK_PRICE, dear_s=math.inf)
#: Looks at the ends of epochs, each where that is cheap; the walk that may follow is in it.
EPOCH_END = dataclasses.replace(LOOK, stretch=0.0, steps=1)


class Meter:
    """Says when one kind of work is due, and keeps count of what it took."""

    def __init__(self, price: Price):
        self._price = price
        self._budget = Budget(price.allowance_s, price.share)
        self._next = self._next_again = 0
        self._last_cost_s = 0.0
        self._last = (0, 0)  # the step that the last one was taken at, and the measured steps then
        self.put_off_since: int | None = None  # the first step at which one was due, and too dear

    @property
    def spent_s(self) -> float:
        """Seconds that all of them took."""
        return self._budget.spent_s

    def is_due(self, step: int) -> bool:
        """True if the distance has gone by, and the price of the last one is within the budget."""
        return step >= self._next and self.is_affordable(step)

    def is_affordable(self, step: int) -> bool:
        """True if another one at the price of the last stays within the budget."""
        if self.has_room():
            self.put_off_since = None
            return True
        self.put_off_since = step if self.put_off_since is None else self.put_off_since
        return False

    def has_room(self) -> bool:
        """The same, of one that nothing asks for: it is not put off where there is none."""
        return self._budget.has(self._last_cost_s)

    def can_spare(self, step: int) -> bool:
        """True if, after one that is not due yet, the one that will be due can be afforded too."""
        return self.is_affordable(step) and self._budget.has(self._last_cost_s + self._last_cost_s)

    @contextlib.contextmanager
    def taken(self, step: int, measured: int) -> Iterator[None]:
        """Charge the block."""
        self.put_off_since = None
        try:
            with self._budget.charged():
                yield
        finally:
            self._last, self._last_cost_s = (step, measured), 0.0
            self._note_cost()

    @contextlib.contextmanager
    def going_on(self, other: "Meter") -> Iterator[None]:
        """Charge what belongs to the last one still, without what ``other`` is charged for in it."""
        try:
            with self._budget.charged(other._budget):
                yield
        finally:
            self._note_cost()

    def _note_cost(self) -> None:
        step, measured = self._last
        self._last_cost_s += self._budget.last_s
        self._next = step + max(self._price.steps, int(self._distance() * measured))
        again = REACH ** min(1.0, self._last_cost_s / self._price.dear_s) - 1
        self._next_again = step + int(again * measured)

    def is_due_again(self, step: int) -> bool:
        """True if so many steps have gone by that the same, once more, is worth what it takes: twenty times
        as many for what takes the price's ``dear_s`` as for what takes nothing.
        """
        return step >= self._next_again

    def _distance(self) -> float:
        """The share of the measured steps until the next: so wide that the allowance lasts for REACH times
        those of the first.
        """
        part = min(1.0, self._last_cost_s / self._price.allowance_s)
        return max(self._price.stretch, float(REACH**part) - 1)

    def put_off(self) -> str | None:
        """A sentence about what was due and not done at the last mark, or None."""
        if self.put_off_since is None:
            return None
        allowed = f"{self._price.allowance_s:g} s and {self._price.share:.0%} of the run's time"
        took = f"one takes {self._last_cost_s:.2g} s of processor time, {self.spent_s:.2g} s were spent"
        return f"put off since step {self.put_off_since}: {took}, and {allowed} are allowed"


class Following:
    """Says which marks are read: not most of those of a long loop of short steps, which would cost more
    there than they tell.
    """

    def __init__(self, warmup: int):
        self._warmup = warmup
        self._next, self._last_s = 0, 0.0

    def is_due(self, step: int, always: bool) -> bool:
        """True if the mark of ``step`` is to be read; the next one is counted from it then."""
        now = time.monotonic()
        if step < self._next and now < self._last_s + FOLLOW_S and not always:
            return False
        self._next, self._last_s = step + max(1, (step - self._warmup) // FOLLOWED_MARKS), now
        return True
