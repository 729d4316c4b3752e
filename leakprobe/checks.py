"""What the public functions take, checked: each error names the argument and says what it must be."""

import math
import os
from typing import Any

from leakprobe.errors import LeakprobeError


def shown(value: object) -> str:
    """The value as an error shows it, cut short."""
    try:
        return f"{value!r:.60}"
    except Exception:  # a number of thousands of digits, or a __repr__() that fails
        return f"<{type(value).__name__}>"


def number_of(value: object) -> float | None:
    """The number as a float, infinite where it is too large for one; None for what is none, as a bool."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def checked_path(name: str, value: Any) -> str:
    """The path as text.  Errors: LeakprobeError "bad_argument" for what is none, as the number of a file."""
    try:
        return os.fsdecode(value)
    except TypeError:
        raise LeakprobeError(
            f"{name} must be the path of a file, not {type(value).__name__}", "bad_argument"
        ) from None


def checked_int(name: str, value: Any, low: int, high: int | None = None) -> int:
    """Errors: LeakprobeError "bad_argument" for anything but a whole number in the range."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if not (is_number and low <= value and (high is None or value <= high)):
        form = f"from {low} on" if high is None else f"from {low} to {high}"
        raise LeakprobeError(f"{name} must be a whole number {form}, not {shown(value)}", "bad_argument")
    return int(value)
