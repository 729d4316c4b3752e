"""What is recorded at every mark: bytes per medium and of the process.  Cheap, and bounded in size."""

import array
import os
import time

from leakprobe import _core

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
#: More marks than this are thinned: every second one of the older half goes.
MAX_MARKS = 4096
#: Columns of a mark beside those of the media.
COLUMNS = {
    "step": "q",
    "epoch": "q",
    "time": "d",
    "rss": "q",
    "python_heap": "q",
    "native_accounted": "q",
    "probe_overhead": "q",
}
#: Stands for "not known" in a column.
UNKNOWN = -1


class Timeline:
    """One row per mark, kept as columns of numbers: a mark adds no objects to the heap that is watched.

    ``rows()`` and ``memory()`` give them as dicts, as the report's schema has them.
    """

    def __init__(self):
        self.began = time.time()
        self._columns = {name: array.array(code) for name, code in COLUMNS.items()}
        self._media: dict[str, tuple] = {}  # name -> (live bytes, peak bytes), UNKNOWN before its first
        self._more: dict[int, dict] = {}  # step -> what its look added
        self._next_overhead = 0

    def __len__(self) -> int:
        return len(self._columns["step"])

    def last_step(self) -> int | None:
        return self._columns["step"][-1] if len(self) else None

    def columns(self) -> list:
        """The arrays that hold it."""
        return [*self._columns.values(), *(column for pair in self._media.values() for column in pair)]

    def add(self, step: int, epoch: int, python_bytes: int) -> None:
        totals = _core.ledger_totals()
        native = 0
        for name, total in totals.items():
            live, peak = total["live_bytes"], total["peak_bytes"]
            if live or peak:
                self._add_medium(name, live, peak)
                native += live
        self._add_medium("python", python_bytes, python_bytes)
        for live, peak in self._media.values():
            if len(live) <= len(self):
                live.append(UNKNOWN)
                peak.append(UNKNOWN)
        overheads = self._columns["probe_overhead"]
        if step >= self._next_overhead:  # asks the kernel about each page of the shadow
            self._next_overhead = step + max(16, step // 4)
            overhead = _core.overhead_bytes()
        else:
            overhead = overheads[-1]
        rss = rss_bytes()
        values = (
            step,
            epoch,
            time.time() - self.began,
            UNKNOWN if rss is None else rss,
            python_bytes,
            native,
            overhead,
        )
        for column, value in zip(self._columns.values(), values):
            column.append(value)
        if len(self) > MAX_MARKS:
            self._thin()

    def _add_medium(self, name: str, live: int, peak: int) -> None:
        columns = self._media.get(name)
        if columns is None:
            columns = self._media[name] = (array.array("q"), array.array("q"))
        for column, value in zip(columns, (live, peak)):
            if len(column) < len(self):
                column.extend([UNKNOWN] * (len(self) - len(column)))
            column.append(value)

    def _thin(self) -> None:
        for name, column in self._columns.items():
            self._columns[name] = thin(column)
        self._media = {name: tuple(map(thin, columns)) for name, columns in self._media.items()}
        kept = set(self._columns["step"])
        self._more = {step: row for step, row in self._more.items() if step in kept}

    def add_to_last(self, row: dict) -> None:
        """Add what a look measured to the last row of the memory of the process."""
        self._more.setdefault(self._columns["step"][-1], {}).update(row)

    def last_media(self) -> dict:
        """The media of the last mark; {} before the first."""
        return self.row(-1)["media"] if len(self) else {}

    def rows(self) -> list[dict]:
        """Rows of Report.timeline: {"step", "epoch", "time", "media": {name: {"live_bytes", "peak_bytes"}}}."""
        return [self.row(i) for i in range(len(self))]

    def memory(self) -> list[dict]:
        """Rows of Report.memory."""
        return [self.memory_row(i) for i in range(len(self))]

    def row(self, i: int) -> dict:
        media = {
            name: {"live_bytes": live[i], "peak_bytes": peak[i]}
            for name, (live, peak) in self._media.items()
            if live[i] != UNKNOWN
        }
        return {**{name: self._columns[name][i] for name in ("step", "epoch", "time")}, "media": media}

    def memory_row(self, i: int) -> dict:
        row = {
            name: self._columns[name][i]
            for name in ("step", "rss", "python_heap", "native_accounted", "probe_overhead")
        }
        if row["rss"] == UNKNOWN:
            row["rss"] = None
        return {**row, **self._more.get(row["step"], {})}


def thin(rows):
    """The rows without every second one of the older half."""
    half = len(rows) // 2
    return rows[:half:2] + rows[half:]


def rss_bytes() -> int | None:
    """Resident bytes of this process, or None where /proc can't be read."""
    try:
        descriptor = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return int(os.read(descriptor, 128).split()[1]) * PAGE_BYTES
    finally:
        os.close(descriptor)
