"""Bytes by role over steps, without a word from the program: parameters, gradients, optimizer state,
activations, batches.

torch calls back after each step of any optimizer.  At a reading the optimizer is asked there for its
parameters, their gradients and its state, and Modules for what no optimizer has (frozen parameters, buffers).
At the mark that ends the step, its births and deaths are played backwards to the step's highest point; what
was alive there and is none of these goes by its line and its lifetime, as in leakprobe.memory_map().
"""

import dataclasses
import functools
import gc
import itertools
import os
import sys
import time
import weakref
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from leakprobe import _core
from leakprobe.evidence import peaks
from leakprobe.model.finding import Note
from leakprobe.model.frames import FIRST_SITE
from leakprobe.model.report import MIN_STEPS
from leakprobe.model.roles import SHOWN_ROLES, role_key
from leakprobe.model.units import format_size
from leakprobe.torch import roles
from leakprobe.torch.patches import Patches, with_subclasses
from leakprobe.torch.thresholds import ROLE_ALLOWANCE_S, ROLE_SHARE, ROLE_STEPS


@dataclasses.dataclass
class Holdings:
    """What optimizers and Modules have: {(address of a buffer, medium): (role, bytes)}, each buffer once."""

    rows: dict[tuple[int, str], tuple[str, int]] = dataclasses.field(default_factory=dict)
    #: Buffers that one tensor fills: no bucket of many gradients, which a library makes once.
    whole: set[tuple[int, str]] = dataclasses.field(default_factory=set)

    def add(self, tensor: Any, role: str) -> None:
        """Note the buffer of a tensor; the first role that a buffer is given counts."""
        torch = sys.modules["torch"]
        if not isinstance(tensor, torch.Tensor):
            return
        try:
            storage = tensor.untyped_storage()
            address, size = storage.data_ptr(), storage.nbytes()
            medium = "cpu" if tensor.device.type == "cpu" else str(tensor.device)
        except (RuntimeError, NotImplementedError):  # a tensor without a buffer: lazy, fake, of another kind
            return
        if address and size:
            self.rows.setdefault((address, medium), (role, size))
            if size == tensor.nbytes:
                self.whole.add((address, medium))


class RoleReadings(Patches):
    """The readings of one watch: install(), then mark() at each mark, remove()."""

    modules = ("torch.optim",)

    def __init__(self, media: Collection[str]) -> None:
        super().__init__()
        self._media = media
        self._handle: Any = None
        self._began = time.monotonic()
        self._spent_s = 0.0
        self._is_wanted = True
        self._holdings: Holdings | None = None  # of the step that goes on
        self._asked: set[int] = (
            set()
        )  # optimizers that were asked in this step: once, however often they step
        self._pid = os.getpid()
        self._optimizers: list[weakref.ref[Any]] = []
        self._modules: list[weakref.ref[Any]] = []
        self.why_not: str | None = None  # why there are no readings any more
        self._gradients: dict[tuple[int, str], int] = {}  # (address, medium): bytes, at the last reading
        self.notes: list[Note] = []  # what settle() found

    def install(self) -> None:
        self._pid = os.getpid()
        if "cpu" in self._media or "cuda" in self._media:
            super().install()

    def remove(self) -> None:
        super().remove()
        if self._handle is not None:
            self._handle.remove()
            self._handle = None

    def _hook(self) -> None:
        optim = sys.modules["torch.optim.optimizer"]
        self._handle = optim.register_optimizer_step_post_hook(self._optimizer_stepped)

    # ---- in the program's step ----

    def _optimizer_stepped(self, optimizer: Any, _args: object, _kwargs: object) -> None:
        if not self._is_wanted or self.why_not is not None or id(optimizer) in self._asked:
            return
        if os.getpid() != self._pid:  # a forked child has no marks of its own
            return
        began = time.thread_time()
        self._asked.add(id(optimizer))
        try:
            with sys.modules["torch"]._C.DisableTorchFunctionSubclass():
                self._ask(optimizer)
        except Exception as error:  # the program's step goes on
            self.why_not = f"{type(error).__name__}: {error}"
        self._spend(began)

    def _ask(self, optimizer: Any) -> None:
        began = time.thread_time()
        if not any(known() is optimizer for known in self._optimizers):  # once for each
            self._optimizers.append(weakref.ref(optimizer))
            self._modules = [weakref.ref(module) for module in modules_with_tensors()]
            self._spent_s -= time.thread_time() - began
        held = self._holdings = self._holdings or Holdings()
        tensors = [tensor for group in optimizer.param_groups for tensor in group["params"]]
        for tensor in tensors:
            held.add(tensor, "parameter")
            if tensor.grad is not None:
                held.add(tensor.grad, "gradient")
        for tensor in values_below(roles.attributes(optimizer).get("state"), roles.DEPTH):
            held.add(tensor, "optimizer state")

    # ---- at marks ----

    def is_ready(self) -> bool:
        """True if the step that ends now was asked, so that mark() has something to give."""
        return self._holdings is not None

    def mark(self, step: int) -> dict[str, int]:
        """Keys for the memory row of the mark ``step``; {} where no reading was wanted."""
        began, held = time.thread_time(), self._holdings
        self._holdings = None
        self._asked.clear()
        found: dict[str, int] = {}
        if held is not None and self.why_not is None:
            self._gradients = {
                key: size
                for key, (role, size) in held.rows.items()
                if role == "gradient" and key in held.whole
            }
            for module in filter(None, (known() for known in self._modules)):
                for tensor in tensors_of(module):
                    held.add(tensor, "parameter")
            for medium, by_role in at_highest(held, step).items():
                found.update({role_key(medium, role): size for role, size in by_role.items()})
            self._spend(began)
        self._is_wanted = self._is_affordable()
        return found

    def settle(self, step: int, warmup: int) -> None:
        """Note gradients that live on from step to step: since the warm-up, and measured for some steps."""
        if step - warmup < MIN_STEPS or not self._gradients:
            return
        alive = {(b.address, b.medium): b.step for b in _core.ledger_blocks()}
        old = [size for key, size in self._gradients.items() if alive.get(key, step) <= warmup]
        if old:
            self.notes = [lasting_gradients(len(old), sum(old))]

    def _spend(self, began: float) -> None:
        self._spent_s += time.thread_time() - began

    def _is_affordable(self) -> bool:
        return self._spent_s <= ROLE_ALLOWANCE_S + ROLE_SHARE * (time.monotonic() - self._began)


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
    module = getattr(sys.modules.get("torch.nn"), "Module", None)
    if module is None:
        return []
    classes = set(map(id, with_subclasses(module)))  # ids, since a metaclass may have a hash of its own
    items = gc.get_objects()
    found = itertools.compress(items, map(classes.__contains__, map(id, map(type, items))))
    return [item for item in found if any(True for _ in tensors_of(item))]


