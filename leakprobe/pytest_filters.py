"""Which findings count for a test: those that its ``filter`` lets through, and those of its own thread.

What does not count becomes a note of kind "suppressed", as with a rule.
"""

import dataclasses
import sys
import threading
import types
from collections.abc import Callable, Sequence

from leakprobe.errors import LeakprobeError
from leakprobe.model.finding import Finding
from leakprobe.model.frames import Frame

#: Frames kept of a stack where its thread matters: the most that watch() takes, to see its beginning.
WHOLE_STACK = 64
#: The function that a stack of threading's threads begins with; before Python 3.11 names are not qualified.
BEGINNINGS = ("Thread._bootstrap", "_bootstrap")


@dataclasses.dataclass(frozen=True)
class NotWanted:
    """Findings that the test's own function refuses: it is called with each, true if it counts."""

    function: Callable[[Finding], object]
    reason: str = ""

    def matches(self, finding: Finding) -> bool:
        return not self.function(finding)

    def __str__(self) -> str:
        return f"filter={getattr(self.function, '__name__', type(self.function).__name__)}"


@dataclasses.dataclass(frozen=True)
class OtherThread:
    """Findings whose stack begins in another thread than ``own``, the outermost frames of the test's.

    A stack whose beginning is not known counts: growth is never hidden for lack of a frame.  Threads that C
    or _thread began have no beginning that is known.
    """

    own: tuple[tuple[str, str], ...]
    reason: str = "allocated by another thread"

    def matches(self, finding: Finding) -> bool:
        stack = [key_of(frame) for frame in reversed(finding.allocation_stack)]
        return begins_a_thread(stack) and tuple(stack[: len(self.own)]) != self.own

    def __str__(self) -> str:
        return "current_thread_only"


def key_of(frame: Frame) -> tuple[str, str]:
    return frame.filename, frame.function


def begins_a_thread(stack: Sequence[tuple[str, str]]) -> bool:
    return bool(stack) and stack[0][0] == threading.__file__ and stack[0][1] in BEGINNINGS


def own_beginning() -> tuple[tuple[str, str], ...]:
    """(file, function) of this thread's outermost frames, to the first that is not threading's own."""
    keys: list[tuple[str, str]] = []
    frame: types.FrameType | None = sys._getframe()
    while frame is not None:
        code = frame.f_code
        keys.append((code.co_filename, getattr(code, "co_qualname", code.co_name)))
        frame = frame.f_back
    keys.reverse()
    first = next((i for i, key in enumerate(keys) if key[0] != threading.__file__), len(keys) - 1)
    return tuple(keys[: first + 1])


def checked_filter(function: object) -> Callable[[Finding], object]:
    """Errors: LeakprobeError "bad_argument"."""
    if not callable(function):
        raise LeakprobeError(
            f"filter must be a function of a finding that says whether it counts, not {function!r:.60}",
            "bad_argument",
        )
    return function


def checked_flag(name: str, value: object) -> bool:
    """Errors: LeakprobeError "bad_argument"."""
    if not isinstance(value, bool):
        raise LeakprobeError(f"{name} must be True or False, not {value!r:.60}", "bad_argument")
    return value
