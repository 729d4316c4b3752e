"""Sizes and rates, read and printed with the same words: "256 B/step", "64 KiB/step", "1 MB", "+6.0
MiB/step".
"""

import math
import re

from leakprobe.checks import number_of, shown
from leakprobe.errors import LeakprobeError

KIB, MIB = 1024, 1024**2
UNITS = {
    "B": 1,
    "KB": 1000,
    "MB": 1000**2,
    "GB": 1000**3,
    "TB": 1000**4,
    "KiB": KIB,
    "MiB": MIB,
    "GiB": 1024**3,
    "TiB": 1024**4,
}
PERCENT = 100
#: Decimals of what a report says: a count a step, a share such as a confidence, a time in seconds.
COUNT_DIGITS, SHARE_DIGITS, TIME_DIGITS = 2, 3, 3
_BY_LOWER = {name.lower(): factor for name, factor in UNITS.items()} | {"": 1, "byte": 1, "bytes": 1}
_SIZE = re.compile(r"\s*\+?(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")


def parse_size(text: object) -> float:
    """Bytes of "64 KiB", "1 MB", "300"; a number is bytes.  Errors: LeakprobeError "bad_size"."""
    number = number_of(text)
    if number is not None:
        return checked(number, text)
    match = _SIZE.fullmatch(text) if isinstance(text, str) else None
    factor = _BY_LOWER.get(match.group(2).lower()) if match else None
    if match is None or factor is None:
        raise LeakprobeError(
            f'{shown(text)} is not a size; write it as "300", "64 KiB" or "1 MB"', "bad_size"
        )
    return checked(float(match.group(1)) * factor, text)


def parse_limit(text: object) -> int:
    """Bytes of a memory limit as in parse_size(), 1 or more; 0 for None, that is no limit.

    Errors: LeakprobeError "bad_size".
    """
    if text is None:
        return 0
    size = parse_size(text)
    if size < 1:
        raise LeakprobeError(
            f'{shown(text)} leaves no memory at all; write a limit as "2 GiB", or None for no limit',
            "bad_size",
        )
    return min(int(size), 2**63)


def parse_share(text: object) -> float | None:
    """A memory limit: 0.9 for "90 %", bytes (more than 1) for a size, None for None.

    Errors: LeakprobeError "bad_size"; a share must be above 0 and at most 100 %.
    """
    if text is None:
        return None
    if isinstance(text, str) and text.rstrip().endswith("%"):
        try:
            share = float(text.rstrip()[:-1]) / 100
        except ValueError:
            share = 0.0
        if not 0 < share <= 1:
            raise LeakprobeError(
                f'{text!r:.60} is not a share of memory; write it as "90 %", above 0 and up to 100',
                "bad_size",
            )
        return share
    size = parse_size(text)
    if size <= 100:  # a share whose sign was left out
        raise LeakprobeError(
            f'{shown(text)} is not a memory limit; write it as "90 %" or "8 GiB"', "bad_size"
        )
    return size


def checked(size: float, given: object) -> float:
    if not math.isfinite(size) or size < 0:
        raise LeakprobeError(
            f"a size must be a finite number of bytes, 0 or more, not {shown(given)}", "bad_size"
        )
    return size


def parse_rate(text: object) -> float:
    """Bytes a step of "256 B/step"; "/step" may be left out.  Errors: LeakprobeError "bad_argument"."""
    if isinstance(text, str):
        head, slash, tail = text.partition("/")
        if not slash or tail.strip().lower() == "step":
            try:
                return parse_size(head)
            except LeakprobeError:
                pass
    elif number_of(text) is not None:
        return parse_size(text)
    raise LeakprobeError(
        f'{shown(text)} is not a rate; write it as "256 B/step" or "64 KiB/step"', "bad_argument"
    )


def format_size(size: float) -> str:
    """ "0 B", "999 B", "1.5 KiB", "360 MiB": three digits at most."""
    sign, size = ("-" if size < 0 else ""), abs(size)
    for unit in ("B", "KiB", "MiB", "GiB"):  # noqa: B007  # used after the loop
        if size < 999.5:
            break
        size /= 1024
    else:
        unit = "TiB"
    digits = 0 if unit == "B" or size >= 99.95 else 1
    return f"{sign}{size:.{digits}f} {unit}"


def format_rate(rate: float) -> str:
    """ "+6.0 MiB/step"."""
    return f"{'+' if rate >= 0 else ''}{format_size(rate)}/step"


def counted(count: int, word: str) -> str:
    """ "1 step", "1,200 steps"."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def span_text(first: float, last: float) -> str:
    """ "step 7", or "steps 7 to 9"."""
    return f"step {first:,.0f}" if first == last else f"steps {first:,.0f} to {last:,.0f}"
