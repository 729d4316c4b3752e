"""Which line of the user's code runs while malloc's bytes or the open descriptors grow, measured over a few
steps.

Once native growth is sure, the lines of the user's own code are followed until AGREEING steps have
grown, and what malloc hands out (without Python's arenas, without tensor and array buffers) is read from line
to line; likewise the number of descriptors, once it rises and no objects are known that hold them.  A line is
named only if it alone gained most of the growth in every one of the steps that grew: that a line runs in each
step is no evidence.  From Python 3.12 on lines are followed by sys.monitoring; before, or where none
of its ids is free, by sys.settrace(), unless a debugger or a coverage tool has that.  What
is gained while the thread slept, or others took processor time, is taken for theirs, where there are
other threads of Python's.
"""

import _thread
import os
import resource
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType, MethodType
from typing import Any

from leakprobe import _core
from leakprobe.model.bounds import STACK_FRAMES, TRACED_EVENTS, TRACED_STEPS
from leakprobe.model.facts import IDLE_S
from leakprobe.model.frames import FrameTuple, is_user_file
from leakprobe.model.thresholds import AGREEING, PART, SLIGHT
from leakprobe.watch.line_monitor import LineMonitor

UNITS = {
    "native": "bytes",
    "fd": "descriptors",
    "pool": "bytes of pages",
    "shared": "segments",
    "shared bytes": "bytes",
}
#: Of what is counted: a line that gives back more than it takes can't have left any.
COUNTED = frozenset({"fd", "shared"})
#: Stands for other threads in the place of a line.
OTHERS = ("", 0, "other Python threads")
MOVED = "the steps went on in another thread"
REPLACED = "another trace function was set"


#: What sys.settrace() takes.
TraceFunction = Callable[[FrameType, str, Any], Any]
#: What a line, or OTHERS, gained of each thing that is measured.
Gained = tuple[int, ...]

#: What can be followed from line to line, and how it is read.
READERS: dict[str, Callable[[], int]] = {
    "native": _core.malloc_beyond_ledger,
    "fd": _core.open_descriptors,
    "pool": _core.thread_touched_bytes,
    "shared": _core.shared_memory_count,
    "shared bytes": _core.shared_memory_bytes,
}


