"""Where a finding is shown in the sources, for what puts it beside a line: code scanning, annotations."""

import os
import urllib.parse

from leakprobe.model.finding import Finding, Note
from leakprobe.model.frames import Frame


def place_of(item: Finding | Note) -> Frame | None:
    """The user's line that allocated it, else the one that last grew its holder, else the innermost frame."""
    if item.allocation is not None:
        return item.allocation
    return grown_at(item) or next(
        (frame for frame in item.allocation_stack or () if is_file(frame.filename)), None
    )


def grown_at(item: Finding | Note) -> Frame | None:
    """The line that last grew its holder."""
    row = item.holder["grown_at"] if item.holder else None
    return Frame(**row) if row else None


def is_file(filename: str) -> bool:
    """False for "<string>", "<native>" and the like."""
    return bool(filename) and not filename.startswith("<")


def inside(filename: str, root: str) -> str | None:
    """The path below ``root`` with "/" between its parts, or None where it is elsewhere.

    Names only: no file is looked at, since the recording may come from another machine.
    """
    if not os.path.isabs(filename):
        return filename.replace(os.sep, "/")
    relative = os.path.relpath(filename, os.path.abspath(root))
    return None if relative.split(os.sep)[0] == os.pardir else relative.replace(os.sep, "/")


def uri_of(filename: str) -> str:
    """file:///home/me/train.py"""
    return ("file://" if filename.startswith("/") else "") + quoted(filename)


def quoted(path: str) -> str:
    """A path as part of a URI; a name that is no Unicode loses what is not."""
    return urllib.parse.quote(path, errors="replace")
