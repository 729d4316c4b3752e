"""What was alive when a medium held most: the last births and deaths played backwards from now."""

import bisect
import collections
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from leakprobe import _core
from leakprobe.model.blocks import Blocks, Event, LiveBlock
from leakprobe.model.frames import FIRST_SITE, place_of

#: Functions of torch under which a backward pass allocates; its device threads run no Python and have no
#: site.
BACKWARD_CODE = ("torch/autograd/graph.py", "torch/autograd/__init__.py")


class DeadBlock(NamedTuple):
    """A block that has died, by the indices of its events; its birth may be known no more."""

    size: int
    birth: int | None
    death: int


def at_peak(memory_map: Blocks, medium: str) -> tuple[int, list[tuple[str, str, int, int]]]:
    """(bytes, [(role, line, count, bytes)]) as of the highest point, see MemoryMap.peak()."""
    events = [e for e in memory_map.events if e.medium == medium]
    live = {row.address: row for row in memory_map.rows if row.medium == medium}
    most, index = highest(events, sum(row.size for row in live.values()))
    alive = alive_at(events, index, live)
    groups: dict[tuple[str, str], list[int]] = collections.defaultdict(lambda: [0, 0])
    backward = Backward(events)
    for block in alive:
        if isinstance(block, DeadBlock):
            role = backward.role_of_the_dead(block.birth, block.death)
            where = line_of(events[block.death].site)
        else:
            role, where = block.role, block.where()
        entry = groups[role, where]
        entry[0] += 1
        entry[1] += block.size
    rows = [(*key, count, size) for key, (count, size) in groups.items()]
    return most, sorted(rows, key=lambda row: -row[-1])


def highest(events: Sequence[Event], now: int) -> tuple[int, int]:
    """(bytes, index): the most that was alive, and how many events came before; at the end where nothing was
    higher.
    """
    most, index, total = now, len(events), now
    for i in range(len(events) - 1, -1, -1):
        total -= events[i].size
        if total > most:
            most, index = total, i
    return most, index


def alive_at(
    events: Sequence[Event], index: int, live: Mapping[int, LiveBlock]
) -> list[LiveBlock | DeadBlock]:
    """The blocks that were alive before event ``index``; ``live``: those that are now, by address."""
    births: dict[int, int] = {}
    for i, event in enumerate(events[:index]):
        if event.size > 0:
            births[event.address] = i
        else:
            births.pop(event.address, None)
    found: list[LiveBlock | DeadBlock] = []
    reborn: set[int] = set()
    for i in range(index, len(events)):
        event = events[i]
        if event.address in reborn:
            continue
        reborn.add(event.address)
        if event.size < 0:  # its first event since is its death: it was alive
            found.append(DeadBlock(-event.size, births.get(event.address), i))
    found += [row for address, row in live.items() if address not in reborn]
    return found


class Backward:
    """Where the backward passes of the events begin, and what that says of blocks that have died."""

    def __init__(self, events: Sequence[Event]):
        self._events = events
        self._known: dict[int, bool] = {}
        self._first: dict[int, int] = {}  # step => index of the first birth of its backward pass
        for i, event in enumerate(events):
            if event.size > 0 and event.step not in self._first and self._is_part(event.site):
                self._first[event.step] = i
        self._starts = list(self._first.values())

    def _is_part(self, site: int) -> bool:
        if site not in self._known:
            frames = _core.site_frames(site) if site >= FIRST_SITE else ()
            self._known[site] = any(f[0].replace("\\", "/").endswith(BACKWARD_CODE) for f in frames)
        return self._known[site]

    def role_of_the_dead(self, birth: int | None, death: int) -> str:
        """The role of a block by the indices of its events.

        What was there before the backward pass and went in it or after it is an activation; what the pass
        made and a later step let go, a gradient.
        """
        if self._is_gradient(birth, death):
            return "gradient"
        begun = bisect.bisect_right(self._starts, death)
        return "activation" if begun and (birth is None or birth < self._starts[begun - 1]) else "temporary"

    def _is_gradient(self, birth: int | None, death: int) -> bool:
        if birth is None or self._events[death].step == self._events[birth].step:
            return False
        event = self._events[birth]
        start = self._first.get(event.step)
        return start is not None and birth >= start and (event.site < FIRST_SITE or self._is_part(event.site))


def by_step(memory_map: Blocks, medium: str) -> list[tuple[int, dict[str, int]]]:
    """(step, {role: bytes}) at the highest point of each step, see MemoryMap.by_step()."""
    events = [e for e in memory_map.events if e.medium == medium]
    live = {row.address: row.role for row in memory_map.rows if row.medium == medium}
    totals: collections.Counter[str] = collections.Counter()
    for row in memory_map.rows:
        if row.medium == medium:
            totals[row.role] += row.size
    roles = event_roles(events, live)
    for event, role in zip(events, roles):
        totals[role] -= event.size
    found: dict[int, tuple[int, dict[str, int]]] = {}
    for event, role in zip(events, roles):
        found.setdefault(event.step, (sum(totals.values()), dict(totals)))
        totals[role] += event.size
        total = sum(totals.values())
        if total > found[event.step][0]:
            found[event.step] = total, dict(totals)
    rows = [(step, {role: size for role, size in at.items() if size}) for step, (_, at) in found.items()]
    return rows[1:] if memory_map.events_lost else rows


def event_roles(events: Sequence[Event], live: Mapping[int, str]) -> list[str]:
    """For each event the role of its block; ``live``: {address: role} of what is alive now."""
    backward = Backward(events)
    roles = [""] * len(events)
    born: dict[int, int] = {}
    for i, event in enumerate(events):
        if event.size > 0:
            born[event.address] = i
            continue
        birth = born.pop(event.address, None)
        roles[i] = backward.role_of_the_dead(birth, i)
        if birth is not None:
            roles[birth] = roles[i]
    for address, birth in born.items():
        roles[birth] = live.get(address, "unknown")
    return roles


def line_of(site: int) -> str:
    return place_of(_core.site_frames(site) if site >= FIRST_SITE else (), "unknown")
