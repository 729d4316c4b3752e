"""The file of a recording: made or taken over, locked against a second run, and where its folder lies."""

import fcntl
import os
import stat

from leakprobe.errors import LeakprobeError
from leakprobe.record.schema import APPLICATION_ID, MAGIC

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


def claim(path) -> int:
    """A descriptor that locks the file at ``path`` for this run; the file is empty after it, and its owner's only.

    A finished or abandoned recording is overwritten, a file of anything else is not.
    Errors: LeakprobeError "unwritable_file", "recording_in_use", "foreign_file".
    """
    try:
        descriptor = os.open(
            path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0), 0o600
        )
    except OSError as error:
        raise LeakprobeError(
            f"the recording {path} can't be written: {error.strerror}; give a file in a folder that exists and that you may write to",
            "unwritable_file",
        ) from error
    try:
        check_ours(descriptor, path)
        os.fchmod(descriptor, 0o600)
        os.ftruncate(descriptor, 0)
        for suffix in ("-journal", "-wal", "-shm"):
            remove(f"{os.fspath(path)}{suffix}")
    except OSError as error:
        os.close(descriptor)
        raise LeakprobeError(
            f"the recording {path} can't be written: {error.strerror}", "unwritable_file"
        ) from error
    except LeakprobeError:
        os.close(descriptor)
        raise
    return descriptor


def check_ours(descriptor: int, path) -> None:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise LeakprobeError(f"the recording {path} can't be written: it is no regular file", "foreign_file")
    if not try_lock(descriptor, fcntl.LOCK_EX):
        raise LeakprobeError(
            f"{path} is being written by another run: wait for its end or give this run a file of its own",
            "recording_in_use",
        )
    head = os.pread(descriptor, 72, 0)
    if head and not is_recording(head):
        raise LeakprobeError(
            f"{path} exists and is no recording: it is left as it is; give another name", "foreign_file"
        )


def is_recording(head: bytes) -> bool:
    """True for the first 72 bytes of a recording."""
    return head[:16] == MAGIC and head[68:72] == APPLICATION_ID.to_bytes(4, "big")


def try_lock(descriptor: int, how: int) -> bool:
    """Lock the file until the descriptor closes; False if another run has it.  ``how``: fcntl.LOCK_EX or LOCK_SH.

    flock() is not what SQLite locks with.  A file system without it is taken as unlocked.
    """
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def is_locked(path) -> bool:
    """True if a run has claimed the file and not ended yet."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not try_lock(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


def remove(path) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def on_network(path) -> bool:
    """True if the file lies on a file system that other machines share; False where that can't be read."""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            return file_system(os.path.realpath(path), file) in NETWORK
    except OSError:
        return False


def file_system(path: str, mounts) -> str:
    """The type of the file system that holds ``path``, by lines of /proc/self/mountinfo: that of the longest mount point."""
    best, found = -1, ""
    for line in mounts:
        head, _, tail = line.partition(" - ")
        fields = head.split()
        if len(fields) < 5 or not tail:
            continue
        point = (
            fields[4].encode("utf-8", "surrogateescape").decode("unicode_escape")
            if "\\" in fields[4]
            else fields[4]
        )
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= best:
            best, found = len(point), tail.split()[0]
    return found
