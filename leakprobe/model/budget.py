"""What one kind of work may take of a run: some seconds at any time, and a share of the time that goes by."""

import contextlib
import time
from collections.abc import Iterator


class Budget:
    """Processor time of the thread that works, which a busy machine does not stretch."""

    def __init__(self, allowance_s: float, share: float):
        self._allowance_s, self._share = allowance_s, share
        self._began = time.monotonic()
        self.spent_s = self.last_s = 0.0  # in all, and by the last block that was charged

    def has(self, price_s: float = 0.0) -> bool:
        """True if so many seconds more stay within what is allowed by now."""
        return self.spent_s + price_s <= self._allowance_s + self._share * (time.monotonic() - self._began)

    @contextlib.contextmanager
    def charged(self, other: "Budget | None" = None) -> Iterator[None]:
        """Charge what the block takes, without what ``other`` is charged for in it."""
        began, others = time.thread_time(), other.spent_s if other is not None else 0.0
        try:
            yield
        finally:
            self.last_s = time.thread_time() - began
            if other is not None:
                self.last_s -= other.spent_s - others
            self.spent_s += self.last_s
