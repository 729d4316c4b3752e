"""DataLoader workers, seen from the parent: each new worker is told to watch itself, and what it posts is
kept.

While an iterator over a loader is being made, the loader's ``worker_init_fn`` is a wrapper around the user's
own; afterwards it is the user's again.  That reaches workers that are forked, spawned or come from a
forkserver. torch is never imported here: it is hooked once the program has imported it.
"""

import contextlib
import itertools
import os
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from leakprobe import _core
from leakprobe.model.bounds import (
    KEPT_SETS,
    KEPT_SETS_WITH_FINDINGS,
    LOADERS_AT_ONCE,
    SPARE_BATCHES,
)
from leakprobe.model.facts import PREFETCH_FACTOR
from leakprobe.model.finding import Finding
from leakprobe.model.worker import WorkerReport
from leakprobe.torch.board import FAILED, NOT_BEGUN, Board, Posting
from leakprobe.torch.copies import Copies
from leakprobe.torch.loader_keys import LoaderKeys
from leakprobe.torch.patches import Patches, with_subclasses


class WorkerSet:
    """The workers of one iterator: their board, and after their end what they posted last."""

    def __init__(
        self,
        loader: Any,
        iterator: Any,
        board: Board,
        settings: dict[str, Any],
        first_step: int,
        loader_key: int,
    ):
        self.number: int = settings["loader"]
        self.board: Board | None = board
        self.settings = settings
        self.first_step = first_step
        self.count: int = settings["workers"]
        self.loader_key = loader_key
        self.iterator = weakref.ref(iterator)
        self.start_method = start_method_of(loader)
        self.pids: list[int] = []
        self.is_persistent = bool(getattr(loader, "persistent_workers", False))
        #: Of one epoch, over all workers, where the sampler has a length.
        self.batches_in_all: int | None = None
        self.postings: list[Posting] = []
        self.reports: list[WorkerReport | None] = [None] * self.count

    def began(self, iterator: Any) -> None:
        """The workers have been started."""
        with contextlib.suppress(Exception):
            self.pids = [w.pid for w in getattr(iterator, "_workers", ())]
            self.batches_in_all = batches_of(iterator._index_sampler)

    def read(self) -> None:
        if self.board is not None:
            self.postings = [self.board.read_counts(n) for n in range(self.count)]
            self.reports = [self.board.read_report(n) for n in range(self.count)]
            self.hide_if_open()

    def has_news(self) -> bool:
        """True if a worker has posted a report since the last read()."""
        return self.board is not None and any(map(self.board.has_news, range(self.count)))

    def hide_if_open(self) -> None:
        """The file needs no name once every worker has opened it: then even a parent that is killed leaves
        none.
        """
        board = self.board
        if board is None or not board.path:
            return
        if all(board.read_counts(n).state != NOT_BEGUN for n in range(self.count)):
            board.hide()

    def is_over(self) -> bool:
        return self.iterator() is None

    def close(self) -> None:
        """Keep what was posted last; the file goes."""
        if self.board is not None:
            self.read()
            self.board.stop()
            self.board.close()
            self.board = None

    def findings(self, slot: int) -> tuple[Finding, ...]:
        report = self.reports[slot]
        return report.findings if report is not None else ()

    def errors(self) -> list[str]:
        return [r.error for r in self.reports if r is not None and r.error is not None]

    def not_recorded(self) -> list[str]:
        """Why workers have no recording of their own."""
        return [r.not_recorded for r in self.reports if r is not None and r.not_recorded is not None]

    @property
    def batches(self) -> int:
        return sum(p.batches for p in self.postings)

    def failed(self) -> int:
        return sum(p.state == FAILED for p in self.postings)