class NativeLines:
    """Follows lines for a few steps of one watch."""

    def __init__(self) -> None:
        self._wanted: dict[str, float] = {}  # what grows => by so much a step
        self._is_on = False
        self._given_up: str | None = None
        self._read: Callable[[], Gained] = tuple  # what is measured now
        self._measured: tuple[str, ...] = ()  # the names of these numbers
        self._gained: dict[FrameTuple, Gained] = {}
        self._stacks: dict[FrameTuple, list[FrameTuple]] = {}
        self._steps: dict[str, list[dict[FrameTuple, int]]] = {name: [] for name in READERS}
        self._last = dict.fromkeys(READERS, 0)  # the step that was followed last
        self._here: FrameTuple | None = None
        self._before: Gained = ()
        self._events = 0
        self._pid, self._thread = os.getpid(), 0
        self._has_thread_begun = False
        self._monitor: LineMonitor | None = None
        self._others = (0, 0.0)  # how often this thread slept, processor time of the others

    def want(self, what: str, slope: float, since: int = 0) -> None:
        """Ask for the next steps to be followed for what grows, of READERS, by ``slope`` a step ``since`` a
        step: what was followed before is of other growth, which has been released.
        """
        self._wanted[what] = slope
        if self._last[what] < since:
            self._steps[what].clear()

    def begin(self) -> None:
        """At the end of a mark: follow the step that begins, if asked for."""
        if not self._wanted:
            return
        measured = tuple(name for name in READERS if name in self._wanted and not self._is_enough(name))
        if not measured or self._given_up:
            return
        self._release_monitor()
        self._monitor = LineMonitor.taken(self)
        if self._monitor is None and sys.gettrace() is not None:
            return
        self._measured, readers = measured, [READERS[name] for name in measured]
        self._read = lambda: tuple([read() for read in readers])
        self._gained = dict.fromkeys(self._gained, (0,) * len(measured))
        self._before = ()
        self._events, self._here, self._is_on, self._thread = 0, None, True, _thread.get_ident()
        caller = sys._getframe(1)
        self._here = self._key(nearest_user_frame(caller))
        if self._monitor is not None:
            self._monitor.begin(caller)
        else:
            self._begin_to_trace(caller)
        self._before, self._others = self._read(), others_now()
        if self._monitor is None:
            sys.settrace(self._on_call)

    def _begin_to_trace(self, frame: FrameType | None) -> None:
        while frame is not None:
            if is_user_file(frame.f_code.co_filename):
                frame.f_trace = self._on_event
            frame = frame.f_back
        if threading.gettrace() is None:
            threading.settrace(self._on_thread)

    def _is_enough(self, name: str) -> bool:
        """True if enough steps were followed: the first, and as many that grew as agree not by chance."""
        steps = self._steps[name]
        grown = growing_steps(self._undisturbed(name), self._wanted[name])
        return len(steps) >= TRACED_STEPS or len(steps[:1]) + len(grown) >= AGREEING

    def _undisturbed(self, name: str) -> list[dict[FrameTuple, int]]:
        """The steps after the first in which other threads gained next to nothing."""
        return [step for step in self._steps[name][1:] if not is_disturbed(step)]

    def end(self) -> None:
        """At the beginning of a mark, and when the watch ends."""
        if not self._is_on:
            self._release_monitor()
            return
        stopped = self._stop_tracing(sys._getframe(1)) if self._monitor is None else self._stop_monitor()
        self._given_up = self._given_up or stopped
        lines = self._gained.copy()  # at once: a thread that was followed may be charging its last line
        for i, name in enumerate(self._measured):
            self._steps[name].append({key: gained[i] for key, gained in lines.items()})
            self._last[name] = _core.step()

    def _release_monitor(self) -> None:
        """Give its tool id back, also where an exception of the program's cut a mark short."""
        if self._monitor is not None:
            self._monitor.end()
            self._monitor = None

    def _stop_monitor(self) -> str | None:
        """Why what was gained is not known, or None."""
        is_here = self._thread == _thread.get_ident()
        self._release_monitor()
        self._is_on = False
        if is_here:
            self._charge()
        return None if is_here else MOVED

    def _stop_tracing(self, frame: FrameType | None) -> str | None:
        """The same for sys.settrace(); ``frame``: that of the caller."""
        is_here = self._thread == _thread.get_ident()
        is_mine = self._is_mine(sys.gettrace())
        if is_here and is_mine:
            sys.settrace(None)
        self._is_on = False  # another thread takes the function off by itself
        if self._is_mine(threading.gettrace()):
            threading.settrace(None)
        if is_here and is_mine:
            self._charge()
        while frame is not None:
            if self._is_mine(frame.f_trace):
                frame.f_trace = None
            frame = frame.f_back
        return None if is_here and is_mine else REPLACED if is_here else MOVED

    # ---- what LineMonitor tells ----

    def follows_here(self) -> bool:
        """True on the thread that is followed; another one that runs the user's code is noted."""
        self._has_thread_begun = self._has_thread_begun or _thread.get_ident() != self._thread
        return self._follows_here()

    def line_begins(self, frame: FrameType) -> None:
        """The line that ran ends."""
        self._pass_to(frame)

    def call_ends(self, frame: FrameType) -> None:
        """The caller's line goes on."""
        self._pass_to(nearest_user_frame(frame.f_back))

    # ---- sys.settrace() ----

    def _is_mine(self, function: object) -> bool:
        """No comparison: that would run code of the program, whose functions they may be."""
        return type(function) is MethodType and function.__self__ is self

    def _follows_here(self) -> bool:
        return (
            self._is_on
            and not self._given_up
            and _thread.get_ident() == self._thread
            and os.getpid() == self._pid
        )

    def _take_off(self, frame: FrameType) -> None:
        """Stop to follow the thread that runs; what a debugger has set there since stays."""
        frame.f_trace = None
        if self._is_mine(sys.gettrace()):
            sys.settrace(None)

    def _on_thread(self, frame: FrameType, event: str, arg: object) -> None:
        """A thread began, and may be gone at the next event."""
        self._has_thread_begun = True
        self._take_off(frame)

    def _on_call(self, frame: FrameType, event: str, arg: object) -> TraceFunction | None:
        if not self._follows_here():
            self._take_off(frame)
            return None
        if not is_user_file(frame.f_code.co_filename):
            return None
        self._pass_to(frame)
        return self._on_event

    def _on_event(self, frame: FrameType, event: str, arg: object) -> TraceFunction | None:
        if not self._follows_here():
            self._take_off(frame)
            return None
        if event == "line":
            self._pass_to(frame)
        elif event == "return":
            self._pass_to(nearest_user_frame(frame.f_back))
        return self._on_event

    def _pass_to(self, frame: FrameType | None) -> None:
        """The line that ran ends, that of ``frame`` begins.  What a trace function raises would reach the
        program.
        """
        try:
            self._charge()
            self._here = self._key(frame)
        except Exception as error:
            self._given_up = f"leakprobe failed with {type(error).__name__}"

    def _charge(self) -> None:
        """Give what was gained since the last event to the line that ran."""
        now = self._read()
        here = OTHERS if self._have_others_run() else self._here
        if here is not None and self._before:
            so_far = self._gained.get(here, (0,) * len(now))
            self._gained[here] = tuple(
                [old + new - before for old, new, before in zip(so_far, now, self._before)]
            )
        self._before = now
        self._events += 1
        if self._events > TRACED_EVENTS:
            self._given_up = "too many lines ran"

    def _have_others_run(self) -> bool:
        """True if other threads of Python's may have run since the last event."""
        if _thread._count() == 0 and not self._has_thread_begun:
            return False
        slept, (before, busy_before) = others_now(), self._others
        self._others = slept
        return slept[0] > before or slept[1] > busy_before + IDLE_S

    def _key(self, frame: FrameType | None) -> FrameTuple | None:
        if frame is None:
            return None
        code = frame.f_code
        key = (code.co_filename, frame.f_lineno, code.co_name)
        if key not in self._stacks:
            self._stacks[key] = stack_from(frame)
        return key

    def verdict(self, slope: float, what: str = "native") -> tuple[list[FrameTuple], str]:
        """(stack of the line, sentence), or ([], sentence or "") where no line alone gained the growth."""
        followed, steps = self._steps[what], growing_steps(self._undisturbed(what), slope)
        if self._given_up:
            return [], f"line not known ({self._given_up} while lines were traced)"
        if len(steps) < AGREEING - 1:
            return [], self._why_too_few(what, len(steps)) if len(followed) == TRACED_STEPS else ""
        line = line_that_gained(steps, slope, is_counted=what in COUNTED)
        if line is None:
            return [], f"line not known (no single line gained it in the {len(steps)} traced steps that grew)"
        mean = sum(step[line] for step in steps) / len(steps)
        return self._stacks[line], (
            f"of this, {mean:,.0f} {UNITS[what]} came while this line ran in each of the {len(steps)} traced "
            "steps that grew"
        )

    def _why_too_few(self, what: str, grown: int) -> str:
        undisturbed = len(self._undisturbed(what))
        if undisturbed < AGREEING - 1:
            return "line not known (other Python threads ran while lines were traced)"
        return f"line not known (of {undisturbed} steps that were traced only {grown} grew)"


