"""The recordings that this process writes: no fork comes in the middle of a commit, a child forgets them, and
the end of the program closes them.
"""

import atexit
import os
import threading
from typing import Protocol


class Writer(Protocol):
    """A Recorder, as far as it is needed here."""

    def hold(self) -> None: ...
    def release(self) -> None: ...
    def after_fork_in_child(self) -> None: ...
    def close(self, *, ended: str) -> None: ...


_writers: list[Writer] = []
#: Thread that forks => those that it holds: another one that forks waits for it before it holds any.
_held: dict[int, list[Writer]] = {}
_is_hooked: list[bool] = []


def add(writer: Writer) -> None:
    _writers.append(writer)
    if not _is_hooked and hasattr(os, "register_at_fork"):
        _is_hooked.append(True)
        atexit.register(_close_all)
        os.register_at_fork(
            before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child
        )


def remove(writer: Writer) -> None:
    _writers.remove(writer)


def _close_all() -> None:
    """The program ends without leaving its watch: what waits is written."""
    for writer in list(_writers):
        writer.close(ended="exited")


def _before_fork() -> None:
    held = list(_writers)
    for writer in held:
        writer.hold()
    _held[threading.get_ident()] = held


def _after_fork_in_parent() -> None:
    for writer in _held.pop(threading.get_ident(), ()):
        writer.release()


def _after_fork_in_child() -> None:
    for writer in _held.pop(threading.get_ident(), ()):
        writer.after_fork_in_child()
    _held.clear()
    _writers.clear()
