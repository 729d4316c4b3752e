"""Recordings: one SQLite file per process, appended to at step marks, read by every command.

    with leakprobe.watch(record="run.leak") as probe: ...
    leakprobe.recording.load("run.leak").report.print()      # after `import leakprobe.recording`

``load()`` reads one, ``load_merged()`` several as one report, ``save()`` writes a report that is finished.
"""

import os
from collections.abc import Iterable

from leakprobe.errors import LeakprobeError
from leakprobe.files import StrPath, open_regular
from leakprobe.judge.reports import merge
from leakprobe.model.finding import Note
from leakprobe.model.report import Report
from leakprobe.record import locks, place
from leakprobe.record.layout import is_recording
from leakprobe.record.names import path_of
from leakprobe.record.reader import Recording, load
from leakprobe.record.writer import Recorder

__all__ = ["Recorder", "Recording", "files_of", "load", "load_all", "load_merged", "merged", "save"]


def load_merged(paths: Iterable[StrPath]) -> Recording:
    """One Recording of all of ``paths``: the report of a single one as it is, else their merge.

    Errors: LeakprobeError as of load().
    """
    return merged(load_all(paths))


def load_all(paths: Iterable[StrPath]) -> list[Recording]:
    """The recordings of ``paths``, those of a folder by name.

    One in a folder that can't be read is left out, and the next one's report has a note on it.
    Errors: LeakprobeError as of load(); for a folder if none in it can be read.
    """
    paths = [path_of(path) for path in paths]
    named = {path for path in paths if not os.path.isdir(path)}
    found, unread = [], []
    for path in files_of(paths):
        try:
            found.append(load(path))
        except LeakprobeError as error:
            if path in named:
                raise
            unread.append(error)
    if unread and not found:
        raise unread[0]
    for reason in unread:
        found[0].report.notes.append(Note(kind="gap", text=f"left out: {reason}", medium=None))
    return found


def merged(recordings: list[Recording]) -> Recording:
    """One Recording of one or more."""
    if len(recordings) == 1:
        return recordings[0]
    states = {r.state for r in recordings}
    state = next(s for s in ("running", "cut off", "ended") if s in states)
    return Recording(", ".join(r.path for r in recordings), {}, state, merge(recordings))


def files_of(paths: Iterable[StrPath]) -> list[str]:
    """The paths, with each folder replaced by the recordings in it, by name, and ids of tests by paths; a
    file that is named twice comes once.

    Errors: LeakprobeError "unreadable_file" for a folder without recordings.
    """
    found = []
    for path in map(path_of, paths):
        if not os.path.isdir(path):
            found.append(path)
            continue
        inside = sorted(entry.path for entry in os.scandir(path) if is_readable_recording(entry.path))
        if not inside:
            raise LeakprobeError(f"there is no recording in the folder {path}", "unreadable_file")
        found += inside
    first: dict[object, str] = {}
    for path in found:
        first.setdefault(identity_of(path), path)
    return list(first.values())


def identity_of(path: str) -> object:
    """Device and inode; of what can't be read the path, which reading says."""
    try:
        status = os.stat(path)
    except OSError:
        return path
    return status.st_dev, status.st_ino


def is_readable_recording(path: StrPath) -> bool:
    """True for a regular file that begins as a recording does; what else lies in a folder is not opened."""
    if os.path.basename(path).startswith("."):  # a recording that is about to get its name
        return False
    try:
        if locks.identity_of(os.stat(path)) in locks.CLAIMS:
            return True  # of this process: to open and close it would end the locks of a commit
        descriptor = open_regular(path)
        try:
            return is_recording(os.pread(descriptor, 72, 0))
        finally:
            os.close(descriptor)
    except (OSError, LeakprobeError):
        return False


def save(report: Report, path: StrPath) -> None:
    """Write ``report`` as a recording that has ended.  Errors: LeakprobeError as of Recorder, or
    "unwritable_file".
    """
    recorder = Recorder(path, report.run, {"warmup": report.steps["warmup"]})
    recorder.wait_for_readers(place.WAIT_S)
    memory = {row["step"]: row for row in report.memory}
    for row in report.timeline:
        recorder.mark(row, memory.get(row["step"], {"step": row["step"]}))
    recorder.close(report)
    if recorder.lost or recorder.trouble:
        raise LeakprobeError(f"{path} could not be written whole: {recorder.trouble}", "unwritable_file")
