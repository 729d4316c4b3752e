"""Shares of the run's time: when something costly is due, and what it took."""

import contextlib
import time
from collections.abc import Iterator

#: The look at the end of a loop may cost so many seconds beyond the budget.
END_ALLOWANCE_S = 1.0
#: While nothing is known to grow, so many looks after the first are free, the last of them at the end of a
#: loop; then they may take this share of the run's time.  Each waits for so many times the measured steps.
CALM_LOOKS, CALM_SHARE, CALM_STRETCH = 2, 0.01, 3.0
#: Costly looks are spread over so many times the measured steps at the first of them, before only the share
#: of time is left.
REACH = 20.0


class Budget:
    """Says when something costly is due: at growing distances, within a share of the time that went by.

    While nothing is known to grow (not ``urgent``) it is due less often, and within a smaller share.
    """

    def __init__(self, allowance_s: float, share: float, stretch: float):
        self._allowance_s, self._share, self._stretch = allowance_s, share, stretch
        self._began = time.monotonic()
        self._last_cost_s = 0.0
        self._last: tuple[int, int] | None = None  # (step, measured) of the last one
        self._calm, self._free = 0, CALM_LOOKS
        self.spent_s = 0.0
        self.put_off_since: int | None = None  # the first step at which one was due, and too dear

    def due(self, step: int, *, measured: int, at_once: bool = False, urgent: bool = True) -> bool:
        """True if a look is due at ``step``, the ``measured``-th measured one, or ``at_once`` if there is
        budget.
        """
        if not at_once and step < self._next(self._distance() if urgent else CALM_STRETCH):
            return False
        if not (
            self.affordable(END_ALLOWANCE_S if at_once else 0.0)
            if urgent
            else self._is_calmly_affordable(at_once)
        ):
            if urgent:
                self.put_off_since = step if self.put_off_since is None else self.put_off_since
            return False
        self.put_off_since = None
        self._last = step, measured
        return True

    def _next(self, stretch: float) -> int:
        """The step from which one is due again that waits for ``stretch`` times the measured steps."""
        if self._last is None:
            return 0
        step, measured = self._last
        return step + max(2, int(measured * stretch))

    def _distance(self) -> float:
        """The share of the measured steps until the next: so wide that the allowance lasts for REACH times
        the steps of the first.
        """
        looks = self._allowance_s / self._last_cost_s if self._last_cost_s else 0.0
        stretch = max(self._stretch, min(1.0, REACH ** (1 / looks) - 1)) if looks > 1 else self._stretch
        return stretch * (1 + 0.5 * self._calm)

    def affordable(self, extra_s: float = 0.0) -> bool:
        """True if another look at the price of the last one stays within the budget."""
        allowed = self._allowance_s + extra_s + self._share * (time.monotonic() - self._began)
        return self.spent_s + self._last_cost_s <= allowed

    def is_within(self, share: float, more_s: float = 0.0) -> bool:
        """True if what was spent, and so many seconds more, is no more than this share of the time that went
        by.
        """
        return self.spent_s + more_s <= share * (time.monotonic() - self._began)

    def _is_calmly_affordable(self, at_once: bool) -> bool:
        """The last free look is for the end of a loop."""
        if self.is_within(CALM_SHARE, self._last_cost_s):
            return True
        if self._free <= (0 if at_once else 1):
            return False
        self._free -= 1
        return True

    def is_near(self, step: int, stretch: float = 0.0) -> bool:
        """True if one would be due if something grew, and has waited for ``stretch`` times the measured
        steps.
        """
        return step >= self._next(max(self._distance(), stretch))

    def put_off(self) -> str | None:
        """A sentence about what was due and not done at the last mark, or None."""
        if self.put_off_since is None:
            return None
        return (
            f"put off since step {self.put_off_since}: one takes {self._last_cost_s:.2g} s of processor time, {self.spent_s:.2g} s "
            f"were spent, and {self._allowance_s:g} s and {100 * self._share:g} % of the run's time are allowed"
        )

    def calm(self, is_calm: bool) -> None:
        """Say whether the look just taken found nothing: looks that find nothing follow each other more
        slowly.
        """
        self._calm = min(4, self._calm + 1) if is_calm else 0

    def spend(self, seconds: float) -> None:
        self.spent_s += seconds
        self._last_cost_s = seconds


@contextlib.contextmanager
def timed(budget: Budget) -> Iterator[None]:
    """Charge the processor time of the block, which a busy machine does not stretch."""
    began = time.thread_time()
    try:
        yield
    finally:
        budget.spend(time.thread_time() - began)