def tensors_of(module: Any) -> Iterator[Any]:
    own = roles.attributes(module)
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


def at_highest(held: Holdings, step: int) -> dict[str, dict[str, int]]:
    """{medium: {role: bytes}} at the highest point of the step that ended at the mark ``step``."""
    events = _core.ledger_events(max(0, step - ROLE_STEPS)).events
    totals = _core.ledger_totals()
    media = {medium for _address, medium in held.rows} | {
        e.medium for e in events if e.medium == "cpu" or e.medium.startswith("cuda")
    }
    return {
        medium: of_medium(
            {address: found for (address, own), found in held.rows.items() if own == medium},
            [e for e in events if e.medium == medium],
            totals[medium]["live_bytes"] if medium in totals else 0,
            step,
        )
        for medium in sorted(media)
    }


def of_medium(
    held: dict[int, tuple[str, int]], events: list[_core.Event], live: int, step: int
) -> dict[str, int]:
    """The highest point of one medium: from what is alive now, back over the events of the last step.

    Buffers that are older than the watch are not in the ledger: they add to their role, and to nothing else.
    """
    now: dict[str, int] = dict.fromkeys(SHOWN_ROLES, 0)
    known = {address: row for address, row in held.items() if _core.ledger_holds(address)}
    for address, (role, size) in held.items():
        if address in known or role != "gradient":  # a gradient that is not held was let go since
            now[role] += size
    now["other"] = max(0, live - sum(size for _role, size in known.values()))
    gradients = {address: size for address, (role, size) in held.items() if role == "gradient"}
    named = roles_of_events(events, {a: role for a, (role, _size) in known.items()}, gradients)
    for role, size in still_alive(events, named, known):
        now[role] += size
        now["other"] -= size
    best = dict(now)
    for event, role in zip(reversed(events), reversed(named)):
        if event.step < step - 1:
            break
        now[role] -= event.bytes
        if sum(now.values()) > sum(best.values()):
            best = dict(now)
    return {role: max(0, size) for role, size in best.items()}


def still_alive(events: list[_core.Event], named: list[str], known: Collection[int]) -> list[tuple[str, int]]:
    """(role, bytes) of the blocks that were born in these events, live on, and are not ``known``."""
    alive: dict[int, tuple[str, int]] = {}
    for event, role in zip(events, named, strict=True):
        if event.bytes < 0:
            alive.pop(event.address, None)
        elif event.address not in known:
            alive[event.address] = role, event.bytes
    return [row for row in alive.values() if row[0] != "other"]


def roles_of_events(events: list[_core.Event], known: dict[int, str], gradients: dict[int, int]) -> list[str]:
    """For each event the role of its block, of SHOWN_ROLES; ``gradients``: {address: bytes}."""
    found = peaks.event_roles([Played(e.bytes, e.address, e.site, e.step) for e in events], known)
    loaders = {site for site in {event.site for event in events} if made_by_loader(site)}
    held = events_of_last(events, gradients)
    return [
        shown_role(role, i in held, event.site in loaders)
        for i, (role, event) in enumerate(zip(found, events, strict=True))
    ]


def events_of_last(events: list[_core.Event], sizes: dict[int, int]) -> set[int]:
    """Indices of the events of the block that was last born at each address with at least these bytes: the
    same address was another block's before.
    """
    found: dict[int, set[int]] = {}
    for i, event in enumerate(events):
        least = sizes.get(event.address)
        if least is not None and abs(event.bytes) >= least:
            if event.bytes > 0:
                found[event.address] = set()
            found.setdefault(event.address, set()).add(i)
    return set().union(*found.values())


def shown_role(role: str, is_gradient: bool, is_of_loader: bool) -> str:
    if role in ("activation", "temporary", "unknown", ""):
        if is_gradient or is_of_loader:
            return "gradient" if is_gradient else "batch"
    return role if role in SHOWN_ROLES else "other"


@functools.cache
def is_loader_file(filename: str) -> bool:
    return roles.LOADER_CODE in filename.replace("\\", "/")


def made_by_loader(site: int) -> bool:
    """True if the line is one of torch.utils.data, or called from there."""
    frames = _core.site_frames(site) if site >= FIRST_SITE else ()
    return any(is_loader_file(frame[0]) for frame in frames)


@dataclasses.dataclass(frozen=True, slots=True)
class Played:
    """An event as leakprobe.evidence.peaks reads it."""

    size: int
    address: int
    site: int
    step: int
