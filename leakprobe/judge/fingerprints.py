"""A stable identity of a finding: the same for the same leak on another run or machine.

It hashes what the leak is made of, without what varies: indices and lengths in the path,
line numbers, folders.
"""

import hashlib
import os
import re

from leakprobe.model.frames import innermost_user_frame


def fingerprint(kind: str, path, holder, medium: str, stack) -> str:
    """Twelve hex digits from the kind, the shape of the path, the holder's type and the user's function."""
    parts = [kind, medium]
    for element in path or ():
        parts.append(
            f"{element.get('edge')}|{element.get('type')}|{without_numbers(str(element.get('text')))}"
        )
    user = innermost_user_frame(stack) or (stack[0] if stack else None)
    if user:
        parts += [os.path.basename(user[0]), str(user[2])]
    return hashlib.sha1("\n".join(parts).encode("utf-8", "replace")).hexdigest()[:12]


def without_numbers(text: str) -> str:
    return re.sub(r"\d+", "#", text)
