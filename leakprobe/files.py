"""Files that come from anywhere, read whole and never waited for, and files that are written for their owner
only.
"""

import errno
import json
import os
import re
import stat
from typing import Any

from leakprobe.checks import checked_path
from leakprobe.errors import LeakprobeError

StrPath = str | os.PathLike[str]

#: The largest file that is read: a recording holds 16,384 marks, some 10 MB; a snapshot of 20 million objects
#: is half of this.
MOST_BYTES = 2**30
#: Digits of a whole number in JSON; a count of bytes has 20.  Python's int() takes time by the square of the
#: digits.
MOST_DIGITS = 64
#: What damaged data raises where it is taken apart.
BAD_DATA = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError, MemoryError)
#: The descriptors of standard output and of the error stream.
STANDARD_STREAMS = (1, 2)
#: How what leakprobe writes begins, by kind: a file is overwritten only by one of its kind.
BEGINNINGS = {
    "recording": re.compile(rb"SQLite format 3\x00.{52}LEAK", re.DOTALL),
    "page": re.compile(rb"\s*<!doctype html>.{0,7000} - leakprobe</title>", re.DOTALL),
    "report": re.compile(rb'\{"schema_version": \d+, .{0,500}?"verdict": "', re.DOTALL),
    "snapshot": re.compile(rb'\s*\{\s*"schema":\s*"leakprobe-snapshot",'),
    "perfetto": re.compile(rb'\{"traceEvents": \[\{"ph": "M", "name": "process_name", "pid": '),
    "csv": re.compile(rb"step,epoch,time,rss,python_heap,"),
    "dot": re.compile(rb"digraph leakprobe \{"),
    "folded": re.compile(rb"leakprobe [a-z ]+;"),
    "speedscope": re.compile(rb'\{"\$schema": "https://www.speedscope.app/[^"]+", "exporter": "leakprobe"'),
    "pprof": re.compile(rb"\x1f\x8b\x08\x08.{6}leakprobe\.pb\x00", re.DOTALL),
    "sarif": re.compile(
        rb'\{"\$schema": "[^"]+", "version": "2.1.0", "runs": \[\{"tool": \{"driver": \{"name": "leakprobe"'
    ),
    "github": re.compile(rb"::(error|warning) [^\n]*title=leakprobe"),
    "memory_viz": re.compile(rb"\x80\x04.*\x8c\tleakprobe", re.DOTALL),
}
#: What to do where a file can't be written, by errno.
ADVICE = {
    errno.EISDIR: "give the name of a file",
    errno.ENOENT: "give a file in a folder that exists",
    errno.ENOTDIR: "give a file in a folder that exists",
}
#: Bytes that tell the kind; for memory_viz the last ones count too, since its keys stand in the end.
BEGINNING_BYTES = 8192


