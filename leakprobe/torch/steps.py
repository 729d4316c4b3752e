"""Automatic step marks for a script that calls no ``probe.step()``.

A step is a step of the optimizer that leads, else a batch taken from the DataLoader that does.  The first
optimizer seen leads, until it is gone or rests: then the next one does, or batches are steps (an evaluation
loop).  Where one has followed another that makes no more steps, as in trials that are kept, a new one leads
from its first step.
torch is never imported here: it is hooked once the script has imported it.
"""

import collections
import statistics
import threading
import weakref
from collections.abc import Callable
from typing import Any

from leakprobe import _core
from leakprobe.model.bounds import KEPT_GAPS, RESTING_BATCHES
from leakprobe.torch import optimizer_steps
from leakprobe.torch.patches import Patches, with_subclasses


class Since:
    """What has come since the leading optimizer's last step, and whether it rests by that."""

    def __init__(self) -> None:
        self.count = 0
        self._gaps: collections.deque[int] = collections.deque(maxlen=KEPT_GAPS)

    def is_rest(self) -> bool:
        """True if it is more than twice what usually comes: batches whose gradients accumulate, steps of
        other optimizers.
        """
        if self.count <= RESTING_BATCHES:
            return False
        usual = statistics.median_low(self._gaps) if self._gaps else 0
        return self.count > usual + usual

    def end(self) -> None:
        self._gaps.append(self.count)
        self.count = 0


class AutoSteps(Patches):
    """Marks steps of ``probe`` from torch's optimizers and DataLoaders."""

    modules = ("torch.utils.data", "torch.optim")

    def __init__(self, probe: Any) -> None:
        super().__init__()
        self._probe = probe
        self._lead: weakref.ref[Any] | None = None
        self._seen: dict[int, weakref.ref[Any]] = {}  # by id: a user's class may have no hash
        self._led: weakref.ref[Any] | None = None  # it rested, and has made no step since
        self._has_followed = False  # the one after it has made two
        self._batches, self._others = Since(), Since()
        self._read: weakref.ref[Any] | None = None  # the iterator whose batches are steps
        self._beside = Since()  # batches of others, since its last one
        self._reading: set[int] = set()  # threads that wait for a batch
        self._given = 0  # batches, since the last mark

    def remove(self) -> None:
        super().remove()
        optimizer_steps.leave(self._optimizer_stepped)

    def _hook(self) -> None:
        from torch.optim import optimizer
        from torch.utils.data import dataloader

        optimizer_steps.listen(optimizer, self._optimizer_stepped)
        self._wrap(dataloader.DataLoader, "__iter__", self._epoch_begins)
        for cls in with_subclasses(dataloader._BaseDataLoaderIter):
            if "__next__" in cls.__dict__:
                self._wrap_next(cls)

    def _wrap(self, owner: type, name: str, before: Callable[[Any], None]) -> None:
        original = owner.__dict__[name]

        def wrapper(loader: Any, *args: Any, **kwargs: Any) -> Any:
            before(loader)
            return original(loader, *args, **kwargs)

        self.replace(owner, name, wrapper)

    def _wrap_next(self, iterator_type: type) -> None:
        original = iterator_type.__dict__["__next__"]

        def wrapper(iterator: Any, *args: Any, **kwargs: Any) -> Any:
            thread = threading.get_ident()
            if thread in self._reading:  # a dataset reads a loader of its own
                return original(iterator, *args, **kwargs)
            self._batch_wanted(iterator)
            self._reading.add(thread)
            try:
                batch = original(iterator, *args, **kwargs)
            except StopIteration:  # what the iterator and the loop hold is still there
                self._ended(iterator)
                raise
            finally:
                self._reading.discard(thread)
            self._given += 1
            return batch

        self.replace(iterator_type, "__next__", wrapper)

    def _ended(self, iterator: Any) -> None:
        if self._read is not None and self._read() is iterator:
            self._read = None
        if self._probe.is_active():
            self._probe._look_at_an_epochs_end()

    def _epoch_begins(self, loader: Any) -> None:
        self._probe.epoch()

    def _batch_wanted(self, iterator: Any) -> None:
        self._batches.count += 1
        is_first = self._batches.count == 1  # the first batch of all ends no step
        is_read = self._is_read(iterator)
        if is_read and (self._batches.is_rest() or (self._lead is None and not is_first)):
            self._mark(self._given)

    def _is_read(self, iterator: Any) -> bool:
        """True for the iterator that leads: the first one, until it ends or rests.  Another one that is read
        in the same iteration ends no step of its own.
        """
        read = self._read() if self._read is not None else None
        if read is iterator:
            self._beside.end()
            return True
        if read is not None:
            self._beside.count += 1
            if not self._beside.is_rest():
                return False
        self._read, self._beside = weakref.ref(iterator), Since()
        return True

    def _optimizer_stepped(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Two optimizers in one iteration make one step: only the one that leads marks."""
        if not self._leads(optimizer):
            return
        self._batches.end()
        self._others.end()
        self._mark(None)

    def _leads(self, optimizer: Any) -> bool:
        lead = self._lead() if self._lead is not None else None
        is_new = self._is_new(optimizer)
        if self._led is not None and self._led() is optimizer:
            self._led, self._has_followed = None, False
        if lead is optimizer:
            self._has_followed = self._led is not None
            return True
        if lead is not None:
            self._others.count += 1
            if self._others.is_rest():
                self._led, self._has_followed = self._lead, False
            elif not (is_new and self._has_followed):
                return False
        self._lead = weakref.ref(optimizer)
        return True

    def _is_new(self, optimizer: Any) -> bool:
        """True at its first step."""
        known = self._seen.get(id(optimizer))
        if known is not None and known() is optimizer:
            return False
        self._seen = {key: seen for key, seen in list(self._seen.items()) if seen() is not None}
        self._seen[id(optimizer)] = weakref.ref(optimizer)
        return True

    def _mark(self, batches: int | None) -> None:
        """``batches``: those of an evaluation that are over with this step; None of a step of training."""
        self._given = 0
        if self._probe.is_active():
            watch: Any = _core.active_watch()
            if watch is not None:
                watch._step_of_torch(batches)
            self._probe.step()
