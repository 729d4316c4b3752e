"""What watch() takes, checked: each error names the argument and the right form."""

import os
from collections.abc import Iterable
from typing import Any

from leakprobe.errors import LeakprobeError
from leakprobe.model.media import ALL
from leakprobe.model.units import parse_rate


def checked_int(name: str, value: object, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise LeakprobeError(
            f"{name} must be a whole number from {low} to {high}, not {value!r:.60}", "bad_argument"
        )
    return value


def checked_path(name: str, path: Any) -> str | None:
    """The path as text, or None."""
    if path is None:
        return None
    try:
        return os.fsdecode(path)
    except TypeError:
        raise LeakprobeError(
            f"{name} must be the path of a file, not {type(path).__name__}", "bad_argument"
        ) from None


def checked_media(media: str | Iterable[str]) -> frozenset[str]:
    names = frozenset([media] if isinstance(media, str) else media)
    unknown = sorted(str(n) for n in names if n not in ALL and not str(n).startswith("cuda:"))
    if unknown or not names:
        what = f"unknown kind of memory {', '.join(unknown)}" if unknown else "no kind of memory given"
        raise LeakprobeError(f"media: {what}; the kinds are {', '.join(sorted(ALL))}", "bad_argument")
    return frozenset("cuda" if str(n).startswith("cuda:") else n for n in names)


def checked_limit(limit: object) -> float:
    if isinstance(limit, (int, float)) and not isinstance(limit, bool):
        if limit < 0:
            raise LeakprobeError(
                f'limit must not be negative, not {limit!r}; try "256 B/step"', "bad_argument"
            )
        return float(limit)
    return parse_rate(limit)
