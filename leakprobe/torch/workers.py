"""DataLoader workers, seen from the parent: each new worker is told to watch itself, and what it posts is kept.

While an iterator over a loader is being made, the loader's ``worker_init_fn`` is a wrapper around the user's own;
afterwards it is the user's again.  That reaches workers that are forked, spawned or come from a forkserver.
torch is never imported here: it is hooked once the program has imported it.
"""

import contextlib
import itertools
import os
import sys
import threading
import weakref

from leakprobe.torch.board import FAILED, NOT_BEGUN, Board
from leakprobe.torch.copies import Copies
from leakprobe.torch.steps import _AfterImport, _with_subclasses
from leakprobe.torch.worker_side import WorkerInit

#: Sets of ended workers that are kept for the report, the last ones, and those in which something grew.
KEPT_SETS = 64
#: Loaders that a loop reads side by side.
LOADERS_AT_ONCE = 3
#: Batches that a worker may have built beyond what its loader's prefetch_factor says.
SPARE_BATCHES = 1


class WorkerSet:
    """The workers of one iterator: their board, and after their end what they posted last."""

    def __init__(self, loader, iterator, board: Board, settings: dict, first_step: int, loader_key: int):
        self.board: Board | None = board
        self.settings = settings
        self.first_step = first_step
        self.count = settings["workers"]
        self.loader_key = loader_key
        self.iterator = weakref.ref(iterator)
        self.start_method = start_method_of(loader)
        self.pids: list = []
        self.is_persistent = bool(getattr(loader, "persistent_workers", False))
        self.batches_in_all = None  # of one epoch, over all workers, where the sampler has a length
        self.postings: list = []
        self.reports: list = [None] * self.count

    def began(self, iterator) -> None:
        """The workers have been started."""
        self.pids = [w.pid for w in getattr(iterator, "_workers", ())]
        with contextlib.suppress(Exception):
            self.batches_in_all = len(iterator._index_sampler)

    def read(self) -> None:
        if self.board is not None:
            self.postings = [self.board.read_counts(n) for n in range(self.count)]
            self.reports = [self.board.read_report(n) for n in range(self.count)]
            self.hide_if_open()

    def hide_if_open(self) -> None:
        """The file needs no name once every worker has opened it: then even a parent that is killed leaves none."""
        if self.board.path and all(self.board.read_counts(n).state != NOT_BEGUN for n in range(self.count)):
            self.board.hide()

    def is_over(self) -> bool:
        return self.iterator() is None

    def close(self) -> None:
        """Keep what was posted last; the file goes."""
        if self.board is not None:
            self.read()
            self.board.stop()
            self.board.close()
            self.board = None

    def findings(self, slot: int) -> list:
        return (self.reports[slot] or {}).get("findings", [])

    def errors(self) -> list:
        return [r["error"] for r in self.reports if r and "error" in r]

    @property
    def batches(self) -> int:
        return sum(p.batches for p in self.postings)

    def failed(self) -> int:
        return sum(p.state == FAILED for p in self.postings)


