"""What is recorded at every mark: bytes per medium and of the process.  Cheap, and bounded in size."""

import array
import time

from leakprobe import _core

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
        self._whole = 0  # rows that are whole: a signal may cut a mark short between two columns

    def __len__(self) -> int:
        return self._whole

    def last_step(self) -> int | None:
        return self._columns["step"][self._whole - 1] if self._whole else None

    def columns(self) -> list:
        """The arrays that hold it."""
        return [*self._columns.values(), *(column for pair in self._media.values() for column in pair)]

    def _drop_cut_row(self) -> None:
        """What a mark that was cut short left in some columns."""
        self._whole = min(self._whole, *map(len, self._columns.values()))
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
        for live, peak in self._media.values():
            if len(live) <= len(self):
                live.append(UNKNOWN)
                peak.append(UNKNOWN)
        overheads = self._columns["probe_overhead"]
        self._next_overhead = self._next_overhead if overheads else 0
        if step >= self._next_overhead:  # asks the kernel about each page of the shadow
            self._next_overhead = step + max(16, step // 4)
            overhead = _core.overhead_bytes()
        else:
            overhead = overheads[-1]
        rss = _core.rss_bytes()
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
        self._whole += 1
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
        columns = {name: thin(column) for name, column in self._columns.items()}
        media = {name: tuple(map(thin, pair)) for name, pair in self._media.items()}
        kept = set(columns["step"])
        more = {step: row for step, row in self._more.items() if step in kept}
        self._columns, self._media, self._more, self._whole = columns, media, more, len(columns["step"])

    def add_to_last(self, row: dict) -> None:
        """Add what a look measured to the last row of the memory of the process."""
        if row:
            self._more.setdefault(self.last_step(), {}).update(row)

    def last_media(self) -> dict:
        """The media of the last mark; {} before the first."""
        return self.row(-1)["media"] if len(self) else {}

    def rows(self) -> list[dict]:
        """Rows of Report.timeline: {"step", "epoch", "time", "media": {name: {"live_bytes",
        "peak_bytes"}}}.
        """
        return [self.row(i) for i in range(len(self))]

    def memory(self) -> list[dict]:
        """Rows of Report.memory."""
        return [self.memory_row(i) for i in range(len(self))]

    def row(self, i: int) -> dict:
        i += self._whole if i < 0 else 0
        media = {
            name: {"live_bytes": live[i], "peak_bytes": peak[i]}
            for name, (live, peak) in self._media.items()
            if i < len(live)
            and live[i] != UNKNOWN  # a medium that came with a mark that was cut short has no column yet
        }
        return {**{name: self._columns[name][i] for name in ("step", "epoch", "time")}, "media": media}

    def memory_row(self, i: int) -> dict:
        i += self._whole if i < 0 else 0
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
