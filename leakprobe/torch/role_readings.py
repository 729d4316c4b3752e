"""Bytes by role over steps, without a word from the program: parameters, gradients, optimizer state,
activations, batches.

torch calls back after each step of any optimizer.  At a reading the optimizer is asked there for its
parameters, their gradients and its state, and Modules for what no optimizer has (frozen parameters, buffers).
At the mark that ends the step, its births and deaths are played backwards to the step's highest point; what
was alive there and is none of these goes by its line and its lifetime, as in leakprobe.memory_map(); of the
highest one the lines are kept too.
"""

import os
import sys
import weakref
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from leakprobe import _core
from leakprobe.model import inert
from leakprobe.model.bounds import ROLE_ALLOWANCE_S, ROLE_SHARE, ROLE_STRETCH, SEARCH_SHARE
from leakprobe.model.budget import Budget
from leakprobe.model.finding import Note
from leakprobe.model.report import MIN_STEPS
from leakprobe.model.roles import role_key
from leakprobe.model.rows import PeakRow
from leakprobe.model.units import format_size
from leakprobe.torch import optimizer_steps, roles
from leakprobe.torch.highest import Holdings, at_highest
from leakprobe.torch.patches import Patches, with_subclasses


class RoleReadings(Patches):
    """The readings of one watch: install(), then mark() at each mark, remove()."""

    modules = ("torch.optim",)

    def __init__(self, media: Collection[str]) -> None:
        super().__init__()
        self._media = media
        self._budget = Budget(ROLE_ALLOWANCE_S, ROLE_SHARE)
        self._is_wanted, self._next = True, 0  # the step that is asked next, if that is affordable
        self._first: int | None = None  # the first that was
        self._holdings: Holdings | None = None  # of the step that goes on
        self._asked: set[int] = (
            set()
        )  # optimizers that were asked in this step: once, however often they step
        self._pid = os.getpid()
        self._optimizers: list[weakref.ref[Any]] = []
        self._modules: list[weakref.ref[Any]] = []
        #: Searches for Modules: all objects are passed, so they have a budget of their own.
        self._searches = Budget(0.0, SEARCH_SHARE)
        self._owes_search = False
        self.why_not: str | None = None  # why there are no readings any more
        self._gradients: dict[tuple[int, str], int] = {}  # (address, medium): bytes, at the last reading
        self.notes: list[Note] = []  # what settle() found, and why readings have ended
        self._peaks: dict[str, PeakRow] = {}

    def install(self) -> None:
        self._pid = os.getpid()
        if "cpu" in self._media or "cuda" in self._media:
            super().install()

    def remove(self) -> None:
        super().remove()
        optimizer_steps.leave(self._optimizer_stepped)

    def _hook(self) -> None:
        optimizer_steps.listen(sys.modules["torch.optim.optimizer"], self._optimizer_stepped)

    # ---- in the program's step ----

    def _optimizer_stepped(self, optimizer: Any, _args: object, _kwargs: object) -> None:
        if not self._is_wanted or self.why_not is not None or id(optimizer) in self._asked:
            return
        if os.getpid() != self._pid:  # a forked child has no marks of its own
            return
        self._asked.add(id(optimizer))
        try:
            with self._budget.charged(self._searches), sys.modules["torch"]._C.DisableTorchFunctionSubclass():
                self._ask(optimizer)
        except Exception as error:  # the program's step goes on
            self._failed(error)

    def _ask(self, optimizer: Any) -> None:
        if not any(known() is optimizer for known in self._optimizers):  # once for each
            alive = [known for known in self._optimizers if known() is not None]
            self._optimizers = [*alive, weakref.ref(optimizer)]
            self._owes_search = True
        if self._owes_search and self._searches.has(self._searches.last_s):  # the first time it always has
            self._search()
        held = self._holdings = self._holdings or Holdings()
        tensors = [tensor for group in optimizer.param_groups for tensor in group["params"]]
        for tensor in tensors:
            held.add(tensor, "parameter")
            if tensor.grad is not None:
                held.add(tensor.grad, "gradient")
        for tensor in values_below(inert.attributes(optimizer).get("state"), roles.DEPTH):
            held.add(tensor, "optimizer state")

    def _search(self) -> None:
        """For the Modules of the program: in one that makes optimizer after optimizer, each search might be
        a delay of its own.
        """
        self._owes_search = False
        with self._searches.charged():
            self._modules = [weakref.ref(module) for module in modules_with_tensors()]

    def _failed(self, error: Exception) -> None:
        """There are no readings from here on, and the report says so."""
        self.why_not = f"{type(error).__name__}: {error}"
        text = (
            f"bytes by role, and what a step's highest point is made of, are no longer read: {self.why_not}"
        )
        self.notes.append(Note(kind="gap", text=text, medium=None))

    # ---- at marks ----

    def is_ready(self) -> bool:
        """True if the step that ends now was asked, so that mark() has something to give."""
        return self._holdings is not None

    def mark(self, step: int) -> dict[str, int]:
        """Keys for the memory row of the mark ``step``; {} where no reading was wanted."""
        held, self._holdings = self._holdings, None
        self._asked.clear()
        found: dict[str, int] = {}
        if held is not None and self.why_not is None:
            self._first = step if self._first is None else self._first
            self._next = step + max(1, int(ROLE_STRETCH * (step - self._first)))
            try:
                with self._budget.charged(), sys.modules["torch"]._C.DisableTorchFunctionSubclass():
                    found = self._read(held, step)
            except Exception as error:  # what is left of the mark goes on
                self._failed(error)
        self._is_wanted = step + 1 >= self._next and self._budget.has()
        return found

    def _read(self, held: Holdings, step: int) -> dict[str, int]:
        """Keys of the step's highest point, by role."""
        found: dict[str, int] = {}
        self._gradients = {
            key: size for key, (role, size) in held.rows.items() if role == "gradient" and key in held.whole
        }
        for module in filter(None, (known() for known in self._modules)):
            for tensor in tensors_of(module):
                held.add(tensor, "parameter")
        for highest in at_highest(held, step):
            found.update({role_key(highest.medium, role): size for role, size in highest.roles.items()})
            before = self._peaks.get(highest.medium)
            if before is None or highest.total() > before["bytes"]:
                self._peaks[highest.medium] = highest.row(step)
        return found

    def peaks(self) -> list[PeakRow]:
        """Of each medium the reading with most bytes."""
        return list(self._peaks.values())

    def settle(self, step: int, warmup: int) -> None:
        """Note gradients that live on from step to step: since the warm-up, and measured for some steps."""
        if step - warmup < MIN_STEPS or not self._gradients:
            return
        alive = {(b.address, b.medium): b.step for b in _core.ledger_blocks()}
        old = [size for key, size in self._gradients.items() if alive.get(key, step) <= warmup]
        if old:
            self.notes.append(lasting_gradients(len(old), sum(old)))