class Workers:
    """The workers of all loaders of one watch.  ``install()`` hooks torch, ``remove()`` takes all back."""

    def __init__(self, *, warmup: int, media, stack_depth: int, limit: float):
        self._common = {"media": sorted(media), "stack_depth": stack_depth, "limit": limit}
        self._warmup = warmup
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._finder = None
        self._patched: list = []
        self._base = None
        self._step = 0
        self.copies = Copies()
        self._keys, self._numbers = weakref.WeakKeyDictionary(), itertools.count()
        self.sets: list[WorkerSet] = []
        self.why_not: str | None = None

    def install(self) -> None:
        if "torch.utils.data" in sys.modules:
            self._hook()
        else:
            self._finder = _AfterImport("torch", self._hook)
            sys.meta_path.insert(0, self._finder)

    def remove(self) -> None:
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)
        for owner, name, original, wrapper in self._patched:
            if owner.__dict__.get(name) is wrapper:
                if original is None:
                    delattr(owner, name)
                else:
                    setattr(owner, name, original)
        self._patched.clear()
        if os.getpid() == self._pid:
            for workers in self.sets:
                workers.close()

    def visit(self, step: int) -> bool:
        """At a mark: follow what workers copy, give up the files of workers that are gone; True if there is news."""
        self._step = step
        alive = [s for s in self.sets if s.board is not None]
        news = [self.copies.visit(s, step) or any(map(s.board.has_news, range(s.count))) for s in alive]
        for workers in alive:
            workers.hide_if_open()
        over = [s for s in alive if s.is_over()]
        for workers in over:
            workers.close()
        if over:
            self._forget_old()
        return any(news) or bool(over)

    def in_flight(self) -> int:
        """Batches that may be built and not yet used: of the largest loaders that are alive, loaders that pile up left out."""
        of_each = sorted((s.settings["in_flight"] * s.count for s in self.sets if s.board is not None), reverse=True)
        return sum(of_each[:LOADERS_AT_ONCE])

    def read(self) -> None:
        """Take what the workers have posted by now."""
        for workers in list(self.sets):
            workers.read()

    # ---- making of iterators ----

    def _hook(self) -> None:
        from torch.utils.data import dataloader

        base = self._base = dataloader._BaseDataLoaderIter
        for cls in _with_subclasses(base):
            self._wrap_init(cls)
        self._wrap_subclassing(base)

    def _wrap_init(self, cls) -> None:
        if "__init__" not in cls.__dict__ or cls is self._base:
            return
        original = cls.__dict__["__init__"]

        def __init__(iterator, loader, *args, **kwargs):
            with self._injected(loader, iterator):
                original(iterator, loader, *args, **kwargs)

        __init__.__qualname__, __init__.__doc__ = original.__qualname__, original.__doc__
        cls.__init__ = __init__
        self._patched.append((cls, "__init__", original, __init__))

    def _wrap_subclassing(self, base) -> None:
        """Iterators of libraries that are imported later are made with the wrapper too."""

        def __init_subclass__(cls, **kwargs):
            super(base, cls).__init_subclass__(**kwargs)
            self._wrap_init(cls)

        hook = classmethod(__init_subclass__)
        if "__init_subclass__" not in base.__dict__:
            base.__init_subclass__ = hook
            self._patched.append((base, "__init_subclass__", None, base.__dict__["__init_subclass__"]))

    @contextlib.contextmanager
    def _injected(self, loader, iterator):
        """Inside the block the loader's worker_init_fn begins a watch in each worker."""
        workers = self._begin_set(loader, iterator)
        if workers is None:
            yield
            return
        user_function = loader.worker_init_fn
        loader.worker_init_fn = WorkerInit(user_function, workers.settings)
        try:
            yield
        except BaseException:
            workers.close()
            raise
        finally:
            loader.worker_init_fn = user_function
        workers.began(iterator)
        with self._lock:
            self.sets.append(workers)

    def _begin_set(self, loader, iterator) -> WorkerSet | None:
        """The set of the workers that are about to be started, or None where there is nothing to follow."""
        count = getattr(loader, "num_workers", 0)
        if not count or os.getpid() != self._pid or isinstance(getattr(loader, "worker_init_fn", None), WorkerInit):
            return None
        try:
            board = Board.create(count)
        except OSError as error:
            self.why_not = f"no file for what workers report: {error}"
            return None
        settings = self._common | {
            "path": board.path,
            "workers": count,
            "warmup": max(1, -(-self._warmup // count)),
            "in_flight": (loader.prefetch_factor or 2) + SPARE_BATCHES,
        }
        return WorkerSet(loader, iterator, board, settings, self._step, self._key_of(loader))

    def _key_of(self, loader) -> int:
        """A number for each loader; addresses are used again."""
        try:
            return self._keys.setdefault(loader, next(self._numbers))
        except TypeError:
            return next(self._numbers)

    def _forget_old(self) -> None:
        """Of the sets that are over, keep the newest and those in which something was found."""
        over = [s for s in self.sets if s.board is None]
        for workers in over[:-KEPT_SETS]:
            if not any(r and r.get("findings") for r in workers.reports):
                self.sets.remove(workers)
        told = [s for s in self.sets if s.board is None]
        for workers in told[: -2 * KEPT_SETS]:
            self.sets.remove(workers)


def start_method_of(loader) -> str:
    """How the loader's workers are started: fork, spawn or forkserver."""
    context = getattr(loader, "multiprocessing_context", None)
    if context is None:
        import torch.multiprocessing as context
    return context.get_start_method() or "fork"
