"""The callbacks of the program, ``on_growth`` and ``on_cycle``: chosen in a mark, called when it is done."""

import inspect
import logging
from collections.abc import Callable
from typing import Any

from leakprobe.checks import shown
from leakprobe.errors import LeakprobeError
from leakprobe.model.finding import Note
from leakprobe.model.report import Report

Callback = Callable[[Report], object]

_logger = logging.getLogger("leakprobe")


class Callbacks:
    """Each is called once.  What they raise becomes a note, and a warning of the logger.

    Errors: LeakprobeError "bad_argument" for what can't be called, and for a coroutine or generator function,
    of which a call runs nothing.
    """

    def __init__(self, on_growth: Callback | None, on_cycle: Callback | None) -> None:
        for name, callback in (("on_growth", on_growth), ("on_cycle", on_cycle)):
            if callback is not None and not callable(callback):
                raise LeakprobeError(
                    f"{name} must be a function of a report, or None, not {shown(callback)}", "bad_argument"
                )
            if runs_later(callback):
                raise LeakprobeError(
                    f"{name} must be a plain function, since it is called and not awaited or iterated, "
                    f"not {shown(callback)}",
                    "bad_argument",
                )
        self._on_growth, self._on_cycle = on_growth, on_cycle
        self._chosen: list[tuple[str, Callback, Report]] = []  # they wait until the mark is done
        self.notes: list[Note] = []

    def forget(self) -> None:
        """No more is chosen; what was chosen is called yet."""
        self._on_growth = self._on_cycle = None

    def are_due(self) -> bool:
        return bool(self._chosen)

    def choose(self, whole_report: Callable[[], Report], at_once: bool = False) -> None:
        """Which of on_growth and on_cycle, once each, have something to hear; on_growth ``at_once`` in any
        case.
        """
        if self._on_growth is None and self._on_cycle is None:
            return
        report = whole_report()
        if self._on_growth is not None and (at_once or report.verdict == "growing"):
            self._chosen.append(("on_growth", self._on_growth, report))
            self._on_growth = None
        kinds = {finding.kind for finding in report.findings} | {note.kind for note in report.notes}
        if self._on_cycle is not None and "reference_cycle" in kinds:
            self._chosen.append(("on_cycle", self._on_cycle, report))
            self._on_cycle = None

    def call(self, step: int) -> None:
        """Call what was chosen.  An Exception ends nothing but the callback."""
        while True:
            try:
                name, callback, report = self._chosen.pop(0)
            except IndexError:
                return
            try:
                callback(report)
            except Exception as error:
                text = (
                    f"{name} raised {type(error).__name__} after step {step}: it will not be called again;"
                    " the traceback is in the log"
                )
                self.notes.append(Note(kind="callback", text=text, medium=None))
                _logger.warning("%s raised an exception; the loop goes on", name, exc_info=True)


def runs_later(callback: Any) -> bool:
    """True for a coroutine or generator function, and for an object whose ``__call__`` is one."""
    return any(
        asks(function)
        for function in (callback, type(callback).__call__)
        for asks in (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
    )
