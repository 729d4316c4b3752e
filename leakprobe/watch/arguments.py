"""What watch() takes, checked: each error names the argument and the right form."""

import math
import re
from collections.abc import Iterable
from typing import Any

from leakprobe.checks import checked_path, number_of, shown
from leakprobe.errors import LeakprobeError
from leakprobe.model.media import ALL
from leakprobe.model.units import parse_rate

#: One CUDA device, in place of all of them.
_DEVICE = re.compile(r"cuda:[0-9]+")


def checked_record(record: Any) -> str | None:
    """The path as text, or None."""
    if record is None:
        return None
    path = checked_path("record", record)
    if "\0" in path:
        raise LeakprobeError(f"record can't be the path {shown(path)}: it holds a NUL", "bad_argument")
    return path


def checked_media(media: str | Iterable[str]) -> frozenset[str]:
    try:
        names = frozenset([media] if isinstance(media, str) else media)
    except TypeError:
        raise LeakprobeError(
            f"media must be names of kinds of memory, not {shown(media)}; "
            f"the kinds are {', '.join(sorted(ALL))}",
            "bad_argument",
        ) from None
    unknown = sorted(str(n) for n in names if n not in ALL and not _DEVICE.fullmatch(str(n)))
    if unknown or not names:
        what = f"unknown kind of memory {', '.join(unknown)}" if unknown else "no kind of memory given"
        raise LeakprobeError(f"media: {what}; the kinds are {', '.join(sorted(ALL))}", "bad_argument")
    return frozenset("cuda" if str(n).startswith("cuda:") else n for n in names)


def checked_limit(limit: object) -> float:
    number = number_of(limit)
    if number is None:
        return parse_rate(limit)
    if not 0 <= number < math.inf:
        raise LeakprobeError(
            f'limit must be finite and not negative, not {shown(limit)}; try "256 B/step"', "bad_argument"
        )
    return number


def checked_seconds(name: str, value: object) -> float:
    number = number_of(value)
    if number is None or not number >= 0:
        raise LeakprobeError(
            f"{name} must be a number of seconds, 0 or more, not {shown(value)}", "bad_argument"
        )
    return number
