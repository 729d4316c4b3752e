"""Memory that runs out: what holds it, and what a collection would free now, told before it is too late or
right after.

It is told when a share of a device's or of the host's memory is in use at a mark (``memory_limit``), and when
CUDA's allocator has reported that it is out of memory.
"""

from leakprobe import _core
from leakprobe.cycles import find_cycles
from leakprobe.model.bounds import SHOWN_NODES, SHOWN_OWNERS, TOLD_TIMES
from leakprobe.model.finding import Note
from leakprobe.model.frames import Frame
from leakprobe.model.media import BUFFERS, family
from leakprobe.model.units import format_size
from leakprobe.torch import devices
from leakprobe.watch import control_group


class Pressure:
    """One watch's memory limit: ``limit`` is None, a share of what there is (below or equal to 1), or
    bytes.
    """

    def __init__(self, limit: float | None):
        self._limit = limit
        self._host_bytes = host_bytes() if limit is not None else 0
        self._told: set[str] = set()
        self._oom_count = 0
        self._times = 0
        self.notes: list[Note] = []

    def has_limit(self) -> bool:
        return self._limit is not None

    def reason_at(self, rss: int | None) -> tuple[str, str] | None:
        """(medium, why) if there is something new to tell at this mark; medium "" stands for the host."""
        return self.out_of_memory() or self._over_limit(rss)

    def out_of_memory(self) -> tuple[str, str] | None:
        """(medium, why) if the allocator has reported since the last call."""
        oom = _core.cuda_memory()["oom"]
        if oom is None or oom["count"] <= self._oom_count or self._times >= TOLD_TIMES:
            return None
        self._oom_count = oom["count"]
        self._times += 1
        why = (
            f"out of memory on cuda:{oom['device']}: {format_size(oom['wanted_bytes'])} wanted, {format_size(oom['allocated_bytes'])} "
            f"allocated, {format_size(oom['reserved_bytes'])} reserved"
        )
        return f"cuda:{oom['device']}", why

    def _over_limit(self, rss: int | None) -> tuple[str, str] | None:
        if self._limit is None:
            return None
        found = [(name, row["used"], row["total"]) for name, row in devices.read().items()]
        if rss is not None:
            found.append(("", rss, self._host_bytes))
        for medium, used, total in found:
            most = self._limit * total if self._limit <= 1 else self._limit
            if used > most and medium not in self._told:
                self._told.add(medium)
                return (
                    medium,
                    f"{format_size(used)} of {medium or 'the host'} in use, over the limit of {format_size(most)}",
                )
        return None

    def tell(self, step: int, medium: str, why: str) -> None:
        """Note who holds the memory now, and what a collection would free."""
        self.notes.append(Note(kind="memory_pressure", text=f"step {step}: {why}", medium=medium or None))
        try:
            self.notes += owner_notes(medium)
            self.notes.append(garbage_note(medium))
        except (
            Exception
        ) as error:  # a walk is under way; or there is no memory left for it, which is not for us to raise
            text = f"who holds it could not be read: {str(error) or type(error).__name__}"
            self.notes.append(Note(kind="gap", text=text, medium=medium or None))


def owner_notes(medium: str) -> list[Note]:
    """The largest owners of a device's blocks, or of the host's buffers."""
    from leakprobe.memory_map import memory_map

    found = memory_map()
    media = (
        {medium} if medium else {row.medium for row in found.rows if family(row.medium) in BUFFERS - {"cuda"}}
    )
    total = sum(row.size for row in found.rows if row.medium in media)
    stacks = {(row.medium, row.held_by(), row.where()): row for row in found.rows}
    notes = []
    for name, owner, where, count, size in found.by_owner(media, SHOWN_OWNERS):
        row = stacks[name, owner, where]
        held = f"held by {owner}" if row.owner else "held by no object of Python"
        text = f"{format_size(size)} of {format_size(total)}: {count} x {row.role} from {where}, {held}"
        frame = Frame(*row.stack[0]) if row.stack else None
        notes.append(Note(kind="memory_pressure", text=text, medium=name, live_bytes=size, allocation=frame))
    return notes


def garbage_note(medium: str) -> Note:
    """What gc.collect() would free: of the medium, or of all of the host's."""
    collectable = [c for c in find_cycles() if c.collectable]
    sizes = [
        sum(
            size
            for name, size in c.bytes.items()
            if name == medium or (not medium and family(name) != "cuda")
        )
        for c in collectable
    ]
    size = sum(sizes)
    if size == 0:
        text = "gc.collect() would free nothing of it now"
    else:
        largest = collectable[sizes.index(max(sizes))]
        text = f"gc.collect() would free {format_size(size)} of it now, in {sum(s > 0 for s in sizes)} cycles such as {' -> '.join(p['text'] for p in largest.path[:SHOWN_NODES])}"
    return Note(kind="memory_pressure", text=text, medium=medium or None, live_bytes=size)


def host_bytes() -> int:
    """Bytes that this process may have: of its control group, else of the machine."""
    group = control_group.read()
    return group.limit if group is not None and group.limit is not None else control_group.machine_bytes()
