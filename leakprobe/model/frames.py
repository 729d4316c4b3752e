"""Frames of stacks, and whose code one is: the user's own, or the standard library's, a package's,
leakprobe's.
"""

import dataclasses
import functools
import os
import sysconfig
from collections.abc import Sequence
from typing import TypedDict

from leakprobe._core import (
    SITE_FIRST,
    SITE_NATIVE,
    SITE_OVERFLOW,
    SITE_RECYCLED,
    SITE_SELF,
    SITE_UNKNOWN,
)
from leakprobe.model.bounds import CACHED_FILES
from leakprobe.report.cells import is_cell

PACKAGE_DIR = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
DEMO_DIR = os.path.join(PACKAGE_DIR, "demo") + os.sep

#: Sites that are no line of code, in words.
SPECIAL_SITES = {
    SITE_UNKNOWN: "unknown (older than the watch)",
    SITE_NATIVE: "native code, no Python frame",
    SITE_SELF: "leakprobe",
    SITE_RECYCLED: "unknown (recycled)",
    SITE_OVERFLOW: "unknown (site table full)",
}
SELF_SITE, FIRST_SITE = SITE_SELF, SITE_FIRST


@functools.lru_cache(maxsize=1)
def library_dirs() -> tuple[str, ...]:
    """Folders of the standard library, with a trailing separator."""
    names = ("stdlib", "platstdlib")
    paths = {os.path.realpath(p) for p in map(sysconfig.get_path, names) if p}
    paths |= {p for p in map(sysconfig.get_path, names) if p}
    return tuple(sorted(p.rstrip(os.sep) + os.sep for p in paths))


#: A frame as the core gives it: (filename, lineno, function).
FrameTuple = tuple[str, int, str]


class FrameRow(TypedDict):
    """A frame as Frame.to_dict() gives it."""

    filename: str
    lineno: int
    function: str


@dataclasses.dataclass(frozen=True)
class Frame:
    """One frame of a stack: ``lineno`` is 1-based, 0 if unknown."""

    filename: str
    lineno: int
    function: str

    def to_dict(self) -> FrameRow:
        return {"filename": self.filename, "lineno": self.lineno, "function": self.function}


@functools.lru_cache(maxsize=CACHED_FILES)
def is_user_file(filename: str) -> bool:
    """True for code outside the standard library, site- and dist-packages, frozen modules and leakprobe
    itself.
    """
    if filename.startswith(DEMO_DIR):
        return True
    if filename.startswith(("<frozen", PACKAGE_DIR)) or filename in ("", "<native>"):
        return False
    parts = filename.replace("\\", "/").split("/")
    if "site-packages" in parts or "dist-packages" in parts:
        return False
    return not filename.startswith(library_dirs())


def short_place(frame: FrameTuple) -> str:
    """ "train.py:58"."""
    return f"{os.path.basename(frame[0])}:{frame[1]}"


def place_of(frames: Sequence[FrameTuple], otherwise: str) -> str:
    """ "train.py:58" of the user's own code, else of the innermost frame, ``otherwise`` where there is
    none.
    """
    frame = innermost_user_frame(frames) or (frames[0] if frames else None)
    return short_place(frame) if frame else otherwise


def innermost_user_frame(frames: Sequence[FrameTuple]) -> FrameTuple | None:
    """The first of ``frames`` (filename, lineno, function; innermost first) that is the user's own, or None.

    Code that was made at run time ("<string>", "<eval_with_key>.3") counts only where no frame is of a file;
    a cell of IPython is one, also within the program that embeds IPython.
    """
    own = [f for f in frames if is_user_file(f[0])]
    return next((f for f in own if not f[0].startswith("<") or is_cell(f[0])), own[0] if own else None)
