"""Follows recordings that are being written: reads them again whenever a commit has changed them.

It takes what any reader takes, SQLite's SHARED lock while the bytes are copied; a commit that meets it is
tried again 20 ms later (writer.py), so that the run that is followed waits for nobody.
"""

import os
import threading
import time
from collections.abc import Sequence

from leakprobe.errors import LeakprobeError
from leakprobe.files import file_stamp
from leakprobe.record.contents import is_open
from leakprobe.record.names import path_of
from leakprobe.record.reader import Recording, load
from leakprobe.recording import files_of, is_readable_recording, load_merged

#: The next reading waits so many times as long as the last one took.
REST = 4.0

#: What tells that files have changed, each: name, device, inode, size, time of the last write, whether a run
#: has it open.
Stamp = tuple[tuple[object, ...], ...]


class Follower:
    """poll() now and then; ``recording`` is the newest that was read, ``version`` counts them.

    trouble: why nothing can be read yet, or any more, as a sentence; None where all is well.
    """

    def __init__(self, paths: Sequence[str | os.PathLike[str]]):
        self._paths = [os.fspath(path) for path in paths]
        self._stamp: Stamp = ()
        self._next = 0.0
        self._reading = threading.Lock()
        self.recording: Recording | None = None
        self.version = 0
        self.trouble: str | None = None

    @property
    def state(self) -> str:
        """ "waiting" before the first, then that of the Recording: "running", "ended" or "cut off"."""
        return self.recording.state if self.recording is not None else "waiting"

    def poll(self) -> Recording | None:
        """The recording if it has changed since the last call, else None, also while another thread reads."""
        if not self._reading.acquire(blocking=False):
            return None
        try:
            return self._read_if_changed()
        finally:
            self._reading.release()

    def _read_if_changed(self) -> Recording | None:
        if time.monotonic() < self._next:
            return None
        began = time.monotonic()
        try:
            stamp = stamp_of(files_of(self._paths))
            if stamp == self._stamp and self.trouble is None:
                return None
            self.recording = load_merged(self._paths)
        except (LeakprobeError, OSError) as error:
            self.trouble = str(error) if isinstance(error, LeakprobeError) else error.strerror or str(error)
            self._rest(began)
            return None
        self._stamp, self.trouble = stamp, None
        self.version += 1
        self._rest(began)
        return self.recording

    def _rest(self, began: float) -> None:
        now = time.monotonic()
        self._next = now + REST * (now - began)

    def check(self) -> None:
        """Errors: LeakprobeError as of load() for a file that never becomes a recording that can be read: one
        of another kind, or of a newer leakprobe.  A run writes to neither.
        """
        if self.recording is not None or self.trouble is None:
            return
        for path in map(path_of, self._paths):
            if is_empty(path):
                continue
            try:
                load(path)
            except LeakprobeError as error:
                if error.code == "wrong_schema" or not is_readable_recording(path):
                    raise
            except OSError:  # it is on its way
                pass

    def describe(self) -> str:
        """One line: what is followed, and how far it is."""
        if self.recording is None:
            return f"Waiting for {', '.join(self._paths)}: {self.trouble or 'not read yet'}"
        rows = self.recording.report.timeline
        names = ", ".join(os.path.basename(path.rstrip("/")) for path in self._paths)
        words = {"running": "running", "ended": "ended", "cut off": "the process ended without closing it"}
        step = f", step {rows[-1]['step']:,}" if rows else ""
        return f"{names}: {words[self.state]}{step}" + (f" ({self.trouble})" if self.trouble else "")


def is_empty(path: str) -> bool:
    """True for what a recording may come to: no file yet, an empty one, a folder."""
    return not os.path.exists(path) or os.path.isdir(path) or os.stat(path).st_size == 0


def stamp_of(files: Sequence[str]) -> Stamp:
    """Errors: OSError, LeakprobeError."""
    found: list[tuple[object, ...]] = []
    for path in files:
        status = os.stat(path)
        found.append((path, *file_stamp(status), is_open(path, status)))
    return tuple(found)
