"""Private memory of the process, read mark by mark."""

import array
import time

from leakprobe import _core
from leakprobe.evidence.series import Series
from leakprobe.evidence.trends import slope
from leakprobe.judge.rises import Rise, rise_since
from leakprobe.model.media import PRIVATE
from leakprobe.model.thresholds import HALF
from leakprobe.watch.resources import SHARE, TABLES_ALLOWANCE_S
from leakprobe.watch.thresholds import LEAST_UNEXPLAINED, READINGS


class ProcessAccount:
    """What is resident and what is mapped of it, at marks ever further apart."""

    def __init__(self, warmup: int, media: frozenset[str]):
        self._warmup, self._next = warmup, warmup
        self._is_whole = media >= PRIVATE
        self._began, self._spent_s = time.monotonic(), 0.0
        self.resident, self.mapped = Series(), Series()

    def mark(self, step: int) -> None:
        """Read, if that is due and affordable: some microseconds, more where malloc's lists are long."""
        if step >= self._next and self._is_affordable():
            self._next = step + max(1, (step - self._warmup) // READINGS)
            self.read(step)

    def _is_affordable(self) -> bool:
        return self._spent_s <= TABLES_ALLOWANCE_S + SHARE * (time.monotonic() - self._began)

    def read(self, step: int) -> None:
        began = time.thread_time()
        resident, mapped = _core.private_memory()
        self.resident.add(step, resident)
        self.mapped.add(step, mapped)
        self._spent_s += time.thread_time() - began

    def columns(self) -> "list[array.array[int]]":
        """The arrays that the readings are kept in."""
        return [*self.resident.columns(), *self.mapped.columns()]

    def rise(self, limit: float) -> Rise | None:
        """The steady rise of what is mapped, if most of it was touched: a buffer that is filled long after it
        was made grows no further than it was mapped.  None where a medium that might explain it is not
        watched.
        """
        least = max(limit, LEAST_UNEXPLAINED)
        rise = rise_since(self.mapped, self._warmup, least) if self._is_whole else None
        if rise is None:
            return None
        return rise if slope(self.resident.since(rise.first[0])) >= HALF * rise.slope else None
