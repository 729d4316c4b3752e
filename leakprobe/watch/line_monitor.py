"""Events of lines by sys.monitoring, for a few steps: from Python 3.12 on, beside debuggers and coverage.

A tool id that no tool is expected at is taken for as long as lines are followed.  Calls are seen
everywhere, lines and returns only in the user's own code.  No event is ever disabled: to enable it again
would restart those of all tools.  What the callbacks do is seen by no tool, sys.settrace()'s included.
"""

import os
import sys
from types import CodeType, FrameType
from typing import Any, Protocol

from leakprobe.model.facts import TOOL_IDS
from leakprobe.model.frames import is_user_file


class Listener(Protocol):
    """What hears of lines; nothing that it does reaches the program."""

    def follows_here(self) -> bool:
        """True on the thread that is followed."""

    def line_begins(self, frame: FrameType) -> None:
        """A line of the user's own code."""

    def call_ends(self, frame: FrameType) -> None:
        """A call of the user's own code returned, yielded or raised."""


class LineMonitor:
    """One period in which lines are followed."""

    def __init__(self, monitoring: Any, tool: int, listener: Listener) -> None:
        self._monitoring, self._tool, self._listener = monitoring, tool, listener
        self._codes: dict[int, CodeType] = {}  # whose lines are followed, by id: codes compare by value
        self._pid = os.getpid()
        events = monitoring.events
        self._local = events.LINE | events.PY_RETURN | events.PY_YIELD
        self._callbacks = {
            events.PY_START: self._on_start,
            events.PY_RESUME: self._on_start,
            events.PY_THROW: self._on_throw,
            events.LINE: self._on_line,
            events.PY_RETURN: self._on_end,
            events.PY_YIELD: self._on_end,
            events.PY_UNWIND: self._on_end,
        }

    @classmethod
    def taken(cls, listener: Listener) -> "LineMonitor | None":
        """One with a tool id of its own; None where this Python has no sys.monitoring, or no id is free."""
        monitoring: Any = getattr(sys, "monitoring", None)
        for tool in TOOL_IDS if monitoring is not None else ():
            try:
                monitoring.use_tool_id(tool, "leakprobe")
            except ValueError:
                continue
            return cls(monitoring, tool, listener)
        return None

    def begin(self, frame: FrameType | None) -> None:
        """Follow what runs from now on, and the calls that ``frame`` is in."""
        for event, callback in self._callbacks.items():
            self._monitoring.register_callback(self._tool, event, callback)
        while frame is not None:
            if is_user_file(frame.f_code.co_filename):
                self._follow(frame.f_code)
            frame = frame.f_back
        events = self._monitoring.events
        calls = events.PY_START | events.PY_RESUME | events.PY_THROW | events.PY_UNWIND
        self._monitoring.set_events(self._tool, calls)

    def end(self) -> None:
        """Give the tool id back, on any thread; once is enough."""
        if self._monitoring.get_tool(self._tool) != "leakprobe" or not self._callbacks:
            return
        self._monitoring.set_events(self._tool, 0)
        for code in list(self._codes.values()):
            self._monitoring.set_local_events(self._tool, code, 0)
        for event in self._callbacks:
            self._monitoring.register_callback(self._tool, event, None)
        self._callbacks, self._codes = {}, {}
        self._monitoring.free_tool_id(self._tool)

    def _follow(self, code: CodeType) -> None:
        if id(code) not in self._codes:
            self._codes[id(code)] = code
            self._monitoring.set_local_events(self._tool, code, self._local)

    def _is_heard(self, code: CodeType) -> bool:
        """True for the user's code on the thread that is followed; a forked child gives the id back."""
        if os.getpid() != self._pid:
            self.end()
            return False
        return is_user_file(code.co_filename) and self._listener.follows_here()

    def _on_start(self, code: CodeType, offset: int) -> None:
        if self._is_heard(code):
            self._follow(code)
            self._listener.line_begins(sys._getframe(1))

    def _on_throw(self, code: CodeType, offset: int, error: BaseException) -> None:
        if self._is_heard(code):
            self._follow(code)
            self._listener.line_begins(sys._getframe(1))

    def _on_line(self, code: CodeType, line: int) -> None:
        if self._is_heard(code):
            self._listener.line_begins(sys._getframe(1))

    def _on_end(self, code: CodeType, offset: int, value: object) -> None:
        if self._is_heard(code):
            self._listener.call_ends(sys._getframe(1))
