"""What is recorded at every mark: bytes per medium and of the process.  Cheap, and bounded in size."""

import array
import itertools
from time import monotonic  # as it is now: the program may replace time's functions later
from typing import TypeVar

from leakprobe import _core
from leakprobe.model.bounds import MOST_MARKS, OVERHEAD_STEPS, OVERHEAD_STRETCH, THINNING
from leakprobe.model.rows import MediumBytes, MemoryRow, TimelineRow
from leakprobe.model.thresholds import HALF

#: Columns of whole numbers of a mark, beside those of the media.
COLUMNS = ("step", "epoch", "rss", "python_heap", "native_accounted", "probe_overhead")
#: Stands for "not known" in a column.
UNKNOWN = -1

Number = TypeVar("Number", int, float)


class Timeline:
    """One row per mark, kept as columns of numbers: a mark adds no objects to the heap that is watched.

    ``rows()`` and ``memory()`` give them as dicts, as the report's schema has them.
    """

    def __init__(self) -> None:
        self._began = monotonic()
        self._columns = {name: array.array("q") for name in COLUMNS}
        self._times = array.array("d")
        #: name -> (live bytes, peak bytes), UNKNOWN before its first
        self._media: dict[str, tuple[array.array[int], array.array[int]]] = {}
        self._more: dict[int, MemoryRow] = {}  # step -> what its look added
        self._next_overhead = 0
        self._whole = 0  # rows that are whole: a signal may cut a mark short between two columns

    def __len__(self) -> int:
        return self._whole

    def last_step(self) -> int | None:
        return self._columns["step"][self._whole - 1] if self._whole else None

    def columns(self) -> "list[array.array[int] | array.array[float]]":
        """The arrays that hold it."""
        return [
            *self._columns.values(),
            self._times,
            *(column for pair in self._media.values() for column in pair),
        ]

    def _drop_cut_row(self) -> None:
        """What a mark that was cut short left in some columns."""
        self._whole = min(self._whole, len(self._times), *map(len, self._columns.values()))
        for column in self.columns():
            del column[self._whole :]

    def add(self, step: int, epoch: int, python_bytes: int) -> None:
        self._drop_cut_row()
        totals = _core.ledger_totals()
        _core.begin_peaks()
        native = 0
        for name, total in totals.items():
            live, peak = total["live_bytes"], total["recent_peak_bytes"]
            if live or peak:
                self._add_medium(name, live, peak)
                native += live
        self._add_medium("python", python_bytes, python_bytes)
        for lives, peaks in self._media.values():
            if len(lives) <= len(self):
                lives.append(UNKNOWN)
                peaks.append(UNKNOWN)
        overheads = self._columns["probe_overhead"]
        self._next_overhead = self._next_overhead if overheads else 0
        if step >= self._next_overhead:  # asks the kernel about each page of the shadow
            self._next_overhead = step + max(OVERHEAD_STEPS, int(OVERHEAD_STRETCH * step))
            overhead = _core.overhead_bytes()
        else:
            overhead = overheads[-1]
        rss = _core.rss_bytes()
        self._times.append(monotonic() - self._began)
        values = (step, epoch, UNKNOWN if rss is None else rss, python_bytes, native, overhead)
        for column, value in zip(self._columns.values(), values):
            column.append(value)
        self._whole += 1
        if len(self) > MOST_MARKS:
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
        columns = {name: thin(column) for name, column in self._columns.items()}
        times = thin(self._times)
        media = {name: (thin(live), thin_peaks(peak)) for name, (live, peak) in self._media.items()}
        kept = set(columns["step"])
        more = {step: row for step, row in self._more.items() if step in kept}
        whole = len(times)
        self._columns, self._times, self._media, self._more, self._whole = columns, times, media, more, whole

    def add_to_last(self, row: MemoryRow) -> None:
        """Add what a look measured to the last row of the memory of the process, if there is one."""
        step = self.last_step() if row else None
        if step is not None:
            self._more.setdefault(step, {}).update(row)

    def last_media(self) -> dict[str, MediumBytes]:
        """The media of the last mark; {} before the first."""
        return self.row(-1)["media"] if len(self) else {}

    def rows(self) -> list[TimelineRow]:
        """Rows of Report.timeline: {"step", "epoch", "time", "media": {name: {"live_bytes",
        "peak_bytes"}}}.
        """
        return [self.row(i) for i in range(len(self))]

    def memory(self) -> list[MemoryRow]:
        """Rows of Report.memory."""
        return [self.memory_row(i) for i in range(len(self))]

    def row(self, i: int) -> TimelineRow:
        i += self._whole if i < 0 else 0
        media: dict[str, MediumBytes] = {
            name: {"live_bytes": live[i], "peak_bytes": peak[i]}
            for name, (live, peak) in self._media.items()
            if i < len(live)
            and live[i] != UNKNOWN  # a medium that came with a mark that was cut short has no column yet
        }
        return {
            "step": self._columns["step"][i],
            "epoch": self._columns["epoch"][i],
            "time": self._times[i],
            "media": media,
        }

    def memory_row(self, i: int) -> MemoryRow:
        i += self._whole if i < 0 else 0
        row: MemoryRow = {
            name: self._columns[name][i]
            for name in ("step", "rss", "python_heap", "native_accounted", "probe_overhead")
        }
        if row["rss"] == UNKNOWN:
            row["rss"] = None
        return {**row, **self._more.get(row["step"], {})}


def thin(rows: "array.array[Number]") -> "array.array[Number]":
    """The rows without every second one of the older half."""
    half = int(HALF * len(rows))
    return rows[:half:THINNING] + rows[half:]


def thin_peaks(rows: "array.array[int]") -> "array.array[int]":
    """The same of the most since the row before: a row takes over those that are left out before it."""
    half = int(HALF * len(rows))
    kept = [*range(0, half, THINNING), *range(half, len(rows))]
    return array.array("q", (max(rows[a + 1 : b + 1]) for a, b in itertools.pairwise([-1, *kept])))
