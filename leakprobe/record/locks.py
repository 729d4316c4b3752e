"""Locks on a recording: the one that says it is being written, and SQLite's own as a reader takes it.

A run holds flock() on its recording from beginning to end.  SQLite locks bytes beyond 1 GiB with fcntl(), for
each transaction (sqlite.org/lockingv3.html): whoever holds SHARED sees no commit happen.  On Linux a reader's
lock belongs to its open file, not to the process, so that closing it takes none away from the writer or from
another thread.
"""

import contextlib
import dataclasses
import errno
import fcntl
import os
import struct
import sys
import time

from leakprobe import _core

#: Where SQLite locks: a reader passes PENDING, which a writer that waits has taken, and keeps SHARED.
PENDING, SHARED, SHARED_BYTES = 0x40000000, 0x40000002, 510
#: struct flock of Linux: type, whence, start, length, pid.
FLOCK = "hhqqi4x"
OF_OPEN_FILE = getattr(fcntl, "F_OFD_SETLK", None) if sys.platform == "linux" else None
#: Seconds between two tries.
POLL_S = 0.005

Identity = tuple[int, int]  # (device, inode)


@dataclasses.dataclass
class Claim:
    """A recording that this process writes.  ``lock`` is held during each commit.

    The descriptor is closed, and what is written goes to it, only while it is the file it was opened for.
    """

    path: str
    descriptor: int
    identity: Identity  # (device, inode)
    lock: _core.Turn

    def is_whole(self) -> bool:
        """False once the program has closed the descriptor, which may be someone else's by now."""
        return is_of(self.descriptor, self.identity)

    def release(self) -> None:
        CLAIMS.pop(self.identity, None)
        if self.is_whole():
            os.close(self.descriptor)


#: (device, inode) => Claim of this process.
CLAIMS: dict[Identity, Claim] = {}


def identity_of(status: os.stat_result) -> Identity:
    return (status.st_dev, status.st_ino)


def is_of(descriptor: int, identity: Identity) -> bool:
    """True if the descriptor is open on that file."""
    try:
        return identity_of(os.fstat(descriptor)) == identity
    except OSError:
        return False


def descriptors_of(identity: Identity) -> list[int]:
    """The descriptors of this process that are open on that file; none where the system does not list
    them.
    """
    try:
        numbers = [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        return []
    return [number for number in numbers if is_of(number, identity)]


def try_flock(descriptor: int, how: int) -> bool:
    """Lock the file until the descriptor closes; False if another run has it.  ``how``: fcntl.LOCK_EX or
    LOCK_SH.

    A file system without flock() is taken as unlocked.
    """
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def lock_for_writing(descriptor: int, seconds: float) -> str:
    """ "locked"; "taken" if another run has the file; "busy" if readers asked for it all the time.

    A reader holds the lock for a moment, to see whether a run has it; it is waited for.
    """
    ends = time.monotonic() + seconds
    while not try_flock(descriptor, fcntl.LOCK_EX):
        if not try_flock(descriptor, fcntl.LOCK_SH):
            return "taken"
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        if time.monotonic() >= ends:
            return "busy"
        time.sleep(POLL_S)
    return "locked"


def is_written(descriptor: int) -> bool:
    """True if a run has claimed the file that the descriptor is open on, and not ended yet."""
    if identity_of(os.fstat(descriptor)) in CLAIMS:
        return True
    if not try_flock(descriptor, fcntl.LOCK_SH):
        return True
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    return False


def lock_shared(descriptor: int, seconds: float) -> bool:
    """Take SQLite's SHARED lock until the descriptor closes; False if a writer kept it, or the file system
    has no locks.
    """
    ends = time.monotonic() + seconds
    try:
        while not try_shared(descriptor):
            if time.monotonic() >= ends:
                return False
            time.sleep(POLL_S)
    except OSError:
        return False
    return True


def try_shared(descriptor: int) -> bool:
    if not lock_range(descriptor, fcntl.F_RDLCK, PENDING, 1):
        return False
    try:
        return lock_range(descriptor, fcntl.F_RDLCK, SHARED, SHARED_BYTES)
    finally:
        lock_range(descriptor, fcntl.F_UNLCK, PENDING, 1)


def lock_range(descriptor: int, kind: int, start: int, length: int) -> bool:
    """False if another holds a lock there.  Errors: OSError where the file system has none."""
    try:
        if OF_OPEN_FILE is not None:
            fcntl.fcntl(descriptor, OF_OPEN_FILE, struct.pack(FLOCK, kind, os.SEEK_SET, start, length, 0))
        else:
            how = fcntl.LOCK_UN if kind == fcntl.F_UNLCK else fcntl.LOCK_SH | fcntl.LOCK_NB
            fcntl.lockf(descriptor, how, length, start)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES):
            return False
        raise
    return True