def file_stamp(status: os.stat_result) -> tuple[int, int, int, int]:
    """What changes when a file is written, or another takes its name."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def open_regular(path: StrPath, flags: int = 0) -> int:
    """A descriptor to read a regular file.  What is none is not opened: a FIFO would wait, a device may act.

    Errors: OSError, or LeakprobeError "unreadable_file".
    """
    check_regular(path, os.stat(path, follow_symlinks=not flags & os.O_NOFOLLOW).st_mode)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC | flags)
    try:
        check_regular(path, os.fstat(descriptor).st_mode)  # it may have been replaced since
    except LeakprobeError:
        os.close(descriptor)
        raise
    return descriptor


def check_regular(path: StrPath, mode: int) -> None:
    kinds = {
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a FIFO",
        stat.S_IFLNK: "a symbolic link",
        stat.S_IFSOCK: "a socket",
    }
    if not stat.S_ISREG(mode):
        what = kinds.get(stat.S_IFMT(mode), "a device")
        raise LeakprobeError(f"{path} can't be read: it is {what}, not a regular file", "unreadable_file")


def read_bytes(descriptor: int, path: StrPath) -> bytes:
    """The whole file, as long as it is now.  Errors: OSError, or LeakprobeError "unreadable_file"."""
    size = os.fstat(descriptor).st_size
    if size > MOST_BYTES:
        raise LeakprobeError(
            f"{path} can't be read: it has {size:,} bytes, more than {MOST_BYTES:,}", "unreadable_file"
        )
    parts, at = [], 0
    while at < size:
        part = os.pread(descriptor, min(size - at, 2**24), at)
        if not part:
            break
        parts.append(part)
        at += len(part)
    return b"".join(parts)


def read_file(path: StrPath) -> bytes:
    """The bytes of a regular file.  Errors: LeakprobeError "unreadable_file"."""
    try:
        descriptor = open_regular(path)
        try:
            return read_bytes(descriptor, path)
        finally:
            os.close(descriptor)
    except LeakprobeError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise LeakprobeError(f"{path} can't be read: {reason_of(error)}", "unreadable_file") from error


def read_json(text: str | bytes) -> Any:
    """json.loads() of data from anywhere.  Errors: ValueError or RecursionError."""
    return json.loads(text, parse_int=whole_number)


def whole_number(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)


def write_private(path: str | os.PathLike[str], data: bytes, kind: str) -> None:
    """Write ``data`` to ``path``; a new file is readable by its owner only.

    kind: a key of BEGINNINGS.  A file that is there already must be empty or of that kind.
    Errors: LeakprobeError "unwritable_file", "foreign_file", or "bad_argument" for what is no path.
    """
    path = checked_path("path", path)
    made = not os.path.exists(path)
    try:
        stream = standard_stream_at(path)
        if stream is not None:
            with os.fdopen(os.dup(stream), "wb") as file:
                file.write(data)
            return
        descriptor = open_target(path, kind)
        with os.fdopen(descriptor, "wb") as file:
            try:
                is_plain = stat.S_ISREG(os.fstat(descriptor).st_mode)
                if is_plain:
                    reserve(descriptor, len(data))
                file.write(data)
                file.flush()
                if is_plain:
                    os.ftruncate(descriptor, len(data))
            except OSError:
                if made:
                    remove_made(path, descriptor)
                raise
    except LeakprobeError:
        raise
    except (OSError, ValueError) as error:
        raise LeakprobeError(f"{path} can't be written: {reason_of(error)}", "unwritable_file") from error


def standard_stream_at(path: StrPath) -> int | None:
    """1 or 2 if the path is what standard output or the error stream goes to, as /dev/stdout behind a shell's
    `>`: what goes there comes behind what the program wrote.
    """
    for stream in STANDARD_STREAMS:
        try:
            if os.path.samestat(os.stat(path), os.fstat(stream)):
                return stream
        except OSError:  # no such file, or the stream is closed
            continue
    return None


def reserve(descriptor: int, size: int) -> None:
    """Room for new contents before the old ones go: a full disk leaves the file as it was."""
    before = os.fstat(descriptor).st_size
    try:
        if size > before and hasattr(os, "posix_fallocate"):
            os.posix_fallocate(descriptor, before, size - before)
    except OSError as error:
        os.ftruncate(descriptor, before)
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS):  # what some file systems say
            raise


def reason_of(error: OSError | ValueError) -> object:
    """Why a file can't be opened: of ValueError, which a NUL in the name raises, its text."""
    return getattr(error, "strerror", None) or error


def open_target(path: StrPath, kind: str) -> int:
    """A descriptor to write to, at the beginning.  A pipe or a device is written to as it is."""
    if os.path.exists(path) and not os.path.isfile(path):
        return os.open(path, os.O_WRONLY | os.O_NOCTTY | os.O_CLOEXEC)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        check_kind(descriptor, path, kind)
    except (OSError, LeakprobeError):
        os.close(descriptor)
        raise
    return descriptor


def check_kind(descriptor: int, path: StrPath, kind: str) -> None:
    """Errors: LeakprobeError "foreign_file" for a file that has other contents than leakprobe's of this
    kind.
    """
    size = os.fstat(descriptor).st_size
    head = os.pread(descriptor, BEGINNING_BYTES, 0)
    if kind == "memory_viz" and size > len(head):
        head += os.pread(descriptor, BEGINNING_BYTES, max(len(head), size - BEGINNING_BYTES))
    if size and not BEGINNINGS[kind].match(head):
        raise LeakprobeError(
            f"{path} exists and is not a file of this kind that leakprobe wrote: it is left as it is; "
            "give another name, or remove it first",
            "foreign_file",
        )


def check_target(path: StrPath, kind: str) -> None:
    """Say now what write_private() would say.  Errors: LeakprobeError "unwritable_file" or "foreign_file"."""
    try:
        if kind != "recording" and standard_stream_at(path) is not None:
            return
        if os.path.isdir(path):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not os.path.exists(path):
            folder = os.path.dirname(os.path.realpath(path))
            if not os.path.isdir(folder):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            if not os.access(folder, os.W_OK):
                raise LeakprobeError(
                    f"{path} can't be written: the folder {folder} can't be written to; "
                    "give a file in another one",
                    "unwritable_file",
                )
        elif os.path.isfile(path):
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                check_kind(descriptor, path, kind)
            finally:
                os.close(descriptor)
    except LeakprobeError:
        raise
    except OSError as error:
        advice = ADVICE.get(error.errno or 0, "give a file that you may write to")
        raise LeakprobeError(
            f"{path} can't be written: {error.strerror}; {advice}", "unwritable_file"
        ) from error


def remove_made(path: StrPath, descriptor: int) -> None:
    """Remove the file that the descriptor is open on, if the path still is it."""
    try:
        if os.path.samestat(os.stat(path), os.fstat(descriptor)):
            os.unlink(os.path.realpath(path))
    except OSError:
        pass


def same_file(path: StrPath, other: StrPath) -> bool:
    """True if both names are of one file, by links too, or would be."""
    try:
        return os.path.samefile(path, other)
    except OSError:
        return os.path.realpath(path) == os.path.realpath(other)
