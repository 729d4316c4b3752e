"""Writes a recording while the program runs: a short transaction every quarter of a second at most.

A rollback journal on every file system, since it needs no memory shared between machines and leaves one file
that is whole after each commit.  Without fsync: what was committed outlives the process, also SIGKILL, though
not the machine.
"""

import array
import contextlib
import ctypes
import json
import math
import os
import sqlite3
import time
import urllib.parse
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from leakprobe import _core
from leakprobe.checks import checked_path
from leakprobe.errors import LeakprobeError
from leakprobe.files import StrPath, remove_made
from leakprobe.model.finding import Note
from leakprobe.model.report import Report
from leakprobe.model.rows import MEMORY_COLUMNS, MemoryRow, TimelineRow
from leakprobe.model.source import excerpts, places_of
from leakprobe.record import live, locks, place
from leakprobe.record.schema import (
    CREATE_PRAGMAS,
    MAX_STEPS,
    TABLES,
    create_statement,
)

#: Seconds between commits, at least; slow ones follow each other so that they take no more than SHARE of the
#: time.
INTERVAL_S, SHARE = 0.25, 0.01
#: A commit comes early with so many marks, and waits for no more than so many when the file can't be written.
MAX_BATCH, MAX_WAITING = 64, 4096
#: Seconds until the next try after a failed commit, doubled each time up to the last.
RETRY_S, RETRY_MOST_S = 0.5, 30.0


#: What Report.to_dict() gives of one item of a section.
Row = dict[str, Any]
#: A mark that is not in the file yet.
Waiting = tuple[TimelineRow, MemoryRow]


class Insert(NamedTuple):
    """A statement, and the values of each row that it inserts."""

    statement: str
    rows: Sequence[Sequence[object] | Row]


