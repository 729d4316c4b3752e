"""The watch inside one DataLoader worker: a batch built is a step, what grows is posted on the board.

A worker shares the memory of its parent until one of them writes.  So nothing walks the heap until cheap
counts say that something grows; then a look is taken, and the pages that it un-shared are told apart.
"""

import contextlib
import dataclasses
import gc
import os
import resource
import sys
import weakref
from collections.abc import Callable
from typing import Any

from leakprobe import _core
from leakprobe.errors import LeakprobeError
from leakprobe.judge.looks import Look
from leakprobe.model.bounds import WORKER_FINDINGS
from leakprobe.model.facts import FIRST_AT_EXIT
from leakprobe.model.frames import PACKAGE_DIR
from leakprobe.model.media import HOOKED_IN_WORKERS
from leakprobe.model.report import Report
from leakprobe.model.worker import WorkerReport
from leakprobe.torch.board import FAILED, STOPPED, WATCHING, Board, Collection, Posting
from leakprobe.torch.datasets import type_name
from leakprobe.torch.fetchers import fetchers
from leakprobe.watch import conclusions
from leakprobe.watch.engine import Engine, Settings
from leakprobe.watch.schedule import WALK_OF_WORKER, Moment
from leakprobe.watch.worker_records import WorkerRecord

#: What a watch takes one by one and gives back in reverse, see Probe.RESOURCES.
Pairs = tuple[tuple[str, str | Callable[[], object]], ...]

_watch: "WorkerWatch | None" = None


class WorkerInit:
    """What a loader under watch calls in each new worker: the user's own function, then the probe's
    beginning.

    It is pickled where workers are spawned; ``settings`` are plain values.
    """

    def __init__(self, user_function: Callable[[int], object] | None, settings: dict[str, Any]):
        self.user_function, self.settings = user_function, settings

    def __call__(self, worker_id: int) -> None:
        if self.user_function is not None:
            self.user_function(worker_id)
        begin(worker_id, self.settings)


def begin(worker_id: int, settings: dict[str, Any]) -> None:
    """Watch this process.  A failure is posted; it never reaches the worker's own code."""
    global _watch
    board = None
    try:
        board = Board.open_at(settings["path"], settings["workers"])
        _watch = WorkerWatch(board, worker_id, settings)
        _watch.__enter__()
    except Exception as error:
        if board is None:
            return
        with contextlib.suppress(Exception):  # a number beyond those that the loader spoke of has no slot
            board.post_report(worker_id, WorkerReport(error=f"{type(error).__name__}: {error}"))
            board.post_counts(worker_id, Posting(FAILED, os.getpid(), 0, 0, 0))


