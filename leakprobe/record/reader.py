"""Reads recordings, also while they are written, from a read-only folder, or after the process was killed.

A recording may come from anywhere: its tables are read as data, and what does not fit is an error.
"""

import dataclasses
import json
import os
import shutil
import sqlite3
import tempfile
import urllib.parse

from leakprobe.errors import LeakprobeError
from leakprobe.model.finding import Note
from leakprobe.model.report import SCHEMA_VERSION as REPORT_VERSION
from leakprobe.model.report import Report, verdict_of
from leakprobe.record import place
from leakprobe.record.schema import APPLICATION_ID, MAGIC, MEMORY_COLUMNS, SCHEMA_VERSION, TABLES
from leakprobe.report.parse import parse_report

#: Seconds that a reader waits for a commit to end.
WAIT_S = 5.0


@dataclasses.dataclass(frozen=True)
class Recording:
    """What a recording holds.  ``settings``: the options of the watch.

    state: "ended"; "running", if a process on this machine still writes it; "cut off", if it ended without closing it.
    """

    path: str
    settings: dict
    state: str
    report: Report

    @property
    def label(self) -> str:
        """ "rank 3", "worker 0", "rank 3 worker 0", or the file's name: what tells it from other recordings."""
        run = self.report.run
        parts = [
            f"{name} {run[name]}" for name in ("rank", "loader", "worker") if isinstance(run.get(name), int)
        ]
        return " ".join(parts) or os.path.basename(self.path)


def load(path) -> Recording:
    """Read a recording, or a report that was written as JSON.

    Errors: LeakprobeError "unreadable_file" for what is missing, empty, damaged or no recording; "wrong_schema" for one
    of a newer leakprobe.
    """
    path = os.fspath(path)
    head = read_head(path)
    check_not_empty(path, head)
    if head[:16] != MAGIC:
        return load_json(path, head)
    check_header(path, head)
    try:
        return read_database(path, mode="ro")
    except sqlite3.OperationalError as error:
        # A journal to roll back in a folder that can't be written, or a writer that never lets go.
        return read_copy(path, error)
    except sqlite3.DatabaseError as error:
        raise damaged(path, error) from error


def read_head(path) -> bytes:
    """The first 100 bytes of a file.  Errors: LeakprobeError "unreadable_file"."""
    try:
        with open(path, "rb") as file:
            return file.read(100)
    except OSError as error:
        raise LeakprobeError(f"{path} can't be read: {error.strerror}", "unreadable_file") from error


def check_not_empty(path, head: bytes) -> None:
    if not head:
        what = "its run has not written anything yet" if place.is_locked(path) else "no run has written to it"
        raise LeakprobeError(f"{path} is empty: {what}", "unreadable_file")


def check_header(path, head: bytes) -> None:
    if len(head) < 100 or int.from_bytes(head[68:72], "big") != APPLICATION_ID:
        raise LeakprobeError(
            f"{path} is a SQLite file of another program, no recording of leakprobe", "unreadable_file"
        )
    version = int.from_bytes(head[60:64], "big")
    if version > SCHEMA_VERSION:
        raise LeakprobeError(
            f"{path} has schema {version}, this leakprobe reads up to {SCHEMA_VERSION}: use the leakprobe that wrote it, or a newer one",
            "wrong_schema",
        )


def load_json(path, head: bytes) -> Recording:
    """A report that to_json() wrote."""
    if not head.lstrip().startswith(b"{"):
        raise LeakprobeError(
            f"{path} is no recording: `leakprobe run -o FILE` or watch(record=FILE) writes one",
            "unreadable_file",
        )
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except (OSError, ValueError, RecursionError) as error:
        raise LeakprobeError(f"{path} can't be read as a report: {error}", "unreadable_file") from error
    try:
        report = parse_report(data)
    except LeakprobeError as error:
        raise LeakprobeError(f"{path}: {error}", error.code) from error
    return Recording(path, {}, "ended", report)


def read_copy(path, first_error) -> Recording:
    """Read a copy of the file and of its journal, taken as they are now."""
    if "no such table" in str(first_error) or "no such column" in str(first_error):
        raise damaged(path, first_error) from first_error
    with tempfile.TemporaryDirectory(prefix="leakprobe-") as folder:
        copy = os.path.join(folder, "copy")
        try:
            shutil.copyfile(path, copy)
            if os.path.exists(f"{path}-journal"):
                shutil.copyfile(f"{path}-journal", f"{copy}-journal")
            return dataclasses.replace(read_database(copy, mode="rw"), path=path, state=state_of(path, None))
        except OSError as error:
            raise LeakprobeError(f"{path} can't be read: {error.strerror}", "unreadable_file") from error
        except sqlite3.Error as error:
            raise damaged(path, error) from error


