"""What is recorded at every mark: bytes per medium and of the process.  Cheap, and bounded in size."""

import os
import time

from leakprobe import _core

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
#: More marks than this are thinned: every second one of the older half goes.
MAX_MARKS = 4096


class Timeline:
    """One row per mark, in two lists of dicts as the report's schema has them."""

    def __init__(self):
        self.began = time.time()
        self.rows: list[dict] = []
        self.memory: list[dict] = []

    def add(self, step: int, epoch: int, python_bytes: int) -> None:
        totals = _core.ledger_totals()
        media = {
            name: {"live_bytes": t["live_bytes"], "peak_bytes": t["peak_bytes"]}
            for name, t in totals.items()
            if t["live_bytes"] or t["peak_bytes"]
        }
        native = sum(m["live_bytes"] for m in media.values())
        media["python"] = {"live_bytes": python_bytes, "peak_bytes": python_bytes}
        self.rows.append({"step": step, "epoch": epoch, "time": time.time() - self.began, "media": media})
        self.memory.append(
            {
                "step": step,
                "rss": rss_bytes(),
                "python_heap": python_bytes,
                "native_accounted": native,
                "probe_overhead": _core.overhead_bytes() if len(self.memory) % 16 == 0 else self.memory[-1]["probe_overhead"],
            }
        )
        if len(self.rows) > MAX_MARKS:
            self.rows = thin(self.rows)
            self.memory = thin(self.memory)

    def add_to_last(self, row: dict) -> None:
        """Add what a look measured to the last row of the memory of the process."""
        self.memory[-1].update(row)


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
