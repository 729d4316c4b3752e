"""The highest point of a step, by role and by line: its births and deaths played backwards from now."""

import collections
import dataclasses
import functools
import sys
from collections.abc import Collection, Iterator
from typing import Any

from leakprobe import _core
from leakprobe.evidence import peaks
from leakprobe.model.bounds import PEAK_PARTS, ROLE_STEPS
from leakprobe.model.frames import FIRST_SITE, Frame, innermost_user_frame
from leakprobe.model.roles import SHOWN_ROLES
from leakprobe.model.rows import PeakPart, PeakRow
from leakprobe.torch import roles


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
            address, size, own = storage.data_ptr(), storage.nbytes(), tensor.nbytes
            medium = "cpu" if tensor.device.type == "cpu" else str(tensor.device)
        except (RuntimeError, NotImplementedError, ValueError):  # no buffer: lazy, fake, of another kind
            return
        if address and size:
            self.rows.setdefault((address, medium), (role, size))
            if size == own:
                self.whole.add((address, medium))


@dataclasses.dataclass
class Highest:
    """The highest point of one medium in a step.

    roles: {role: bytes}.  events: those of the step, and of the one before it; named: the role of each one's
    block.  index: how many of the events came before the highest point.
    """

    medium: str
    held: dict[int, tuple[str, int]]
    events: list[_core.Event]
    named: list[str]
    roles: dict[str, int]
    index: int

    def total(self) -> int:
        return sum(self.roles.values())

    def row(self, step: int) -> PeakRow:
        """As a report gives it: with the lines, the largest of them.

        To be asked at the mark that the events were read at.
        """
        parts: dict[tuple[str, Frame | None], list[int]] = collections.defaultdict(lambda: [0, 0])
        for role, site, size in self._alive():
            part = parts[role, frame_of(site)]
            part[0] += 1
            part[1] += size
        rows: list[PeakPart] = [
            {"role": role, "allocation": frame, "count": count, "bytes": size}
            for (role, frame), (count, size) in parts.items()
        ]
        rows.sort(key=lambda row: -row["bytes"])
        return {"medium": self.medium, "step": step, "bytes": self.total(), "parts": rows[:PEAK_PARTS]}

    def _alive(self) -> Iterator[tuple[str, int, int]]:
        """(role, site, bytes) of each block that was alive."""
        born = {event.address: role for event, role in zip(self.events, self.named) if event.bytes > 0}
        alive: dict[int, tuple[str, int, int]] = {}
        for block in _core.ledger_blocks():
            if block.medium == self.medium:
                address = block.address
                role = self.held[address][0] if address in self.held else born.get(address, "other")
                alive[address] = role, block.site, block.bytes
        older = [row for address, row in self.held.items() if address not in alive and row[0] != "gradient"]
        for i in range(len(self.events) - 1, self.index - 1, -1):
            event = self.events[i]
            if event.bytes > 0:
                alive.pop(event.address, None)
            else:
                alive[event.address] = self.named[i], event.site, -event.bytes
        yield from alive.values()
        yield from ((role, 0, size) for role, size in older)


def frame_of(site: int) -> Frame | None:
    """The user's own line, else the innermost; None where there is none."""
    frames = _core.site_frames(site) if site >= FIRST_SITE else ()
    found = innermost_user_frame(frames) or (frames[0] if frames else None)
    return Frame(*found) if found else None


def at_highest(held: Holdings, step: int) -> list[Highest]:
    """Of each medium the highest point of the step that ended at the mark ``step``."""
    events = _core.ledger_events(max(0, step - ROLE_STEPS)).events
    totals = _core.ledger_totals()
    media = {medium for _address, medium in held.rows} | {
        e.medium for e in events if e.medium == "cpu" or e.medium.startswith("cuda")
    }
    return [
        of_medium(
            medium,
            {address: found for (address, own), found in held.rows.items() if own == medium},
            [e for e in events if e.medium == medium],
            totals[medium]["live_bytes"] if medium in totals else 0,
            step,
        )
        for medium in sorted(media)
    ]


def of_medium(
    medium: str, held: dict[int, tuple[str, int]], events: list[_core.Event], live: int, step: int
) -> Highest:
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
    best, index = dict(now), len(events)
    for i in range(len(events) - 1, -1, -1):
        if events[i].step < step - 1:
            break
        now[named[i]] -= events[i].bytes
        if sum(now.values()) > sum(best.values()):
            best, index = dict(now), i
    return Highest(medium, held, events, named, {role: max(0, size) for role, size in best.items()}, index)


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
