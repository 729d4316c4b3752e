"""The bytes of a recording as of one moment, taken without touching it, also while a run writes it."""

import dataclasses
import os

from leakprobe.errors import LeakprobeError
from leakprobe.files import check_regular, open_regular, read_bytes
from leakprobe.record import locks
from leakprobe.record.rollback import roll_back

#: Readings of a file that can't be locked, until two of its stamps are the same.
TRIES = 20


@dataclasses.dataclass(frozen=True)
class Contents:
    """data: what the file holds, a commit that was cut off undone.  is_written: a run on this machine has it
    open.
    """

    data: bytes
    is_written: bool


def contents_of(path: str, wait_s: float) -> Contents:
    """wait_s: seconds that a reader waits for a commit to end.

    Errors: LeakprobeError "unreadable_file" for what can't be read, is no regular file, or has a journal that
    is none.
    """
    try:
        status = os.stat(path)
        check_regular(path, status.st_mode)
        claim = locks.CLAIMS.get(locks.identity_of(status))
        # A descriptor of its own would end the locks of SQLite in this process when it is closed.
        return contents_of_claim(claim) if claim is not None else contents_of_file(path, wait_s)
    except LeakprobeError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name, or a journal that is none
        reason = getattr(error, "strerror", None) or error
        raise LeakprobeError(f"{path} can't be read: {reason}", "unreadable_file") from error


def is_open(path: str, status: os.stat_result) -> bool:
    """True if a run on this machine has the file open.  Errors: OSError, LeakprobeError "unreadable_file"."""
    if locks.identity_of(status) in locks.CLAIMS:
        return True  # of this process: to open and close it would end the locks of a commit
    descriptor = open_regular(path)
    try:
        return locks.is_written(descriptor)
    finally:
        os.close(descriptor)


def contents_of_claim(claim: locks.Claim) -> Contents:
    with claim.lock.held():
        data = read_bytes(claim.descriptor, claim.path)
        return Contents(roll_back(data, read_journal(claim.path)), True)


def contents_of_file(path: str, wait_s: float) -> Contents:
    descriptor = open_regular(path)
    try:
        if locks.lock_shared(descriptor, wait_s):
            data, journal = read_bytes(descriptor, path), read_journal(path)
        else:
            data, journal = read_steady(descriptor, path)
        return Contents(roll_back(data, journal), locks.is_written(descriptor))
    finally:
        os.close(descriptor)


def read_steady(descriptor: int, path: str) -> tuple[bytes, bytes]:
    """File and journal where no lock says that they belong together: read until neither changed meanwhile."""
    data, journal = b"", b""
    for _ in range(TRIES):
        before, first = stamp(descriptor), read_journal(path)
        data, journal = read_bytes(descriptor, path), read_journal(path)
        if stamp(descriptor) == before and first == journal:
            break
    return data, journal


def stamp(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_size, status.st_mtime_ns


def read_journal(path: str) -> bytes:
    """The rollback journal beside the file that the path leads to; empty if there is none.

    What lies there in its place may be anything: only a regular file is opened, and no link is followed.
    """
    journal = f"{os.path.realpath(path)}-journal"
    try:
        descriptor = open_regular(journal, os.O_NOFOLLOW)
    except FileNotFoundError:
        return b""
    try:
        return read_bytes(descriptor, journal)
    finally:
        os.close(descriptor)
