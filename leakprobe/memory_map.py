"""All live blocks of memory with role, owner and line, and the last births and deaths: what an export
draws.
"""

import collections
import dataclasses
import os
import re
from collections.abc import Collection
from typing import TextIO

from leakprobe import _core
from leakprobe.model import inert
from leakprobe.model.frames import FIRST_SITE, FrameTuple, place_of
from leakprobe.model.units import format_size
from leakprobe.report.clean import clean
from leakprobe.report.streams import stream_of
from leakprobe.torch import roles as torch_roles


@dataclasses.dataclass(frozen=True)
class BlockRow:
    """A live block.

    size: in bytes.
    step: when it was born.
    stack: (filename, lineno, function), innermost first.
    role: one of leakprobe.torch.roles.ROLES.
    owner: the path that keeps it, as text, or None where no Python object does.
    """

    medium: str
    address: int
    size: int
    step: int
    stack: tuple[FrameTuple, ...]
    role: str
    owner: str | None

    def held_by(self) -> str:
        """The owner without the places of items in it, so that all items of a list read the same; the role if
        there is none.
        """
        return re.sub(r"\[\d+\] ?", "", self.owner) if self.owner else self.role

    def where(self) -> str:
        return place_of(self.stack, "unknown")


@dataclasses.dataclass(frozen=True)
class Event:
    """A birth, or with a negative size a death, of a block in ``step``."""

    medium: str
    address: int
    size: int
    step: int
    site: int


class MemoryMap:
    """What memory_map() found: ``rows`` (BlockRow), ``events`` (Event, oldest first), ``step``.

    events_lost: births and deaths before the first of ``events`` that are no longer known.
    """

    def __init__(self, rows: list[BlockRow], events: list[Event], step: int, events_lost: int = 0) -> None:
        self.rows, self.events, self.step, self.events_lost = rows, events, step, events_lost

    def __repr__(self) -> str:
        return f"<leakprobe memory map at step {self.step}: {len(self.rows)} blocks>"

    def by_role(self) -> dict[str, dict[str, int]]:
        """{medium: {role: live bytes}}."""
        found: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
        for row in self.rows:
            found[row.medium][row.role] += row.size
        return {medium: dict(roles) for medium, roles in found.items()}

    def by_owner(
        self, media: Collection[str] | None = None, most: int = 10
    ) -> list[tuple[str, str, str, int, int]]:
        """(medium, role, line, count, bytes) with the owner in place of the role where one is known; most
        bytes first.
        """
        found: dict[tuple[str, str, str], list[int]] = {}
        for row in self.rows:
            if media is None or row.medium in media:
                entry = found.setdefault((row.medium, row.held_by(), row.where()), [0, 0])
                entry[0] += 1
                entry[1] += row.size
        rows = [(*key, count, size) for key, (count, size) in found.items()]
        return sorted(rows, key=lambda r: (-r[4], r[:3]))[:most]

    def peak(self, medium: str) -> tuple[int, list[tuple[str, str, int, int]]]:
        """(bytes, [(role, line, count, bytes)]) at the highest point that the events know of, most bytes
        first.

        Blocks that have died since have the role that follows from their lifetime: alive from before the
        first gradient of a step until after it, an activation; made by a backward pass and freed in a later
        step, a gradient; else temporary.
        """
        from leakprobe.evidence.peaks import at_peak

        return at_peak(self, medium)

    def by_step(self, medium: str) -> list[tuple[int, dict[str, int]]]:
        """[(step, {role: bytes})] at the highest point of each step that the events know of, oldest first.

        A step without births and deaths has no row.  Roles of blocks that have died since are those of
        peak().
        """
        from leakprobe.evidence.peaks import by_step

        return by_step(self, medium)

    def to_memory_viz(self, path: str | os.PathLike[str]) -> None:
        """Write a pickle for PyTorch's ``torch.cuda._memory_viz`` and pytorch.org/memory_viz; readable by its
        owner only.

        Errors: LeakprobeError "unwritable_file".
        """
        from leakprobe.report.memory_viz import write_map

        write_map(self, path, full_stack)

    def print(self, file: TextIO | None = None, most: int = 10) -> None:
        """Bytes by role of each medium, then the largest owners and lines."""
        out = stream_of(file)
        for medium, roles in sorted(self.by_role().items()):
            parts = ", ".join(
                f"{format_size(size)} {role}" for role, size in sorted(roles.items(), key=lambda r: -r[1])
            )
            print(f"{medium:<8} {format_size(sum(roles.values()))}: {parts}", file=out)
        for medium, owner, where, count, size in self.by_owner(most=most):
            print(f"  {format_size(size):>10}  {count} x  {medium}  {clean(where)}  {clean(owner)}", file=out)


def memory_map(*, owners: bool = True) -> MemoryMap:
    """A MemoryMap of now: every block that the hooks know, numpy's too.  Needs a watch: without one nothing
    is known.

    owners: find who keeps each block, which takes a graph of all objects.
    Errors: LeakprobeError "gc_running", "already_active".
    """
    with _core.QuietCollector():
        roles = torch_roles.find_roles() if inert.imported("torch") else {}
        texts = owner_texts() if owners else {}
        now = _core.step()
        stacks: dict[int, tuple[FrameTuple, ...]] = {}
        rows = []
        for b in _core.ledger_blocks():
            stack = stacks.get(b.site)
            if stack is None:
                stack = stacks[b.site] = full_stack(b.site)
            role = torch_roles.role_of(roles, b.address, stack, b.step, now)
            rows.append(BlockRow(b.medium, b.address, b.bytes, b.step, stack, role, texts.get(b.address)))
        found = _core.ledger_events()
        made = [Event(e.medium, e.address, e.bytes, e.step, e.site) for e in found.events]
    return MemoryMap(rows, made, now, found.total - len(made))


def full_stack(site: int) -> tuple[FrameTuple, ...]:
    """The frames of a site; of a site known by two frames, those of a child with the whole stack."""
    if site < FIRST_SITE:
        return ()
    for child in reversed(_core.site_children(site)):
        frames = _core.site_frames(child)
        if frames:
            return tuple(frames)
    return tuple(_core.site_frames(site))


def owner_texts() -> dict[int, str]:
    """{address of a block: the path to it as text}, of blocks that something reachable keeps."""
    from leakprobe.graph import take

    graph = take()[0]
    names = graph.names()
    texts = {}
    for address, node in graph.block_nodes():
        path = graph.elements(node, names)
        if len(path) > 1:
            texts[address] = " -> ".join(element["text"] for element in path[:-1])
    return texts
