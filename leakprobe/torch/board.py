"""The board: a small mapped file in which each worker of a loader posts what it found.

    header          magic, workers, bytes of a slot, and a flag by which the parent ends the watch
    slot per worker state, pid, batches; its collections; then two areas of which one holds the newest report

A worker writes the area that is not being read and then turns the pointer to it, with a checksum, so
that one killed in the middle leaves its last whole report.  The file is readable by its owner only, and
its name is gone as soon as every worker has opened it.
"""

import dataclasses
import json
import os
import struct
import tempfile
import zlib
from typing import Any

from leakprobe import _core
from leakprobe.model.bounds import TRIES, WORKER_REPORT_BYTES
from leakprobe.model.facts import AREAS, CACHE_LINE
from leakprobe.model.worker import WorkerReport

MAGIC = b"LPWORK1\0"
HEADER = struct.Struct("<8sIII")
COUNTS = struct.Struct("<IIQQQ")  # state, pid, batches, pages un-shared by looks, private
RUNNING = struct.Struct("<Q")  # page faults when the collection that runs began, 0 while none runs
COLLECTION = struct.Struct("<QQQQ")  # first faults, faults, batches, copied
POINTER = struct.Struct("<IIII")  # area, length, checksum, version
COUNTS_AT, RUNNING_AT = 0, COUNTS.size
COLLECTION_AT = RUNNING_AT + RUNNING.size
POINTER_AT = COLLECTION_AT + COLLECTION.size
HEADER_BYTES = CACHE_LINE
SLOT_HEADER_BYTES = -(-(POINTER_AT + POINTER.size) // CACHE_LINE) * CACHE_LINE
SLOT_BYTES = SLOT_HEADER_BYTES + AREAS * WORKER_REPORT_BYTES
STOP_AT = HEADER.size

#: States of a slot.
STATES = ("not begun", "watching", "failed", "stopped")
NOT_BEGUN, WATCHING, FAILED, STOPPED = range(len(STATES))


@dataclasses.dataclass
class Posting:
    """What a worker said last.  ``own_bytes``: un-shared by the looks themselves; ``private``: at the last
    look.
    """

    state: int
    pid: int
    batches: int
    own_bytes: int
    private: int


@dataclasses.dataclass(frozen=True)
class Collection:
    """The collection of old objects that copied most in a worker, so far.

    Page faults are a worker's clock here: each copied page is one, and they are counted alike in the worker
    and by who reads its /proc.
    """

    first_faults: int  # of the worker before it had read anything
    faults: int  # as it began
    batches: int  # built or begun by then
    copied: int  # page faults while it ran


class Board:
    """One mapped file; made by the parent with ``create``, opened by a worker with ``open_at``."""

    def __init__(self, descriptor: int, path: str, workers: int):
        self.path, self.workers = path, workers
        own = _core.Descriptor(descriptor)
        try:
            # Any: that it is a buffer can't be said in a stub before Python 3.12.
            shared: Any = _core.SharedMap(own.fileno(), HEADER_BYTES + workers * SLOT_BYTES)
            self._map = memoryview(shared)
        finally:
            own.close()
        self._versions = [0] * workers
        self._reports: list[WorkerReport | None] = [None] * workers
        self._pid = os.getpid()

    @classmethod
    def create(cls, workers: int) -> "Board":
        descriptor, path = tempfile.mkstemp(prefix="leakprobe-", suffix=".workers")
        try:
            os.ftruncate(descriptor, HEADER_BYTES + workers * SLOT_BYTES)
            if hasattr(os, "posix_fallocate"):  # a store to a page of a full disk would be a SIGBUS
                os.posix_fallocate(descriptor, 0, HEADER_BYTES + workers * SLOT_BYTES)
            board = cls(descriptor, path, workers)
        except BaseException:
            os.unlink(path)
            raise
        HEADER.pack_into(board._map, 0, MAGIC, workers, SLOT_BYTES, 0)
        return board

    @classmethod
    def open_at(cls, path: str, workers: int) -> "Board":
        return cls(os.open(path, os.O_RDWR | os.O_CLOEXEC), path, workers)

    # ---- in the worker ----

    def post_counts(self, slot: int, posting: Posting) -> None:
        COUNTS.pack_into(self._map, self._at(slot) + COUNTS_AT, *dataclasses.astuple(posting))

    def begin_collection(self, slot: int, faults: int) -> None:
        RUNNING.pack_into(self._map, self._at(slot) + RUNNING_AT, faults)

    def end_collection(self, slot: int, most: Collection) -> None:
        COLLECTION.pack_into(self._map, self._at(slot) + COLLECTION_AT, *dataclasses.astuple(most))
        RUNNING.pack_into(self._map, self._at(slot) + RUNNING_AT, 0)

    def post_report(self, slot: int, report: WorkerReport) -> None:
        """Post a report, without its last findings where it is too long."""
        data = json.dumps(report.to_plain()).encode()
        while len(data) > WORKER_REPORT_BYTES and report.findings:
            report = report.without_last()
            data = json.dumps(report.to_plain()).encode()
        if len(data) > WORKER_REPORT_BYTES:
            return
        pointer_at = self._at(slot) + POINTER_AT
        area, _length, _checksum, version = POINTER.unpack_from(self._map, pointer_at)
        area = 1 - area
        start = self._at(slot) + SLOT_HEADER_BYTES + area * WORKER_REPORT_BYTES
        self._map[start : start + len(data)] = data
        POINTER.pack_into(self._map, pointer_at, area, len(data), zlib.crc32(data), version + 1)

    def is_stopped(self) -> bool:
        return self._map[STOP_AT] != 0

    # ---- in the parent ----

    def read_counts(self, slot: int) -> Posting:
        return Posting(*COUNTS.unpack_from(self._map, self._at(slot) + COUNTS_AT))

    def read_collection(self, slot: int) -> Collection:
        return Collection(*COLLECTION.unpack_from(self._map, self._at(slot) + COLLECTION_AT))

    def running_since(self, slot: int) -> int | None:
        """Page faults of the worker when the collection that runs in it began; None while none runs."""
        return RUNNING.unpack_from(self._map, self._at(slot) + RUNNING_AT)[0] or None

    def has_news(self, slot: int) -> bool:
        """True if the worker has posted a report since the last read_report()."""
        version: int = POINTER.unpack_from(self._map, self._at(slot) + POINTER_AT)[-1]
        return version != self._versions[slot]

    def read_report(self, slot: int) -> WorkerReport | None:
        """The newest whole report of a worker, or None before its first."""
        for _attempt in range(TRIES):
            area, length, checksum, version = POINTER.unpack_from(self._map, self._at(slot) + POINTER_AT)
            if version == self._versions[slot]:
                break
            start = self._at(slot) + SLOT_HEADER_BYTES + (area & 1) * WORKER_REPORT_BYTES
            data = bytes(self._map[start : start + min(length, WORKER_REPORT_BYTES)])
            if zlib.crc32(data) == checksum:
                self._reports[slot] = WorkerReport.from_plain(json.loads(data))
                self._versions[slot] = version
                break
        return self._reports[slot]

    def stop(self) -> None:
        """Tell the workers to watch no longer."""
        self._map[STOP_AT] = 1

    def hide(self) -> None:
        """Take the name away; the mapping stays good for all who have it."""
        if self.path and os.getpid() == self._pid:
            try:
                os.unlink(self.path)
            except OSError:
                pass
        self.path = ""

    def close(self) -> None:
        self.hide()
        self._map.release()

    def _at(self, slot: int) -> int:
        return HEADER_BYTES + slot * SLOT_BYTES