def lasting_gradients(count: int, size: int) -> Note:
    """No growth: each step adds to the same memory."""
    text = (
        f"gradients of {count} parameter{'' if count == 1 else 's'}, {format_size(size)}, have been "
        "alive since the warm-up and do not grow: each step adds to them, or sets them to zero in place; if "
        "they are not meant to accumulate, call optimizer.zero_grad() in each step"
    )
    return Note(kind="bounded", text=text, medium=None, bytes_per_step=0.0, live_bytes=size)


def modules_with_tensors() -> list[Any]:
    """Live Modules that have parameters or buffers of their own."""
    module = getattr(inert.imported("torch.nn"), "Module", None)
    if module is None:
        return []
    found = _core.instances(with_subclasses(module))
    return [item for item in found if any(True for _ in tensors_of(item))]


def tensors_of(module: Any) -> Iterator[Any]:
    own = inert.attributes(module)
    for name in ("_parameters", "_buffers"):
        tensors = own.get(name)
        if isinstance(tensors, dict):
            yield from (tensor for tensor in tensors.values() if tensor is not None)


def values_below(container: Any, depth: int) -> Iterator[Any]:
    """What is in nested dicts, lists and tuples, but for their keys."""
    if isinstance(container, dict):
        items: Iterable[Any] = dict.values(container)
    elif type(container) in (list, tuple):
        items = container
    else:
        yield container
        return
    if depth > 0:
        for item in list(items):
            yield from values_below(item, depth - 1)
