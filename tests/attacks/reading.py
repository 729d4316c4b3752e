"""Every way in which leakprobe reads a file, and what must not change while it does."""

import contextlib
import hashlib
import os
import pathlib
import signal
import stat

import pytest

from leakprobe import cli, recording
from leakprobe.cli.attach import follow
from leakprobe.errors import LeakprobeError
from leakprobe.snapshot import Snapshot


def by_verb(*arguments):
    def read(path, honest) -> int:
        return cli.main([a.format(path=path, folder=os.path.dirname(path), honest=honest) for a in arguments])

    return read


def by_call(function):
    def read(path, honest) -> int:
        try:
            function(path)
        except LeakprobeError:
            return cli.USAGE
        return 0

    return read


#: name => function(path, path of an honest recording elsewhere): the exit code, or what it would be.
READERS = {
    "report": by_verb("report", "{path}"),
    "report of a folder": by_verb("report", "{folder}"),
    "report of several": by_verb("report", "{honest}", "{path}"),
    "report as a page": by_verb("report", "{path}", "--html", "{honest}.html"),
    "diff": by_verb("diff", "{path}", "{path}"),
    "diff with another": by_verb("diff", "{honest}", "{path}"),
    "why": by_verb("why", "{path}"),
    "cycles": by_verb("cycles", "{path}"),
    "export csv": by_verb("export", "{path}", "--format", "csv"),
    "export memory_viz": by_verb("export", "{path}", "--format", "memory_viz", "-o", "{honest}.pickle"),
    "live": by_call(lambda path: follow(str(path))),
    "load": by_call(recording.load),
    "load_merged": by_call(lambda path: recording.load_merged([path])),
    "Snapshot.load": by_call(Snapshot.load),
}


@pytest.fixture(autouse=True)
def no_hang():
    """Ends a test that waits for ever."""

    def end(*_):
        raise TimeoutError("the reader hangs")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(240)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def state_of(folder) -> dict:
    """What can be seen of all that is in a folder, its contents too; times of access are left out."""
    found = {}
    for path in [pathlib.Path(folder), *sorted(pathlib.Path(folder).rglob("*"))]:
        status = path.lstat()
        is_file = stat.S_ISREG(status.st_mode)
        content = (
            hashlib.sha256(path.read_bytes()).hexdigest() if is_file and status.st_size < 2**24 else None
        )
        found[str(path)] = (
            status.st_mode,
            status.st_ino,
            status.st_nlink,
            status.st_size,
            status.st_mtime_ns,
            content,
        )
    return found


@contextlib.contextmanager
def unchanged(folder):
    before = state_of(folder)
    yield
    assert state_of(folder) == before


def check_refused(capsys, code: int, words: str = "") -> None:
    """Exit code 2, one line, nothing on standard output."""
    out, err = capsys.readouterr()
    assert code == cli.USAGE, (out, err)
    assert out == "" and len(err.splitlines()) <= 1 and words in err, err
