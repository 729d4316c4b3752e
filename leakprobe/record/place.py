"""Where a recording goes: it appears whole under its name, or not at all, and nothing of anyone else is
touched.

The beginning is written to a file of its own in the same folder, locked, and then given the name: by a link,
which never replaces anything, or by a rename over an older recording that this run holds the lock of.
"""

import contextlib
import fcntl
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator

from leakprobe import _core
from leakprobe.errors import LeakprobeError
from leakprobe.files import reason_of
from leakprobe.record import locks
from leakprobe.record.layout import is_recording
from leakprobe.record.rollback import JOURNAL_MAGIC

#: Seconds that a beginning waits for readers of an older recording, and the end of a run for those of its
#: own.
WAIT_S = 5.0
#: Beginnings of other runs that may come first.
TRIES = 8
#: A byte of a name in /proc/self/mountinfo that would end the field.
ESCAPE = re.compile(rb"\\([0-3][0-7]{2})")
#: File systems that other machines share, by their names in /proc/self/mountinfo.
NETWORK = (
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "lustre",
    "gpfs",
    "beegfs",
    "ceph",
    "glusterfs",
    "afs",
    "9p",
    "pvfs2",
    "wekafs",
)


def claim(path: str, fill: Callable[[str], None]) -> locks.Claim:
    """A new recording at ``path`` that is locked for this run, its owner's only.  ``fill(path)`` writes its
    beginning.

    A finished or abandoned recording is replaced, a file of anything else is not; where something fails, all
    stays as it was.  Errors: those of fill(); LeakprobeError "unwritable_file", "recording_in_use",
    "foreign_file".
    """
    try:
        for _ in range(TRIES):
            with older_recording(path) as older:
                check_beside(path, older)
                made = try_begin(path, older, fill)
            if made is not None:
                return made
    except LeakprobeError:
        raise
    except (OSError, ValueError) as error:
        raise LeakprobeError(
            f"the recording {path} can't be written: {reason_of(error)}; give a file in a folder that exists and that you may write to",
            "unwritable_file",
        ) from error
    raise in_use(path)


def try_begin(path: str, older: int | None, fill: Callable[[str], None]) -> locks.Claim | None:
    """The Claim, or None if another run has taken the name meanwhile."""
    fresh = os.path.join(os.path.dirname(path), f".leakprobe-{secrets.token_hex(8)}")
    descriptor = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        locks.try_flock(descriptor, fcntl.LOCK_EX)
        fill(fresh)
        named = replace(fresh, path, older) if older is not None else give_name(fresh, path)
        if named:
            made = locks.Claim(path, descriptor, locks.identity_of(os.fstat(descriptor)), _core.Turn())
            locks.CLAIMS[made.identity] = made
            return made
    except BaseException:
        os.close(descriptor)
        raise
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(fresh)
    os.close(descriptor)
    return None


def give_name(fresh: str, path: str) -> bool:
    """False if the name is taken."""
    try:
        os.link(fresh, path, follow_symlinks=False)
    except FileExistsError:
        return False
    except OSError:  # a file system without hard links
        if os.path.lexists(path):
            return False
        os.rename(fresh, path)
    return True


def replace(fresh: str, path: str, older: int) -> bool:
    """Put the new file in the place of the older one and of its journal; False if the name is of another file
    by now.
    """
    try:
        if not os.path.samestat(os.lstat(path), os.fstat(older)):
            return False
    except FileNotFoundError:
        return False
    with journal_aside(f"{path}-journal", f"{fresh}-journal"):
        os.rename(fresh, path)
    return True


@contextlib.contextmanager
def journal_aside(journal: str, aside: str) -> Iterator[None]:
    """The journal of the older recording goes before the new one comes, which it would undo; it is back after
    an error.
    """
    try:
        os.rename(journal, aside)
    except FileNotFoundError:
        yield
        return
    try:
        yield
    except BaseException:
        os.rename(aside, journal)
        raise
    os.unlink(aside)


