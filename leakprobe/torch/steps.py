"""Automatic step marks for a script that calls no ``probe.step()``.

A step is an optimizer step where one fires, else a batch taken from a DataLoader.
torch is never imported here: it is hooked once the script has imported it.
"""

import importlib.abc
import importlib.util
import sys
import weakref

#: Batches taken without an optimizer step before batches are steps again (an evaluation loop).
BATCHES_WITHOUT_OPTIMIZER = 8


class AutoSteps:
    """Marks steps of ``probe`` from torch's optimizers and DataLoaders.

    ``install()`` hooks torch at once if it is imported, else when the script imports it;
    ``remove()`` takes everything back.
    """

    def __init__(self, probe):
        self._probe = probe
        self._finder = None
        self._handle = None
        self._patched = []
        self._lead = None
        self._batches_since_step = 0

    def install(self) -> None:
        if "torch.utils.data" in sys.modules and "torch.optim" in sys.modules:
            self._hook()
        else:
            self._finder = _AfterImport("torch", self._hook)
            sys.meta_path.insert(0, self._finder)

    def remove(self) -> None:
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)
        if self._handle is not None:
            self._handle.remove()
            self._handle = None
        for owner, name, original, wrapper in self._patched:
            if owner.__dict__.get(name) is wrapper:
                setattr(owner, name, original)
        self._patched.clear()

    def _hook(self) -> None:
        from torch.optim.optimizer import register_optimizer_step_post_hook
        from torch.utils.data import dataloader

        self._handle = register_optimizer_step_post_hook(self._optimizer_stepped)
        self._wrap(dataloader.DataLoader, "__iter__", self._epoch_begins)
        for cls in _with_subclasses(dataloader._BaseDataLoaderIter):
            if "__next__" in cls.__dict__:
                self._wrap(cls, "__next__", self._batch_wanted)

    def _wrap(self, owner, name, before) -> None:
        original = owner.__dict__[name]

        def wrapper(loader, *args, **kwargs):
            before(loader)
            return original(loader, *args, **kwargs)

        wrapper.__name__, wrapper.__qualname__, wrapper.__doc__ = name, original.__qualname__, original.__doc__
        setattr(owner, name, wrapper)
        self._patched.append((owner, name, original, wrapper))

    def _epoch_begins(self, loader) -> None:
        self._probe.epoch()

    def _batch_wanted(self, iterator) -> None:
        self._batches_since_step += 1
        if self._lead is None or self._batches_since_step > BATCHES_WITHOUT_OPTIMIZER:
            # The first batch of all ends no step.
            if self._batches_since_step > 1 or self._lead is not None:
                self._mark()

    def _optimizer_stepped(self, optimizer, args, kwargs) -> None:
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


class _AfterImport(importlib.abc.MetaPathFinder):
    """Calls ``then`` once, after the module ``name`` has been imported."""

    def __init__(self, name, then):
        self._name, self._then = name, then

    def find_spec(self, fullname, path=None, target=None):
        if fullname != self._name or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _LoaderThen(spec.loader, self._then)
        return spec


class _LoaderThen(importlib.abc.Loader):
    """A loader that does what another does, then calls a function."""

    def __init__(self, loader, then):
        self._loader, self._then = loader, then

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._then()


def _with_subclasses(cls):
    found = [cls]
    for sub in cls.__subclasses__():
        found += _with_subclasses(sub)
    return found
