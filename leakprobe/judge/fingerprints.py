"""A stable identity of a finding: the same for the same leak on another run or machine.

It hashes what the leak is made of, without what varies: indices and lengths in the path,
line numbers, folders.
"""

import hashlib
import os
import re
from collections.abc import Sequence

from leakprobe.model.entry import Path
from leakprobe.model.facts import FINGERPRINT_DIGITS
from leakprobe.model.frames import FrameTuple, innermost_user_frame


def fingerprint(kind: str, path: Path, medium: str, stack: Sequence[FrameTuple]) -> str:
    """Twelve hex digits from the kind, the medium, the shape of the path and the user's function."""
    parts = [kind, medium]
    for node in path:
        parts.append(f"{node.edge}|{node.type}|{without_numbers(node.text)}")
    user = innermost_user_frame(stack) or (stack[0] if stack else None)
    if user:
        filename, _line, function = user
        parts += [os.path.basename(filename), str(function)]
    return digits_of(parts)


def narrowed(fingerprint: str, names: Sequence[str]) -> str:
    """Another one, of the same and of names as they are written."""
    return digits_of([fingerprint, *names])


def digits_of(parts: Sequence[str]) -> str:
    return hashlib.sha1("\n".join(parts).encode("utf-8", "replace")).hexdigest()[:FINGERPRINT_DIGITS]


def without_numbers(text: str) -> str:
    return re.sub(r"\d+", "#", text)


def without_indices(text: str) -> str:
    """Without the numbers that are no part of a name: "[3]", "60 items"."""
    return re.sub(r"(?<!\w)\d[\d,]*", "#", text)
