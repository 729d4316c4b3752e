"""The exceptions of leakprobe: one base, and with it the built-in one that a caller may expect."""

from typing import Any


class LeakprobeError(Exception):
    """Something leakprobe was asked for can't be done; the text says what was wrong and what to do.

    ``code`` is a short stable name of the error, for programs ("already_active", "bad_argument", ...).
    By it an error is made as one of the subclasses, as OSError does by errno.
    """

    code: str

    def __new__(cls, message: str = "", code: str = "error") -> "LeakprobeError":
        kind = KINDS.get(code, cls) if cls is LeakprobeError else cls
        made: LeakprobeError = super(LeakprobeError, kind).__new__(kind, message)
        return made

    def __init__(self, message: str = "", code: str = "error") -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.code)


class LeakprobeValueError(LeakprobeError, ValueError):
    """An argument, an option or the content of a file is not what it must be."""


class LeakprobeRuntimeError(LeakprobeError, RuntimeError):
    """It can't be done in this state or with this Python: a watch is active, a package is missing."""


class LeakprobeOSError(LeakprobeError, OSError):
    """A file or process can't be read or written."""


#: code => what an error with it is made as.
KINDS: dict[str, type[LeakprobeError]] = {
    **dict.fromkeys(
        (
            "bad_argument",
            "bad_graph",
            "bad_input",
            "bad_size",
            "bad_suppression",
            "dead_object",
            "no_finding",
            "no_graph",
            "only_this_call",
            "shared_object",
            "wrong_schema",
        ),
        LeakprobeValueError,
    ),
    **dict.fromkeys(
        (
            "already_active",
            "attach_failed",
            "collecting",
            "disabled",
            "free_threaded",
            "gc_running",
            "graph_limit",
            "internal",
            "missing_package",
            "no_code_watcher",
            "no_memory",
            "no_preload",
            "no_scan",
            "not_active",
            "not_available",
            "scan_too_long",
            "subinterpreter",
            "unsupported_python",
            "used_probe",
        ),
        LeakprobeRuntimeError,
    ),
    **dict.fromkeys(
        (
            "foreign_file",
            "no_process",
            "no_script",
            "not_permitted",
            "recording_in_use",
            "unreadable_file",
            "unwritable_file",
        ),
        LeakprobeOSError,
    ),
}