def read_database(path, mode: str) -> Recording:
    uri = f"file:{urllib.parse.quote(os.path.abspath(path))}?mode={mode}"
    db = sqlite3.connect(uri, uri=True, timeout=WAIT_S, isolation_level=None)
    try:
        db.execute("PRAGMA trusted_schema = OFF")
        db.execute("PRAGMA cell_size_check = ON")
        db.execute("BEGIN")  # one moment for all tables
        tables = {
            name
            for name, kind in db.execute("SELECT name, type FROM sqlite_master WHERE type != 'index'")
            if kind == "table"
        }
        if not TABLES.keys() <= tables:
            raise LeakprobeError(
                f"{path} is damaged: it lacks the tables {', '.join(sorted(TABLES.keys() - tables))}",
                "unreadable_file",
            )
        meta = {key: json.loads(value) for key, value in db.execute("SELECT key, value FROM meta")}
        state = state_of(path, meta.get("ended"))
        return Recording(path, dict(meta["settings"]), state, read_report(db, meta, state))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise damaged(path, error) from error
    except LeakprobeError as error:
        raise LeakprobeError(
            f"{path}: {error}" if str(path) not in str(error) else str(error), error.code
        ) from error
    finally:
        db.close()


def state_of(path, ended) -> str:
    return "ended" if ended else "running" if place.is_locked(path) else "cut off"


def damaged(path, error) -> LeakprobeError:
    return LeakprobeError(f"{path} is damaged and can't be read: {error}", "unreadable_file")


def read_report(db, meta: dict, state: str) -> Report:
    """The report as of the last commit."""
    timeline, memory = read_steps(db)
    findings = [json.loads(data) for (data,) in db.execute("SELECT data FROM findings ORDER BY position")]
    warmup = meta["settings"]["warmup"]
    last = timeline[-1]["step"] if timeline else 0
    complete = meta.get("ended") == "ended"  # else the report is that of the last look, the marks are newer
    steps = meta.get("steps") if complete else None
    steps = steps or {"warmup": min(warmup, last), "measured": max(0, last - warmup)}
    data = {
        "schema_version": REPORT_VERSION,
        "verdict": (complete and meta.get("verdict")) or verdict_of(findings, steps["measured"]),
        "steps": steps,
        "findings": findings,
        "notes": [json.loads(data) for (data,) in db.execute("SELECT data FROM notes ORDER BY position")],
        "lines": rows_as_dicts(db, "SELECT filename, lineno, bytes_per_step, live_bytes FROM lines"),
        "media": {
            name: json.loads(data)
            for name, data in db.execute("SELECT name, data FROM media WHERE data NOT NULL ORDER BY position")
        },
        "timeline": timeline,
        "memory": memory,
        "sites": [site_of(row) for row in rows_as_dicts(db, "SELECT * FROM sites ORDER BY position")],
        "run": meta["run"],
    }
    report = parse_report(data)
    report.source = {}
    for filename, lineno, line in db.execute("SELECT filename, lineno, text FROM source"):
        report.source.setdefault(str(filename), {})[int(lineno)] = str(line)
    if state != "ended":
        what = (
            "the run still goes on"
            if state == "running"
            else "the process ended without closing its recording (killed?)"
        )
        report.notes.append(
            Note(kind="gap", text=f"{what}; its last recorded mark is that of step {last}", medium=None)
        )
    return report


def read_steps(db) -> tuple[list, list]:
    """Rows of Report.timeline and of Report.memory."""
    names = dict(db.execute("SELECT medium, name FROM media"))
    media: dict[int, dict] = {}
    for step, medium, live, peak in db.execute("SELECT step, medium, live_bytes, peak_bytes FROM step_media"):
        media.setdefault(step, {})[names[medium]] = {"live_bytes": live, "peak_bytes": peak}
    timeline, memory = [], []
    for step, epoch, when, *rest, more in db.execute(
        f"SELECT step, epoch, time, {', '.join(MEMORY_COLUMNS)}, more FROM steps ORDER BY step"
    ):
        timeline.append({"step": step, "epoch": epoch, "time": when, "media": media.get(step, {})})
        known = {
            name: value for name, value in zip(MEMORY_COLUMNS, rest) if value is not None or name == "rss"
        }
        memory.append({"step": step, **known, **(json.loads(more) if more else {})})
    return timeline, memory


def site_of(row: dict) -> dict:
    rest = json.loads(row.pop("data"))
    del row["position"]
    return {**row, "survivors": json.loads(row["survivors"]), **rest}


def rows_as_dicts(db, query: str) -> list[dict]:
    cursor = db.execute(query)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row)) for row in cursor]
