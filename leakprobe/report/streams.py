"""Text written to a stream in the signs that its encoding has; it needs no library, as rich is one."""

import contextlib
import io
import sys
from typing import TextIO

from leakprobe.errors import LeakprobeError

#: The signs of trees where a stream's encoding has none.
IN_ASCII = str.maketrans({"┬": "+", "├": "+", "╰": "`", "─": "-", "│": "|", "→": ">"})


def stream_of(file: TextIO | None) -> TextIO:
    """The file, or standard output; nothing is shown where the program has none, as by print().

    Errors: LeakprobeError "bad_argument" for what can't be written to.
    """
    if file is not None and not callable(getattr(file, "write", None)):
        raise LeakprobeError(
            f"file must be a stream of text, as from open(), not {type(file).__name__}", "bad_argument"
        )
    return file or sys.stdout or io.StringIO()


def encoding_of(stream: TextIO) -> str:
    return getattr(stream, "encoding", None) or "utf-8"


def write(text: str, stream: TextIO) -> None:
    """Signs that the stream's encoding lacks are written as others, or as escapes."""
    encoding = encoding_of(stream)
    if not has_trees(encoding):
        text = text.translate(IN_ASCII)
    with contextlib.suppress(LookupError):  # an encoding that Python does not know
        text = text.encode(encoding, "backslashreplace").decode(encoding)
    stream.write(text)


def has_trees(encoding: str) -> bool:
    try:
        "┬─├│╰→".encode(encoding)
    except (UnicodeError, LookupError):
        return False
    return True