class WorkerWatch(_core.Watch):
    """The watch of one worker: it lasts as long as the worker, or until the parent stops it."""

    RESOURCES: Pairs = (
        ("_install_hooks", _core.stop),
        ("_begin_readings", "_end_readings"),
        ("_follow_collections", "_leave_collections"),
        ("_install_slots", _core.native_uninstall),
        ("_begin_recording", "_end_recording"),
        ("_wrap_fetchers", "_unwrap_fetchers"),
        ("_await_end", "_forget_end"),
    )

    def __init__(self, board: Board, slot: int, settings: dict[str, Any]):
        self._board, self._slot, self._settings = board, slot, settings
        self._depth = 0
        self._batches, self._step = 0, 0
        self._is_stream = False
        self._dataset: Callable[[], object | None] = object  # of one that is not known nothing has gone
        self._record: WorkerRecord | None = None
        self._told = WorkerReport()  # what is posted
        self._told_of: Look | None = None  # the look that its findings are of
        #: Classes of torch, their fetch(), and what stands in for it.
        self._originals: list[tuple[Any, Callable[..., object], Callable[..., object]]] = []
        self._engine: Engine | None = None
        self._heap_bytes = 0
        self._own_bytes = self._private = 0  # pages that walks have un-shared, and all of them
        self._at_exit: Any = None  # multiprocessing's Finalize
        self._began: int | None = None  # page faults when the collection that runs began
        self._most: Collection | None = None

    # ---- entering and leaving: see the base class ----

    def _prepare(self) -> Pairs:
        return self.RESOURCES

    def _install_hooks(self) -> None:
        self._heap_bytes = _core.python_bytes()
        _core.start(self._settings["stack_depth"], PACKAGE_DIR)

    def _begin_readings(self) -> None:
        _core.keep_walks(0)
        settings = self._settings
        self._engine = Engine(
            Settings(
                settings["warmup"],
                frozenset(settings["media"]),
                settings["limit"],
                WALK_OF_WORKER,
                is_worker=True,
                in_flight=settings["in_flight"],
            ),
            self._heap_bytes,
        )

    def _end_readings(self) -> None:
        if self._engine is not None:
            self._post(STOPPED)
            self._engine = None

    def _follow_collections(self) -> None:
        faults = page_faults()
        self._most = Collection(faults, faults, 0, 0)
        gc.callbacks.append(self._on_collection)

    def _leave_collections(self) -> None:
        with contextlib.suppress(ValueError):  # the program has cleared the list
            gc.callbacks.remove(self._on_collection)
        self._end_collection()

    def _on_collection(self, phase: str, info: dict[str, int]) -> None:
        """What a collection of old objects copies is known here only: who reads from outside comes when it
        may.
        """
        if phase == "stop":
            self._end_collection()
        elif info["generation"]:
            self._began = page_faults()
            self._board.begin_collection(self._slot, self._began)

    def _end_collection(self) -> None:
        if self._began is None or self._most is None:
            return
        copied = page_faults() - self._began
        if copied > self._most.copied:
            self._most = Collection(self._most.first_faults, self._began, self._batches, copied)
        self._board.end_collection(self._slot, self._most)
        self._began = None

    def _install_slots(self) -> None:
        _core.native_install(sorted(HOOKED_IN_WORKERS.intersection(self._settings["media"])))

    def _begin_recording(self) -> None:
        if self._settings.get("record") is None:
            return
        try:
            self._record = WorkerRecord(self._settings, self._slot)
        except LeakprobeError as error:
            self._tell(not_recorded=str(error))

    def _end_recording(self) -> None:
        if self._record is not None:
            self._record.close()

    def _wrap_fetchers(self) -> None:
        self._post(WATCHING)
        for cls in fetchers():
            if "fetch" in cls.__dict__:
                self._wrap(cls)

    def _unwrap_fetchers(self) -> None:
        for cls, original, wrapper in self._originals:
            if cls.__dict__.get("fetch") is wrapper:
                cls.fetch = original
        self._originals.clear()

    def _await_end(self) -> None:
        """Be called when the loader is done with this worker, most often while its dataset is alive: a
        worker that was not forked has the only one, and gives it up before from Python 3.14 on.
        """
        util = sys.modules["multiprocessing.util"]  # a worker has it; a watch is not to import it
        self._at_exit = util.Finalize(None, self._look_at_the_end, exitpriority=FIRST_AT_EXIT)

    def _forget_end(self) -> None:
        if self._at_exit is not None:
            self._at_exit.cancel()
            self._at_exit = None

    def _look_at_the_end(self) -> None:
        """The last batch too: what was given up with it is no finding."""
        if self._engine is not None and self._batches and not self._board.is_stopped():
            self._in_turn(self._look_now, self._engine)

    def _look_now(self, engine: Engine) -> None:
        # what a stream's frame or a dataset kept went with it: that was no end of growth
        is_gone = self._is_stream or self._dataset() is None

        def visit(step: int) -> bool:
            return engine.look_at_the_end(step) if is_gone else engine.visit(step, Moment.END)

        try:
            engine.let_go()
            self._take_step(engine, visit)
            self._post(WATCHING)
        except Exception as error:
            self._failed(error)

    def _last_look(self, kind: type[BaseException] | None) -> None:
        """What grew was looked at with the batches."""

    def _let_go(self) -> None:
        if self._engine is not None:
            self._engine.let_go()

    def _failed(self, error: Exception) -> None:
        with contextlib.suppress(Exception):
            self._tell(error=f"{type(error).__name__}: {error}")

    def _tell(self, **news: Any) -> None:
        """Post some of a report anew: a slot has one, and the rest of it stays true."""
        self._told = dataclasses.replace(self._told, **news)
        self._board.post_report(self._slot, self._told)

    # ---- marking ----

    def _wrap(self, cls: Any) -> None:
        original = cls.fetch

        def fetch(fetcher: object, *args: object) -> object:
            if self._depth:
                return original(fetcher, *args)  # a loader inside the dataset
            self._depth = 1
            self._note_fetcher(fetcher)
            try:
                self._step_if_on()
                return original(fetcher, *args)
            finally:
                self._depth = 0

        self._originals.append((cls, original, fetch))
        cls.fetch = fetch

    def _note_fetcher(self, fetcher: object) -> None:
        self._is_stream |= hasattr(fetcher, "dataset_iter")
        if self._engine is not None and self._engine.holders.dataset is None:
            dataset = getattr(fetcher, "dataset", None)
            self._engine.holders.dataset = type_name(dataset)
            with contextlib.suppress(TypeError):  # None is one of those that take no weak references
                self._dataset = weakref.ref(dataset)

    def _mark(self) -> bool:
        """The batch before this one is built and sent: a step has ended."""
        try:
            if self._board.is_stopped():
                self.__exit__(None, None, None)  # once this mark is done
            elif self._engine is not None:
                self._follow_batch(self._engine)
        except Exception as error:
            self._failed(error)
            self.__exit__(None, None, None)
        return False

    def _follow_batch(self, engine: Engine) -> None:
        engine.native_lines.end()
        if self._batches:
            self._take_step(engine, engine.visit)
        self._batches += 1
        self._post(WATCHING)
        engine.native_lines.begin()

    def _take_step(self, engine: Engine, visit: Callable[[int], bool]) -> None:
        """The end of a batch, which ``visit`` may look at."""
        step = self._step = _core.mark()
        _core.native_rescan()
        looked = self._look(engine, step, visit)
        if looked or self._is_stale(engine):
            report = self._conclude()
            self._told_of = engine.last_look
            self._tell(findings=tuple(report.findings[:WORKER_FINDINGS]))
        if self._record is not None:
            self._record.mark(step, engine.heap_bytes(), self._conclude, looked)

    def _is_stale(self, engine: Engine) -> bool:
        """True if a walk's findings are posted, of lines that a look since then suspects no more."""
        look = engine.last_look
        if look is None or look is self._told_of:
            return False
        return bool(self._told.findings) and not look.suspects

    def _look(self, engine: Engine, step: int, visit: Callable[[int], bool]) -> bool:
        """Visit, and tell what that un-shared from what the worker itself did; True if there is news."""
        looked, before = visit(step), engine.take_private_before_walk()
        if before is not None:
            self._private = _core.process_memory().get("private", 0)
            self._own_bytes += max(0, self._private - before)
        return looked

    def _post(self, state: int) -> None:
        self._board.post_counts(
            self._slot,
            Posting(state, os.getpid(), self._batches, self._own_bytes, self._private),
        )

    def _conclude(self) -> Report:
        """The Report of this worker as of its last batch."""
        return conclusions.conclude(
            engine=self._engine,
            timeline=None,
            status=conclusions.read_status(),
            warmup=self._settings["warmup"],
            steps=self._step,
            limit=self._settings["limit"],
        )


def page_faults() -> int:
    """Page faults of this process that needed no disk."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