class Recorder:
    """The recording of one watch.  Only the process that made it writes; errors never reach the training
    loop.

    Errors: LeakprobeError "unwritable_file", "recording_in_use" or "foreign_file" from the constructor only.
    """

    def __init__(self, path: StrPath, run: dict[str, Any], settings: dict[str, Any]):
        self.path = os.path.abspath(checked_path("path", path))
        self._lock = _core.Turn()  # a signal handler may fork or stop the watch inside a commit
        self._pid = os.getpid()
        self._waiting: list[Waiting] = []
        self._report: Report | None = None  # the last look's, until it is in the file
        self._media: dict[str, int] = {}
        self._kept = array.array("Q")  # steps in the file, oldest first
        self._stride, self._cursor, self._pass_end = (
            1,
            0,
            0,
        )  # thinning: steps not divisible go, from where to where in _kept
        self._next_commit = 0.0
        self._retry_s = RETRY_S
        self._sourced: set[tuple[str, int]] = set()
        self._written: dict[str, str] = {}
        self.trouble: str | None = None  # why the last commit failed
        self.lost, self._first_lost, self._last_lost = 0, 0, 0
        self._claim: locks.Claim | None = None
        self._db: sqlite3.Connection | None = None
        self._descriptors: list[int] = []  # those of SQLite and of the claim
        facts = {"run": run, "settings": settings, "ended": None}
        rows = [(key, json.dumps(value)) for key, value in facts.items()]
        try:
            self._claim = place.claim(self.path, lambda path: write_beginning(path, rows))
            self._lock = self._claim.lock  # a signal handler may fork or stop the watch inside a commit
            self._open(self._claim)
        except BaseException as error:
            self._undo()
            if not isinstance(error, sqlite3.Error):
                raise
            raise LeakprobeError(
                f"the recording {self.path} can't be written: {error}", "unwritable_file"
            ) from error
        live.add(self)

    def _undo(self) -> None:
        """A beginning that failed: the file is gone again."""
        if self._claim is not None:
            remove_made(self.path, self._claim.descriptor)
            self._release()

    def _open(self, claim: locks.Claim) -> None:
        """Errors: sqlite3.Error."""
        db = self._db = connect(self.path, "rw", patience_s=place.WAIT_S)
        for pragma in (
            "journal_mode = TRUNCATE",
            "synchronous = OFF",
            "cache_size = -512",
            "temp_store = MEMORY",
        ):
            db.execute(f"PRAGMA {pragma}").fetchall()
        self._descriptors = locks.descriptors_of(claim.identity)
        if place.on_network(self.path):
            db.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
        self.wait_for_readers(0.0)

    def wait_for_readers(self, seconds: float) -> None:
        """How long a commit waits where a reader holds the file: not at all in a loop, which comes by
        again.
        """
        self._connection.execute(f"PRAGMA busy_timeout = {round(seconds * 1000)}").fetchall()

    # ---- from the watch ----

    def mark(self, row: TimelineRow, memory: MemoryRow, report: Report | None = None) -> None:
        """Take one step's rows of Report.timeline and Report.memory; with a report, its findings too."""
        if os.getpid() != self._pid or self._db is None:
            return
        self._waiting.append((row, memory))
        self._report = report or self._report
        early = self.trouble is None and (report is not None or len(self._waiting) >= MAX_BATCH)
        if early or time.monotonic() >= self._next_commit:
            with self._lock.held():
                self._commit()
        if len(self._waiting) > MAX_WAITING:
            self._lose(len(self._waiting) // 2)

    def close(self, report: Report | None = None, ended: str = "ended") -> None:
        """Write what is left and close the file.  A forked child leaves its parent's file alone."""
        if os.getpid() != self._pid or self._db is None:
            return
        with self._lock.held():
            self._report = report or self._report
            if self._is_ours():
                self.wait_for_readers(place.WAIT_S)
            self._commit(ended)
            if self._waiting:
                self._lose(len(self._waiting))
            self._release()
        live.remove(self)

    def discard(self) -> None:
        """Close the file and take it away: the watch has not begun."""
        if os.getpid() != self._pid or self._db is None:
            return
        with self._lock.held():
            self._undo()
        live.remove(self)

    def notes(self) -> list[Note]:
        """What could not be recorded, for the report."""
        if not self.lost and self.trouble is None:
            return []
        what = (
            f"{self.lost} marks (steps {self._first_lost} to {self._last_lost}) are missing"
            if self.lost
            else "its end may be missing"
        )
        return [
            Note(
                kind="dropped",
                text=f"{what} in the recording {self.path}: {self.trouble or 'for a while it could not be written'}",
                medium=None,
            )
        ]

    # ---- inside ----

    @property
    def _connection(self) -> sqlite3.Connection:
        """The open file; asked for with each statement, since a signal handler may fork or stop the watch
        between two.
        """
        if self._db is None:
            raise RuntimeError(f"the recording {self.path} was closed in the middle of a mark")
        return self._db

    def _commit(self, ended: str | None = None) -> None:
        began = time.monotonic()
        batch, report = self._waiting, self._report
        if not self._is_ours():
            self.trouble, self._next_commit = "the program closed its file", math.inf
            return
        try:
            if self._connection.in_transaction:  # a signal handler raised in the middle of the last one
                self._connection.execute("ROLLBACK")
            self._connection.execute("BEGIN IMMEDIATE")
            self._insert_steps(batch)
            dropped = self._thin(len(batch))
            sections = self._insert_report(report) if report is not None else {}
            if ended is not None:
                self._connection.execute(
                    "UPDATE meta SET value = ? WHERE key = 'ended'", (json.dumps(ended),)
                )
            self._connection.execute("COMMIT")
        except (sqlite3.Error, ValueError, OverflowError, MemoryError) as error:
            self._failed(error, began)
            return
        self._waiting, self._report = [], None
        self._written.update(sections)
        self._forget(dropped, batch)
        self.trouble, self._retry_s = None, RETRY_S
        took = time.monotonic() - began
        self._next_commit = began + max(INTERVAL_S, took / SHARE)

    def _failed(self, error: Exception, began: float) -> None:
        """Undo, say why, and try again later; a reader that holds the file for a moment is no trouble."""
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:
            pass
        self._media, self._sourced = {}, set()
        if "locked" in str(error):
            self._next_commit = began + 0.02
        else:
            self.trouble = str(error) or "out of memory"
            self._next_commit = began + self._retry_s
            self._retry_s = min(2 * self._retry_s, RETRY_MOST_S)

    def _lose(self, count: int) -> None:
        """Give up the oldest marks that wait."""
        gone, self._waiting = self._waiting[:count], self._waiting[count:]
        self._first_lost = self._first_lost or gone[0][0]["step"]
        self._last_lost = gone[-1][0]["step"]
        self.lost += count

    def _insert_steps(self, batch: Iterable[Waiting]) -> None:
        if not self._media:
            self._media = dict(self._connection.execute("SELECT name, medium FROM media"))
        steps, media = [], []
        for row, memory in batch:
            more = {k: v for k, v in memory.items() if k != "step" and k not in MEMORY_COLUMNS}
            values = [memory.get(column) for column in MEMORY_COLUMNS]
            steps.append(
                (row["step"], row["epoch"], row["time"], *values, json.dumps(more) if more else None)
            )
            media += [
                (row["step"], self._medium(name), m["live_bytes"], m["peak_bytes"])
                for name, m in row["media"].items()
            ]
        self._connection.executemany(INSERT_STEP, steps)
        self._connection.executemany("INSERT OR REPLACE INTO step_media VALUES (?, ?, ?, ?)", media)

    def _medium(self, name: str) -> int:
        number = self._media.get(name)
        if number is None:
            number = self._media[name] = len(self._media) + 1
            self._connection.execute("INSERT OR REPLACE INTO media VALUES (?, ?, NULL, NULL)", (number, name))
        return number

    def _thin(self, added: int) -> list[int]:
        """Delete steps that the stride leaves out, about twice as many as came; their indices in _kept."""
        if len(self._kept) + added <= MAX_STEPS:
            return []
        if self._cursor >= self._pass_end:
            self._cursor, self._pass_end = 1, len(self._kept) * 7 // 8
            while self._kept[-1] > self._stride * MAX_STEPS // 2:
                self._stride *= 2
        end = min(self._pass_end, self._cursor + 4 * added)
        dropped = [i for i in range(self._cursor, end) if self._kept[i] % self._stride]
        self._cursor = end
        steps = [(self._kept[i],) for i in dropped]
        self._connection.executemany(HAND_DOWN_PEAKS, [(self._kept[i], self._kept[i + 1]) for i in dropped])
        self._connection.executemany("DELETE FROM steps WHERE step = ?", steps)
        self._connection.executemany("DELETE FROM step_media WHERE step = ?", steps)
        return dropped

    def _forget(self, dropped: Sequence[int], batch: Iterable[Waiting]) -> None:
        """After a commit: the steps that are in the file now."""
        for index in reversed(dropped):
            del self._kept[index]
        self._cursor -= len(dropped)
        self._pass_end -= len(dropped)
        self._kept.extend(row["step"] for row, _ in batch if not self._kept or row["step"] > self._kept[-1])

    def _insert_report(self, report: Report) -> dict[str, str]:
        """Replace what the last look said; sections that have not changed are left.  Gives their texts."""
        data = sections_of(report)
        texts = {name: json.dumps(value) for name, value in data.items()}
        changed = {name for name, text in texts.items() if self._written.get(name) != text}
        for name in changed & INSERTS.keys():
            self._connection.execute(f"DELETE FROM {name}")
            self._connection.executemany(*INSERTS[name](data[name]))
        if "findings" in changed:
            self._insert_source(places_of(report.findings))
        if "media" in changed:
            for position, (name, row) in enumerate(data["media"].items()):
                values = (position, json.dumps(row), self._medium(name))
                self._connection.execute("UPDATE media SET position = ?, data = ? WHERE medium = ?", values)
        if "meta" in changed:
            self._connection.executemany(
                "INSERT OR REPLACE INTO meta VALUES (?, ?)",
                [(k, json.dumps(v)) for k, v in data["meta"].items()],
            )
        return texts

    def _insert_source(self, places: set[tuple[str, int]]) -> None:
        """Lines of source around what findings name, once for each place."""
        lines = excerpts(places - self._sourced)
        rows = [
            (filename, lineno, text) for filename, texts in lines.items() for lineno, text in texts.items()
        ]
        self._connection.executemany("INSERT OR REPLACE INTO source VALUES (?, ?, ?)", rows)
        self._sourced |= places

    def _is_ours(self) -> bool:
        """False once the program has closed the descriptors under SQLite, which would write to whoever has
        them now.
        """
        claim = self._claim
        return (
            claim is not None
            and claim.is_whole()
            and all(locks.is_of(number, claim.identity) for number in self._descriptors)
        )

    def _release(self) -> None:
        """Close the file and give the lock back; descriptors that the program has closed are not closed
        again.
        """
        if self._db is not None and self._is_ours():
            with contextlib.suppress(sqlite3.Error):
                self._db.execute("PRAGMA journal_mode = DELETE").fetchall()
            self._db.close()
            self._db = None
        self._abandon()

    def _abandon(self) -> None:
        if self._db is not None:
            keep_forever(self._db)
        self._db = None
        if self._claim is not None:
            self._claim.release()

    def hold(self) -> None:
        """No commit until release()."""
        self._lock.acquire()

    def release(self) -> None:
        self._lock.release()

    def after_fork_in_child(self) -> None:
        """The child shares its parent's open file: it is neither used nor closed, since closing would touch
        the journal.
        """
        self._abandon()
        self._waiting = []
        self._lock = _core.Turn()


def connect(path: str, mode: str, patience_s: float = 0.0) -> sqlite3.Connection:
    return sqlite3.connect(
        f"file:{urllib.parse.quote(os.fsencode(path))}?mode={mode}",
        uri=True,
        timeout=patience_s,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=32,
    )


def write_beginning(path: str, meta_rows: Iterable[tuple[str, str]]) -> None:
    """Tables and facts, in a file that nobody else knows yet; it needs no journal."""
    db = connect(path, "rw")
    try:
        for pragma in ("journal_mode = MEMORY", "synchronous = OFF", *CREATE_PRAGMAS):
            db.execute(f"PRAGMA {pragma}").fetchall()
        db.execute("BEGIN")
        for name in TABLES:
            db.execute(create_statement(name))
        db.executemany("INSERT INTO meta VALUES (?, ?)", meta_rows)
        db.execute("COMMIT")
    finally:
        db.close()


def keep_forever(connection: sqlite3.Connection) -> None:
    """A connection that is never closed, since closing it would touch a file or a descriptor of someone
    else.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


def sections_of(report: Report) -> dict[str, Any]:
    """What a look found, without the rows per step."""
    meta = ("as_of_step", "verdict", "steps", "peaks", "run")
    whole = report.parts((*meta, "findings", "notes", "lines", "media", "sites"))
    return {**whole, "meta": {key: whole.pop(key) for key in meta}}


INSERT_STEP = f"INSERT OR REPLACE INTO steps VALUES ({', '.join('?' * (4 + len(MEMORY_COLUMNS)))})"

#: The row that follows a dropped one (1: dropped, 2: following) takes its peaks over: each is the most since
#: the row before.
HAND_DOWN_PEAKS = """
UPDATE step_media SET peak_bytes = max(peak_bytes, (
    SELECT gone.peak_bytes FROM step_media AS gone WHERE gone.step = ?1 AND gone.medium = step_media.medium))
WHERE step = ?2 AND medium IN (SELECT medium FROM step_media WHERE step = ?1)
"""


def finding_rows(findings: Iterable[Row]) -> Insert:
    rows = [
        (
            i,
            f["fingerprint"],
            f["kind"],
            f["medium"],
            f["type"],
            f["bytes_per_step"],
            f["live_bytes"],
            json.dumps(f),
        )
        for i, f in enumerate(findings, 1)
    ]
    return Insert("INSERT INTO findings VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)


def note_rows(notes: Iterable[Row]) -> Insert:
    rows = [(i, n["kind"], n["text"], json.dumps(n)) for i, n in enumerate(notes, 1)]
    return Insert("INSERT INTO notes VALUES (?, ?, ?, ?)", rows)


def line_rows(lines: Sequence[Row]) -> Insert:
    return Insert("INSERT INTO lines VALUES (:filename, :lineno, :bytes_per_step, :live_bytes)", lines)


def site_rows(sites: Iterable[Row]) -> Insert:
    rows = []
    for i, s in enumerate(sites, 1):
        rest = {key: s[key] for key in ("allocation", "allocation_stack")}
        survivors = json.dumps(s["survivors"], separators=(",", ":"))
        rows.append(
            (
                i,
                s["medium"],
                s["type"],
                s["live_bytes"],
                s["live_count"],
                s["bytes_per_step"],
                survivors,
                json.dumps(rest),
            )
        )
    return Insert("INSERT INTO sites VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)


INSERTS: dict[str, Callable[[Sequence[Row]], Insert]] = {
    "findings": finding_rows,
    "notes": note_rows,
    "lines": line_rows,
    "sites": site_rows,
}
