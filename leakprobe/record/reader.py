"""Reads recordings, also while they are written, from a read-only folder, or after the process was killed.

A recording may come from anywhere: reading it changes nothing but a private temporary folder, its tables are
read as data, and what does not fit is an error.
"""

import dataclasses
import os
import sqlite3
from typing import Any

from leakprobe.errors import LeakprobeError
from leakprobe.files import BAD_DATA, read_json
from leakprobe.model.facts import REPORT_VERSION
from leakprobe.model.finding import Note
from leakprobe.model.report import Report, verdict_of
from leakprobe.model.rows import MEMORY_COLUMNS
from leakprobe.record.contents import Contents, contents_of
from leakprobe.record.database import opened
from leakprobe.record.layout import check_version
from leakprobe.record.names import path_of
from leakprobe.record.parse import parse_report
from leakprobe.record.schema import MAGIC

#: Seconds that a reader waits for a commit to end.
WAIT_S = 5.0


@dataclasses.dataclass(frozen=True)
class Recording:
    """What a recording holds.  ``settings``: the options of the watch.

    state: "ended"; "running", if a process on this machine still writes it; "cut off", if it ended without
        closing it.
    """

    path: str
    settings: dict[str, Any]
    state: str
    report: Report

    @property
    def label(self) -> str:
        """ "rank 3", "worker 0", "rank 3 worker 0", a test's node id, or the file's name: what distinguishes
        it from other recordings.
        """
        run = self.report.run
        parts = [
            f"{name} {run[name]}" for name in ("rank", "loader", "worker") if isinstance(run.get(name), int)
        ]
        parts = parts or [run["test"]] if isinstance(run.get("test"), str) else parts
        return " ".join(parts) or os.path.basename(self.path)


def load(path: str | os.PathLike[str]) -> Recording:
    """Read a recording, or a report that was written as JSON.

    path: its path, or the id or node id of a test that the pytest plugin has recorded.
    Errors: LeakprobeError "unreadable_file" for what is missing, empty, damaged or not a recording;
    "wrong_schema" for one of a newer leakprobe.
    """
    path = path_of(path)
    contents = contents_of(path, WAIT_S)
    if not contents.data:
        what = "its run has not written anything yet" if contents.is_written else "no run has written to it"
        raise LeakprobeError(f"{path} is empty: {what}", "unreadable_file")
    if contents.data[:16] != MAGIC:
        return load_json(path, contents.data)
    check_version(path, contents.data)
    return load_tables(path, contents)


def load_json(path: str, data: bytes) -> Recording:
    """A report that to_json() wrote."""
    if not data[:4096].lstrip().startswith(b"{"):
        raise LeakprobeError(
            f"{path} is not a recording: `leakprobe run -o FILE` or watch(record=FILE) writes one",
            "unreadable_file",
        )
    try:
        report = parse_report(read_json(data.decode("utf-8")))
    except LeakprobeError as error:
        raise LeakprobeError(f"{path}: {error}", error.code) from error
    except BAD_DATA as error:
        raise LeakprobeError(f"{path} can't be read as a report: {error}", "unreadable_file") from error
    report.source = {}  # no file of this machine is opened because a report names it
    return Recording(path, {}, "ended", report)


def load_tables(path: str, contents: Contents) -> Recording:
    try:
        with opened(contents.data) as db:
            meta = {key: read_json(value) for key, value in db.execute("SELECT key, value FROM meta")}
            state = state_of(meta.get("ended"), contents.is_written)
            return Recording(path, dict(meta["settings"]), state, read_report(db, meta, state))
    except LeakprobeError as error:
        raise LeakprobeError(f"{path}: {error}", error.code) from error
    except OSError as error:
        raise LeakprobeError(
            f"{path} can't be read: no temporary copy of it can be made: {error.strerror}", "unreadable_file"
        ) from error
    except (sqlite3.Error, *BAD_DATA) as error:
        raise damaged(path, error) from error


def state_of(ended: object, is_written: bool) -> str:
    return "ended" if ended else "running" if is_written else "cut off"


def damaged(path: str, error: BaseException) -> LeakprobeError:
    what = error if isinstance(error, (ValueError, sqlite3.Error)) else f"{type(error).__name__}: {error}"
    return LeakprobeError(f"{path} is damaged and can't be read: {what}", "unreadable_file")


def read_report(db: sqlite3.Connection, meta: dict[str, Any], state: str) -> Report:
    """The report as of the last commit."""
    timeline, memory = read_steps(db)
    findings = [read_json(data) for (data,) in db.execute("SELECT data FROM findings ORDER BY position")]
    warmup = meta["settings"]["warmup"]
    last = timeline[-1]["step"] if timeline else 0
    complete = meta.get("ended") == "ended"  # else the report is that of the last look, the marks are newer
    steps = meta.get("steps") if complete else None
    steps = steps or {"warmup": min(warmup, last), "measured": max(0, last - warmup)}
    data = {
        "schema_version": REPORT_VERSION,
        "as_of_step": meta.get("as_of_step", sum(steps.values())),
        "verdict": (complete and meta.get("verdict")) or verdict_of(findings, steps["measured"]),
        "steps": steps,
        "findings": findings,
        "notes": [read_json(data) for (data,) in db.execute("SELECT data FROM notes ORDER BY position")],
        "lines": rows_as_dicts(db, "SELECT filename, lineno, bytes_per_step, live_bytes FROM lines"),
        "media": {
            name: read_json(data)
            for name, data in db.execute("SELECT name, data FROM media WHERE data NOT NULL ORDER BY position")
        },
        "timeline": timeline,
        "memory": memory,
        "sites": [site_of(row) for row in rows_as_dicts(db, "SELECT * FROM sites ORDER BY position")],
        "peaks": meta.get("peaks", []),
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


def read_steps(db: sqlite3.Connection) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows of Report.timeline and of Report.memory."""
    names = dict(db.execute("SELECT medium, name FROM media"))
    media: dict[int, dict[str, Any]] = {}
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
        memory.append({"step": step, **known, **(read_json(more) if more else {})})
    return timeline, memory


def site_of(row: dict[str, Any]) -> dict[str, Any]:
    rest = read_json(row.pop("data"))
    del row["position"]
    return {**row, "survivors": read_json(row["survivors"]), **rest}


def rows_as_dicts(db: sqlite3.Connection, query: str) -> list[dict[str, Any]]:
    cursor = db.execute(query)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row)) for row in cursor]