class Workers(Patches):
    """The workers of all loaders of one watch.  ``install()`` hooks torch, ``remove()`` takes all back."""

    def __init__(self, init: type, *, warmup: int, media: Iterable[str], stack_depth: int, limit: float):
        """``init``: makes what a loader calls in each new worker, of the user's own function and settings."""
        super().__init__()
        self._init = init
        self._common: dict[str, Any] = {"media": sorted(media), "stack_depth": stack_depth, "limit": limit}
        self._warmup = warmup
        self._pid = os.getpid()
        self._lock = _core.Turn()
        self._is_on = False
        self._base: type | None = None
        #: Loader => the lock of who makes an iterator of it.
        self._making: weakref.WeakKeyDictionary[Any, _core.Turn] = weakref.WeakKeyDictionary()
        self._step = 0
        self.copies = Copies()
        self._keys = LoaderKeys()
        self.sets: list[WorkerSet] = []
        self._alive: weakref.WeakSet[WorkerSet] = weakref.WeakSet()  # sets from before their workers begin
        self.why_not: str | None = None

    modules = ("torch.utils.data", "torch.utils.data.dataloader")

    def install(self) -> None:
        self._is_on = True
        super().install()

    def remove(self) -> None:
        self._is_on = False  # a wrapper that another one was put over stays
        super().remove()
        if os.getpid() == self._pid:
            self._take_back_loaders()
            for workers in [*self.sets, *self._alive]:
                workers.close()

    def _take_back_loaders(self) -> None:
        """Loaders whose making was cut short in the middle, or goes on in another thread, get their own
        function back.
        """
        for loader in list(self._making):
            if isinstance(getattr(loader, "worker_init_fn", None), self._init):
                loader.worker_init_fn = loader.worker_init_fn.user_function

    def record_beside(self, path: str, run: dict[str, Any]) -> None:
        """Let each worker write a recording beside that at ``path``; ``run``: facts of this process."""
        self._common |= {"record": path, "run": run}

    def visit(self, step: int) -> bool:
        """At a mark: follow what workers copy, give up the files of workers that are gone; True if there is
        news.
        """
        self._step = step
        alive = [s for s in self.sets if s.board is not None]
        news = [self.copies.visit(s, step) or s.has_news() for s in alive]
        for workers in alive:
            workers.hide_if_open()
        over = [s for s in alive if s.is_over()]
        for workers in over:
            workers.close()
        if over:
            self._forget_old()
        return any(news) or bool(over)

    def pids(self) -> set[int] | None:
        """The numbers of the processes of all workers; None where these are not followed."""
        if self.why_not is not None:
            return None
        return {pid for workers in (*self.sets, *self._alive) for pid in workers.pids}

    def in_flight(self) -> int:
        """Batches that may be built and not yet used: of the largest loaders that are alive, loaders that
        pile up left out.
        """
        of_each = sorted(
            (s.settings["in_flight"] * s.count for s in self.sets if s.board is not None), reverse=True
        )
        return sum(of_each[:LOADERS_AT_ONCE])

    def read(self) -> None:
        """Take what the workers have posted by now."""
        for workers in list(self.sets):
            workers.read()

    # ---- making of iterators ----

    def _hook(self) -> None:
        dataloader = sys.modules["torch.utils.data.dataloader"]
        base = self._base = dataloader._BaseDataLoaderIter
        for cls in with_subclasses(base):
            self._wrap_init(cls)
        self._wrap_subclassing(base)

    def _wrap_init(self, cls: type) -> None:
        if "__init__" not in cls.__dict__ or cls is self._base:
            return
        original = cls.__dict__["__init__"]

        def __init__(iterator: Any, loader: Any, *args: Any, **kwargs: Any) -> None:
            with self._injected(loader, iterator):
                original(iterator, loader, *args, **kwargs)

        self.replace(cls, "__init__", __init__)

    def _wrap_subclassing(self, base: Any) -> None:
        """Iterators of libraries that are imported later are made with the wrapper too."""

        def __init_subclass__(cls: Any, /, **kwargs: Any) -> None:
            super(base, cls).__init_subclass__(**kwargs)
            self._wrap_init(cls)

        if "__init_subclass__" not in base.__dict__:
            self.replace(base, "__init_subclass__", classmethod(__init_subclass__))

    @contextlib.contextmanager
    def _injected(self, loader: Any, iterator: Any) -> Iterator[None]:
        """Inside the block the loader's worker_init_fn begins a watch in each worker.

        What fails on our side is told in a note; the loader's workers are then those that it would have had.
        """
        if not self._is_on or not getattr(loader, "num_workers", 0) or os.getpid() != self._pid:
            yield
            return
        with self._making_lock(loader):  # two threads may make iterators of one loader
            user_function = getattr(loader, "worker_init_fn", None)
            workers = self._begin_set(loader, iterator, user_function)
            try:
                yield
            except BaseException:
                if workers is not None:
                    workers.close()
                raise
            finally:
                if workers is not None:
                    loader.worker_init_fn = user_function
        if workers is not None:
            workers.began(iterator)
            with self._lock.held():
                self.sets.append(workers)

    def _making_lock(self, loader: Any) -> contextlib.AbstractContextManager[Any]:
        """Held while an iterator of the loader is made; the same thread may take it again."""
        with self._lock.held():
            try:
                return self._making.setdefault(loader, _core.Turn()).held()
            except TypeError:  # no weak references, or no hash
                return contextlib.nullcontext()

    def _begin_set(
        self, loader: Any, iterator: Any, user_function: Callable[[int], None] | None
    ) -> WorkerSet | None:
        """The set of the workers that are about to be started, or None where they are not followed."""
        if isinstance(user_function, self._init):  # the iterator's base class is being made
            return None
        board = None
        try:
            board = Board.create(loader.num_workers)
            workers = self._set_of(loader, iterator, board)
            loader.worker_init_fn = self._init(user_function, workers.settings)
            return workers
        except Exception as error:
            self.why_not = f"{type(error).__name__}: {error}"
            if board is not None:
                board.close()
            return None

    def _set_of(self, loader: Any, iterator: Any, board: Board) -> WorkerSet:
        count = loader.num_workers
        settings = self._common | {
            "path": board.path,
            "workers": count,
            "warmup": max(1, -(-self._warmup // count)),
            "in_flight": (loader.prefetch_factor or PREFETCH_FACTOR) + SPARE_BATCHES,
        }
        with self._lock.held():
            key = self._keys.of(loader)
            numbers = {s.number for s in self._alive if s.board is not None and not s.is_over()}
            settings["loader"] = next(n for n in itertools.count() if n not in numbers)
            workers = WorkerSet(loader, iterator, board, settings, self._step, key)
            self._alive.add(workers)
        return workers

    def _forget_old(self) -> None:
        """Of the sets that are over, keep the newest and those in which something was found."""
        over = [s for s in self.sets if s.board is None]
        for workers in over[:-KEPT_SETS]:
            if not any(map(workers.findings, range(workers.count))):
                self.sets.remove(workers)
        told = [s for s in self.sets if s.board is None]
        for workers in told[:-KEPT_SETS_WITH_FINDINGS]:
            self.sets.remove(workers)


#: Samplers of torch whose length is that of what they draw from.
PLAIN_SAMPLERS = (
    "SequentialSampler",
    "RandomSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
    "DistributedSampler",
)


def batches_of(sampler: Any) -> int | None:
    """How many batches torch's own samplers give; None for others: their ``__len__`` is the program's, and
    may draw what they are to give.
    """
    module: Any = sys.modules["torch.utils.data"]
    plain = tuple(getattr(module, name) for name in PLAIN_SAMPLERS)
    inner = sampler.sampler if type(sampler) is module.BatchSampler else sampler
    return len(sampler) if type(inner) in plain else None


def start_method_of(loader: Any) -> str:
    """How the loader's workers are started: fork, spawn or forkserver."""
    context: Any = getattr(loader, "multiprocessing_context", None)
    if context is None:
        from torch import multiprocessing

        context = multiprocessing
    return str(context.get_start_method() or "fork")
