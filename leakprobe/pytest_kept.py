"""What pytest and unittest keep of a test until it ends: more with each call of a body that is repeated.

It is not the test's growth: the records of a log are taken back between the calls, and a finding whose holder
is one of pytest's own containers becomes a note of kind "suppressed".
"""

import dataclasses
import fnmatch
import io
import logging
import unittest

import pytest
from _pytest.logging import LogCaptureHandler

from leakprobe.model.finding import Finding, PathRow

#: (type of the owner, its attribute) that pytest appends to.
ATTRIBUTES = (
    ("_pytest.logging.LogCaptureHandler", ".records"),
    ("_pytest.recwarn.Warnings*", "._list"),
    ("_pytest.monkeypatch.MonkeyPatch", "._setattr"),
    ("_pytest.monkeypatch.MonkeyPatch", "._setitem"),
    ("_pytest.*", ".user_properties"),
    ("_pytest.*", "._report_sections"),
    ("type", "._class_cleanups"),
)
#: The same, where what is in the attribute is appended to: a list in a dict, the pieces of a stream's text.
INNER = (
    ("_pytest.logging.LogCaptureHandler", ".stream"),
    ("_pytest.terminal.TerminalReporter", ".stats"),
)
#: The same, of a list in a tuple in a dict: finalizers of the test.
OF_TUPLES = (("_pytest.runner.SetupState", ".stack"),)
#: How a finding's evidence names, besides its holder, places that are pytest's: its holders, as told there.
ALSO_KEPT = "; also kept by "
PLACES = (
    ".records (list, * of logging",
    "reference * of StringIO (list, * of logging",
    "reference * of builtin_function_or_method (list, * of warnings",
    "__warningregistry__ (dict, *",
)


@dataclasses.dataclass(frozen=True)
class KeptByPytest:
    """Findings of what grows in a container of pytest's own, in no other.

    A finding counts if something else is known to keep it too, and if it is in what pytest keeps only because
    the test gave it: the value of a fixture, an argument of a record.
    ``case``: the type of the test's own unittest.TestCase, as paths name it; "" where it has none.
    """

    case: str = ""
    reason: str = "pytest keeps it until the test ends"

    def matches(self, finding: Finding) -> bool:
        path, holder = finding.path or [], finding.holder
        at = next((i for i, row in enumerate(path) if holder and row["text"] == holder["text"]), 0)
        others = finding.evidence.split(ALSO_KEPT)[1:]
        return (
            at > 0
            and (self._is_own(path, at) or is_of_warnings(path, at))
            and all(any(fnmatch.fnmatchcase(other, place) for place in PLACES) for other in others)
        )

    def _is_own(self, path: list[PathRow], at: int) -> bool:
        attributes = (
            (*ATTRIBUTES, (self.case, "._cleanups"), (self.case, "._class_cleanups"))
            if self.case
            else ATTRIBUTES
        )
        return (
            is_one_of(path, at, attributes)
            or is_one_of(path, at - 1, INNER)
            or is_one_of(path, at - 2, OF_TUPLES)
        )

    def __str__(self) -> str:
        return "of pytest's own containers"


def is_one_of(path: list[PathRow], at: int, attributes: tuple[tuple[str, str], ...]) -> bool:
    """True if the element ``at`` is one of these attributes, of such an owner."""
    if at < 1:
        return False
    owner, name = path[at - 1]["type"] or "", path[at]["text"].split(" ")[0]
    return any(name == attribute and fnmatch.fnmatchcase(owner, kind) for kind, attribute in attributes)


def is_of_warnings(path: list[PathRow], at: int) -> bool:
    """True for the list that warnings are recorded in, and for Python's table of those that were shown, which
    it empties when the filters change: pytest does that for each test.
    """
    texts = [row["text"].split(" ")[0] for row in path[: at + 1]]
    is_table = texts[at] == "__warningregistry__" and path[at]["edge"] == "global"
    return is_table or texts[:-1] == ["warnings", "_showwarnmsg_impl"]


def kept_by_pytest(item: pytest.Item) -> KeptByPytest:
    """The rule for one test."""
    cls = getattr(item, "cls", None)
    is_case = isinstance(cls, type) and issubclass(cls, unittest.TestCase)
    return KeptByPytest(f"{cls.__module__}.{cls.__qualname__}" if cls and is_case else "")


# ---- logs, between the calls of a body ----


class LogOfOneCall:
    """Takes back what pytest's handlers have kept of a call before the next one, which sees only its own.

    What the last call logged stays, for the test and for the report of a failure.
    """

    def __init__(self) -> None:
        self._marks: list[Mark] = []

    def begin(self) -> None:
        for mark in self._marks:
            mark.take_back()
        # The root logger has all of them: what other loggers have is the same handlers.
        handlers = logging.getLogger().handlers
        self._marks = [Mark(handler) for handler in handlers if isinstance(handler, LogCaptureHandler)]


class Mark:
    """How much a handler had kept when a call began."""

    def __init__(self, handler: LogCaptureHandler) -> None:
        self._handler, self._stream = handler, handler.stream
        self._records, self._length = len(handler.records), length_of(handler.stream)

    def take_back(self) -> None:
        handler, stream = self._handler, self._handler.stream
        # After caplog.clear() the stream is another, and all that is there came since.
        is_same = stream is self._stream
        handler.acquire()
        try:
            del handler.records[self._records if is_same else 0 :]
            if isinstance(stream, io.StringIO):
                stream.seek(self._length if is_same else 0)
                stream.truncate()
        finally:
            handler.release()


def length_of(stream: object) -> int:
    return stream.tell() if isinstance(stream, io.StringIO) else 0
