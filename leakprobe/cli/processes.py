"""Processes that a program starts with multiprocessing, for ranks of its own say, under a watch each.

What a process shall call is replaced by an object that watches and calls it.  That works with each start
method, and each process records into a file of its own, which this one reads when the program has ended.
DataLoader workers, pools and managers, whose targets are libraries', are left alone, and so are classes that
define run().
"""

import contextlib
import functools
import inspect
import itertools
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from typing import Any

from leakprobe import launchers
from leakprobe.cli import say_error
from leakprobe.cli.own_watches import OwnWatches
from leakprobe.errors import LeakprobeError
from leakprobe.files import file_stamp
from leakprobe.integrations.session import Session, called_under
from leakprobe.judge.reports import merge
from leakprobe.model.bounds import MOST_PROCESSES
from leakprobe.model.finding import Note
from leakprobe.model.frames import is_user_file
from leakprobe.model.parts import named_by_part
from leakprobe.model.report import Report
from leakprobe.record.reader import Recording, load
from leakprobe.torch.patches import Patches

#: What torch.multiprocessing.spawn() starts; the function that it calls is the program's.
SPAWNED = ("torch.multiprocessing.spawn", "_wrap")

#: Of a program in which only the processes that it started made steps.
UNJUDGED = (
    "the process that started the others made no step itself and is not judged: a loop of its own is watched "
    "by leakprobe.watch() and probe.step() in the script"
)


class WatchedTarget:
    """What a process calls in place of ``target``, pickled with it where it is spawned."""

    def __init__(self, target: Callable[..., Any], options: dict[str, Any]) -> None:
        self._target, self._options = target, options

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            session = Session(show=False, **self._options)
            probe = session.begin()
        except Exception as error:  # the program goes on
            say_error(f"process {os.getpid()} is not watched: {error}")
            return self._target(*args, **kwargs)
        with OwnWatches(probe):
            return called_under(session, self._target, *args, **kwargs)


class Processes(Patches):
    """install() before the program runs, remove() after it; then report_with()."""

    modules = ("multiprocessing.process",)
    awaited = "multiprocessing.process"  # only what is started may import torch

    def __init__(self, record: str | None, options: dict[str, Any]) -> None:
        """``record``: the program's own recording, beside which theirs are kept; ``options``: of watch()."""
        super().__init__()
        self._record, self._options = record, options
        self._pid = os.getpid()
        self._folder: str | None = None
        self._paths: dict[str, object] = {}  # => what lay there before, of an earlier run
        self._numbers = itertools.count(1)  # of those that are watched
        self._others = 0  # processes that are not

    def _hook(self) -> None:
        process = sys.modules["multiprocessing.process"].BaseProcess
        original = process.__dict__["start"]

        def start(one: Any) -> None:
            target = one.__dict__.get("_target")
            is_known = type(one).run is process.run and is_of_program(target)
            path = self._next_path() if is_known and os.getpid() == self._pid else None
            if path is None:
                self._others += 1
                original(one)
                return
            one._target = WatchedTarget(target, self._options | {"record": path})
            try:
                original(one)
            except BaseException:
                one._target = target
                raise

        self.replace(process, "start", start)

    def _next_path(self) -> str | None:
        """Where the next process records; None where it can't, or is one too many."""
        number = next(self._numbers)
        if number > MOST_PROCESSES:
            return None
        if self._record is not None:
            path = named_by_part(self._record, f"process-{number}")
        else:
            try:
                self._folder = self._folder or tempfile.mkdtemp(prefix="leakprobe-")
            except OSError:
                return None
            path = os.path.join(self._folder, f"process-{number}.leak")
        self._paths[path] = state_of(path)
        return path

    def report_with(self, own: Report) -> Report:
        """The program's own report, and those of its processes in which steps came, as one."""
        found = [one for one in self._recordings() if one.report.as_of_step > 0]
        if not found:
            if own.as_of_step == 0 and self._others:
                own.notes.append(Note(kind="gap", text=unwatched(self._others), medium=None))
            own.notes += notes_of_ranks()
            return own
        if own.as_of_step > 0:
            found.insert(0, Recording("the program", {}, "ended", own))
        report = found[0].report if len(found) == 1 else merge(found)
        if own.as_of_step == 0:
            report.notes.append(Note(kind="gap", text=UNJUDGED, medium=None))
        return report

    def _recordings(self) -> list[Recording]:
        """Those that can be read and are of this run: a process may have ended before its first mark."""
        found = []
        for path, before in self._paths.items():
            if before is not None and state_of(path) == before:
                continue
            with contextlib.suppress(LeakprobeError, OSError):
                found.append(load(path))
        return found

    def close(self) -> None:
        """Remove what was only kept for the report; a fork of the program leaves it."""
        if self._folder is not None and os.getpid() == self._pid:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None


def state_of(path: str) -> object:
    """The stamp of a file, None where there is none."""
    try:
        return file_stamp(os.stat(path))
    except OSError:
        return None


def unwatched(count: int) -> str:
    """Of a program that may do its work in them."""
    were = "1 process was" if count == 1 else f"{count} processes were"
    return (
        f"{were} started by the program and not watched: those of pools, of classes that define run(), and "
        f"all after the first {MOST_PROCESSES}; use leakprobe.watch() in what they run"
    )


def notes_of_ranks() -> list[Note]:
    """Of a program that is one rank of several, where no launcher began leakprobe in each of them: a trainer
    starts the others as commands of its own.
    """
    place = launchers.place()
    if launchers.from_variables() is not None or place is None or place.world_size <= 1:
        return []
    text = (
        f"this report is of rank {place.rank} of {place.world_size} only, the others were not watched: begin "
        f"all of them under leakprobe, `torchrun --nproc-per-node {place.world_size} -m leakprobe run SCRIPT`"
    )
    return [Note(kind="gap", text=text, medium=None)]


def is_of_program(target: Any) -> bool:
    """True for what the program defines, and for what torch starts for it."""
    while isinstance(target, functools.partial):
        target = target.func
    function = target if inspect.isroutine(target) else type(target).__call__
    code = getattr(function, "__code__", None)
    if code is None:
        return False
    return is_user_file(code.co_filename) or (function.__module__, function.__qualname__) == SPAWNED