def growing_steps(steps: list[dict[FrameTuple, int]], slope: float) -> list[dict[FrameTuple, int]]:
    """Those in which something was gained: growth need not come with every step."""
    return [step for step in steps if sum(step.values()) >= SLIGHT * slope]


def line_that_gained(
    steps: list[dict[FrameTuple, int]], slope: float, *, is_counted: bool = False
) -> FrameTuple | None:
    """The line which alone gained most in each of the steps, and in all as much as is to be explained.

    A line that gave back may have left some of it, unless that ``is_counted``: where all but a few of the
    files of one line are closed in another, the first left them.
    """
    lines = {
        line
        for step in steps
        for line, gained in step.items()
        if (gained if is_counted else abs(gained)) >= SLIGHT * sum(step.values())
    }
    line = lines.pop() if len(lines) == 1 else None
    if line is None or any(step.get(line, 0) < (1 - PART) * sum(step.values()) for step in steps):
        return None
    return line if sum(step[line] for step in steps) >= (1 - PART) * slope * len(steps) else None


def is_disturbed(gained: dict[FrameTuple, int]) -> bool:
    """True if other threads may have gained a part of what one step did."""
    return abs(gained.get(OTHERS, 0)) > SLIGHT * abs(sum(gained.values()))


def others_now() -> tuple[int, float]:
    """How often this thread has slept, and the processor time of all others."""
    slept = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
    return slept, time.process_time() - time.thread_time()


def nearest_user_frame(frame: FrameType | None) -> FrameType | None:
    """The frame, or the nearest that called it, which is of the user's own code; or None."""
    while frame is not None and not is_user_file(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def stack_from(frame: FrameType | None) -> list[FrameTuple]:
    """(filename, lineno, function) of the frame and those that called it, innermost first."""
    frames: list[FrameTuple] = []
    while frame is not None and len(frames) < STACK_FRAMES:
        frames.append((frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name))
        frame = frame.f_back
    return frames
