"""Private memory of the processes that the program began with multiprocessing and that nobody watches, such
as those of a pool: what they keep is in no table of this process.
"""

import os
import sys
from collections.abc import Callable, Collection, Iterator

from leakprobe.evidence.series import Series
from leakprobe.judge.rises import Rise, rise_since
from leakprobe.model.bounds import MOST_CHILDREN
from leakprobe.model.facts import PAGE_BYTES
from leakprobe.model.thresholds import LEAST_UNEXPLAINED
from leakprobe.watch.process_account import is_sure


class Children:
    """The series of one watch, by the number of the process."""

    def __init__(self, warmup: int):
        self._warmup = warmup
        self._series: dict[int, tuple[str, Series]] = {}
        #: Gives the numbers of those that are watched; None where that is not known, and nothing is read.
        self.watched: Callable[[], Collection[int] | None] = lambda: None

    def serieses(self) -> list[Series]:
        return [series for _name, series in self._series.values()]

    def read(self, step: int) -> None:
        """Read those that are alive, some microseconds each."""
        watched = self.watched()
        if watched is None:
            return
        for process in alive_processes()[:MOST_CHILDREN]:
            pid, name = number_and_name(process)
            private = private_bytes(pid) if pid not in watched else 0
            if private:
                self._series.setdefault(pid, (name, Series()))[1].add(step, private)

    def rises(self, limit: float) -> Iterator[tuple[str, Rise]]:
        """(who, how fast) of each process whose private memory rises all the time."""
        watched = self.watched() or ()
        for pid, (name, series) in self._series.items():
            rise = rise_since(series, self._warmup, max(limit, LEAST_UNEXPLAINED))
            if rise is not None and pid not in watched and is_sure(rise, malloc_is_known=True):
                yield f"{name} (process {pid})", rise


def alive_processes() -> list[object]:
    """Processes that multiprocessing began and that nobody waited for yet; it is not imported for this."""
    module = sys.modules.get("multiprocessing.process")
    return list(getattr(module, "_children", ()))


def number_and_name(process: object) -> tuple[int, str]:
    """(its number or 0, its name), without a call of what a class of the program may have put in place."""
    own = vars(process)
    pid = getattr(own.get("_popen"), "pid", None)
    return (pid if isinstance(pid, int) else 0), str(own.get("_name", "a child process"))


def private_bytes(pid: int) -> int:
    """Bytes in memory that are of no file; 0 of a process that is gone.  What a fork shares with its parent
    counts from the start.
    """
    if not pid or pid == os.getpid():
        return 0
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            _size, resident, shared, *_ = map(int, file.read().split())
    except (OSError, ValueError):
        return 0
    return max(0, resident - shared) * PAGE_BYTES
