"""What the public functions take, checked: each error names the argument and says what it must be."""

import math
import numbers
import operator
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
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return None
    number: Any = value  # what compares with 0, which the type does not say
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def checked_path(name: str, value: Any) -> str:
    """The path as text.  Errors: LeakprobeError "bad_argument" for what is none, as the number of a file."""
    try:
        return os.fsdecode(value)
    except TypeError:
        raise LeakprobeError(
            f"{name} must be the path of a file, not {type(value).__name__}", "bad_argument"
        ) from None


def checked_bool(name: str, value: Any) -> bool:
    """Errors: LeakprobeError "bad_argument" for anything but True and False."""
    if not isinstance(value, bool):
        raise LeakprobeError(f"{name} must be True or False, not {shown(value)}", "bad_argument")
    return value


def checked_int(name: str, value: Any, low: int, high: int | None = None) -> int:
    """Errors: LeakprobeError "bad_argument" for anything but a whole number in the range."""
    number = whole_of(value)
    if number is None or not (low <= number and (high is None or number <= high)):
        form = f"from {low} on" if high is None else f"from {low} to {high}"
        raise LeakprobeError(f"{name} must be a whole number {form}, not {shown(value)}", "bad_argument")
    return number


def whole_of(value: Any) -> int | None:
    """The whole number, one of numpy's too; None for what is none, as a bool."""
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None
