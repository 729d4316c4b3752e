"""Automatic step marks for a script that calls no ``probe.step()``.

A step is an optimizer step where one fires, else a batch taken from a DataLoader.
torch is never imported here: it is hooked once the script has imported it.
"""

import weakref
from collections.abc import Callable
from typing import Any

from leakprobe.torch.patches import Patches, with_subclasses

#: Batches taken without an optimizer step before batches are steps again (an evaluation loop).
BATCHES_WITHOUT_OPTIMIZER = 8


class AutoSteps(Patches):
    """Marks steps of ``probe`` from torch's optimizers and DataLoaders."""

    modules = ("torch.utils.data", "torch.optim")

    def __init__(self, probe: Any) -> None:
        super().__init__()
        self._probe = probe
        self._handle: Any = None
        self._lead: weakref.ref[Any] | None = None
        self._batches_since_step = 0

    def remove(self) -> None:
        super().remove()
        if self._handle is not None:
            self._handle.remove()
            self._handle = None

    def _hook(self) -> None:
        from torch.optim.optimizer import register_optimizer_step_post_hook
        from torch.utils.data import dataloader

        self._handle = register_optimizer_step_post_hook(self._optimizer_stepped)
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
            self._batch_wanted(iterator)
            try:
                return original(iterator, *args, **kwargs)
            except StopIteration:  # what the iterator and the loop hold is still there
                if self._probe.is_active():
                    self._probe._look_at_an_epochs_end()
                raise

        self.replace(iterator_type, "__next__", wrapper)

    def _epoch_begins(self, loader: Any) -> None:
        self._probe.epoch()

    def _batch_wanted(self, iterator: Any) -> None:
        self._batches_since_step += 1
        if self._lead is None or self._batches_since_step > BATCHES_WITHOUT_OPTIMIZER:
            # The first batch of all ends no step.
            if self._batches_since_step > 1 or self._lead is not None:
                self._mark()

    def _optimizer_stepped(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Two optimizers in one iteration make one step: only the first one seen, while it lives, marks."""
        lead = self._lead() if self._lead is not None else None
        if lead is None:
            self._lead = weakref.ref(optimizer)
            lead = optimizer
        if lead is optimizer:
            self._batches_since_step = 0
            self._mark()

    def _mark(self) -> None:
        if self._probe.is_active():
            self._probe.step()
