"""Private memory of the process, read mark by mark."""

import array
from collections.abc import Callable

from leakprobe import _core
from leakprobe.evidence.series import Series
from leakprobe.evidence.trends import slope
from leakprobe.judge.rises import Rise, rise_since
from leakprobe.model.bounds import READING_SHARE, READINGS, TABLES_ALLOWANCE_S
from leakprobe.model.budget import Budget
from leakprobe.model.media import PRIVATE
from leakprobe.model.thresholds import HALF, LEAST_ACCOUNTED, LEAST_UNEXPLAINED, NEARLY_ALL

Reading = Callable[[int], _core.MemoryAccount]


class ProcessAccount:
    """What is resident, what is mapped of it, and what of that is not seen, at marks ever further apart."""

    def __init__(self, warmup: int, media: frozenset[str]):
        self._warmup, self._next = warmup, warmup
        self._is_whole = media >= PRIVATE
        self._budget = Budget(TABLES_ALLOWANCE_S, READING_SHARE)
        self.resident, self.mapped, self.unseen = Series(), Series(), Series()

    def mark(self, step: int, read: Reading) -> None:
        """Read, if that is due and affordable: some microseconds, more where malloc's lists are long."""
        if step >= self._next and self._budget.has():
            self._next = step + max(1, (step - self._warmup) // READINGS)
            self.read(step, read)

    def read(self, step: int, read: Reading) -> None:
        """Read, unless this mark was read.  ``read`` gives the account of a step."""
        if self.resident.is_at(step):
            return
        with self._budget.charged():
            account = read(step)
            self.resident.add(step, account.resident)
            self.mapped.add(step, account.mapped)
            self.unseen.add(step, account.mapped - seen_bytes())

    def columns(self) -> "list[array.array[int]]":
        """The arrays that the readings are kept in."""
        return [*self.resident.columns(), *self.mapped.columns(), *self.unseen.columns()]

    def rise(self, limit: float) -> Rise | None:
        """The steady rise of private memory, in no buffer or heap that is seen.  None where a medium that
        might explain it is not watched, and where it is too short or too little to be sure of.
        """
        if not self._is_whole:
            return None
        least = max(limit, LEAST_UNEXPLAINED)
        mapped = rise_since(self.mapped, self._warmup, least)
        rise = self._rise_in_place(least) if mapped is None else self._if_touched(mapped)
        return rise if rise is not None and is_sure(rise, _core.malloc_info() is not None) else None

    def _if_touched(self, mapped: Rise) -> Rise | None:
        """What is mapped, if most of it was touched: a buffer that is filled long after it was made grows no
        further than it was mapped, and a cache that has filled is no news.
        """
        since = mapped.first[0]
        least_part = min(slope(series.since(since)) for series in (self.resident, self.unseen))
        return mapped if least_part >= HALF * mapped.slope else None

    def _rise_in_place(self, least: float) -> Rise | None:
        """That of what is resident, if it is more than what may be filled long after it was made, blocks of
        malloc's as well as buffers that are seen: in what an allocator of its own mapped beforehand.
        """
        rise = rise_since(self.resident, self._warmup, least)
        malloc = _core.malloc_info() if rise is not None else None
        if rise is None or malloc is None:
            return None
        return rise if rise.total > max(buffer_bytes(), malloc["mapped"]) else None


def is_sure(rise: Rise, malloc_is_known: bool) -> bool:
    """True if it is more than what is taken once: over few steps it must come in nearly all of them, and be
    larger by as much as they are fewer, without what came in a jump.

    What an allocator that is not known keeps of what was freed rises like this too, until it is full.
    """
    steps, enough = rise.last[0] - rise.first[0], LEAST_ACCOUNTED / LEAST_UNEXPLAINED
    if steps >= enough:
        return True
    is_steady = malloc_is_known and rise.rises >= NEARLY_ALL * rise.of
    return is_steady and rise.usual * steps * steps >= LEAST_ACCOUNTED * enough


def buffer_bytes() -> int:
    """Live bytes of the process' private memory in buffers: of pinned ones those that torch registered, as
    the driver's own are shared mappings.
    """
    buffers = sum(total["live_bytes"] for name, total in _core.ledger_totals().items() if name in PRIVATE)
    return buffers + _core.cuda_memory()["malloc_bytes"]


def seen_bytes() -> int:
    """The same, and CPython's heap."""
    return _core.python_bytes() + buffer_bytes()
