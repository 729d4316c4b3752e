"""Recordings: written as a loop goes, read while it does and after."""

from typing import TYPE_CHECKING

from leakprobe.errors import LeakprobeError

if TYPE_CHECKING:
    from leakprobe.record.writer import Recorder


def recorder_class() -> "type[Recorder]":
    """Errors: LeakprobeError "not_available" in a Python without sqlite3."""
    try:
        from leakprobe.record.writer import Recorder
    except ImportError as error:
        raise LeakprobeError(
            f"recordings are not available in this Python: {error}", "not_available"
        ) from error
    return Recorder