@contextlib.contextmanager
def older_recording(path: str) -> Iterator[int | None]:
    """A descriptor that locks the recording, or the empty file, at ``path``; None where nothing is."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        yield None
        return
    check_kind(path, status.st_mode)
    descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        check_ours(descriptor, path)
        yield descriptor
    finally:
        os.close(descriptor)


def check_kind(path: str, mode: int) -> None:
    if stat.S_ISLNK(mode):
        raise LeakprobeError(
            f"the recording {path} can't be written: it is a symbolic link; give the name of the file itself",
            "unwritable_file",
        )
    if stat.S_ISDIR(mode):
        raise LeakprobeError(
            f"the recording {path} can't be written: it is a folder; give the name of a file",
            "unwritable_file",
        )
    if not stat.S_ISREG(mode):
        raise LeakprobeError(
            f"the recording {path} can't be written: it is not a regular file; it is left as it is",
            "foreign_file",
        )


def check_ours(descriptor: int, path: str) -> None:
    check_kind(path, os.fstat(descriptor).st_mode)
    if locks.identity_of(os.fstat(descriptor)) in locks.CLAIMS:
        raise in_use(path)
    got = locks.lock_for_writing(descriptor, WAIT_S)
    if got == "taken":
        raise in_use(path)
    if got == "busy":
        raise LeakprobeError(
            f"{path} has been held by readers for {WAIT_S:g} s: give this run a file of its own",
            "recording_in_use",
        )
    head = os.pread(descriptor, 72, 0)
    if head and not is_recording(head):
        raise LeakprobeError(
            f"{path} exists and is not a recording: it is left as it is; give another name", "foreign_file"
        )


def in_use(path: str) -> LeakprobeError:
    return LeakprobeError(
        f"{path} is being written by another run: wait for its end or give this run a file of its own",
        "recording_in_use",
    )


def check_beside(path: str, older: int | None) -> None:
    """SQLite would write to these files, or remove them.

    Errors: LeakprobeError "foreign_file", "unwritable_file" where their names would be too long.
    """
    longest = os.pathconf(os.path.dirname(path) or ".", "PC_NAME_MAX")
    if len(os.fsencode(os.path.basename(path))) + len("-journal") > longest:
        raise LeakprobeError(
            f"the recording {path} can't be written: SQLite's journal beside it would have too long a name; "
            "give a shorter one",
            "unwritable_file",
        )
    for suffix in ("-journal", "-wal", "-shm"):
        beside = f"{path}{suffix}"
        if os.path.lexists(beside) and not (suffix == "-journal" and is_own_journal(beside, older)):
            raise LeakprobeError(
                f"the recording {path} can't be written: {beside} is beside it and was not written by leakprobe; it is left as it is: "
                "move it away or give another name",
                "foreign_file",
            )


def is_own_journal(journal: str, older: int | None) -> bool:
    """True for the journal that a killed run left with its recording: empty between two commits, else one of
    SQLite's.
    """
    if older is None or not os.fstat(older).st_size or not stat.S_ISREG(os.lstat(journal).st_mode):
        return False
    descriptor = os.open(journal, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.pread(descriptor, 8, 0) in (b"", JOURNAL_MAGIC)
    finally:
        os.close(descriptor)


def is_locked(path: str | os.PathLike[str]) -> bool:
    """True if a run has claimed the file and not ended yet."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            return False
        if locks.identity_of(status) in locks.CLAIMS:
            return True
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return locks.is_written(descriptor)
    finally:
        os.close(descriptor)


def on_network(path: str | os.PathLike[str]) -> bool:
    """True if the file lies on a file system that other machines share; False where that can't be read."""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            return file_system(os.path.realpath(path), file) in NETWORK
    except OSError:
        return False


def file_system(path: str, mounts: Iterable[str]) -> str:
    """The type of the file system that holds ``path``, by lines of /proc/self/mountinfo: that of the longest
    mount point.
    """
    best, found, name = -1, "", os.fsencode(path)
    for line in mounts:
        head, _, tail = line.partition(" - ")
        fields = head.split()
        if len(fields) < 5 or not tail:
            continue
        point = ESCAPE.sub(lambda octal: bytes([int(octal[1], 8)]), os.fsencode(fields[4]))
        inside = name == point or name.startswith(point.rstrip(b"/") + b"/")
        if inside and len(point) >= best:
            best, found = len(point), tail.split()[0]
    return found
