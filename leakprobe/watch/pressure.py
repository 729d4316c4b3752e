"""Memory that runs out: what holds it, and what a collection would free now, told before it is too late or
right after.

It is told when a share of a device's or of the host's memory is in use at a mark (``memory_limit``), and when
CUDA's allocator has reported that it is out of memory.
"""

from leakprobe import _core
from leakprobe.model.bounds import SHOWN_NODES, SHOWN_OWNERS, TOLD_TIMES
from leakprobe.model.finding import Note
from leakprobe.model.frames import Frame
from leakprobe.model.media import BUFFERS, family
from leakprobe.model.units import counted, format_size
from leakprobe.torch.devices import Devices
from leakprobe.watch import control_group


class Pressure:
    """One watch's memory limit: ``limit`` is None, a share of what there is (below or equal to 1), or
    bytes.
    """

    def __init__(self, limit: float | None, devices: Devices):
        self._limit, self._devices = limit, devices
        self._host_bytes = host_bytes() if limit is not None else 0
        self._told: set[str] = set()
        self._oom_count = 0
        self._times = 0
        self.notes: list[Note] = []

    def is_over_limit(self) -> bool:
        """True if a limit is passed now that was not told: cheap enough for each mark."""
        return self._limit is not None and self._over_limit(_core.rss_bytes(), anew=False) is not None

    def reason_at(self, rss: int | None) -> tuple[str, str] | None:
        """(medium, why) if there is something new to tell at this mark; medium "" stands for the host."""
        reason = self.out_of_memory()
        if reason is None and (over := self._over_limit(rss, anew=True)) is not None:
            medium, used, most = over
            self._told.add(medium)
            what = f"{format_size(used)} of {medium or 'the host'} in use"
            reason = medium, f"{what}, over the limit of {format_size(most)}"
        return reason

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

    def look_after(self, step: int, kind: type[BaseException] | None) -> None:
        """Tell if memory ran out since the last mark.  ``kind``: the type of the exception that ended the
        loop, which is all there is to go by where no hook was in place.
        """
        reason = self.out_of_memory()
        says_so = kind is not None and kind.__name__ == "OutOfMemoryError"
        if reason is None and says_so and not self._oom_count:
            reason = "cuda", "out of memory on a device, as torch's exception says"
        if reason is not None:
            self.tell(step, *reason)

    def _over_limit(self, rss: int | None, *, anew: bool) -> tuple[str, int, float] | None:
        """(medium, bytes in use, limit) of the first that is above and was not told; ``anew``: devices that
        came into use are looked for.
        """
        if self._limit is None:
            return None
        found = [(name, *of_device) for name, of_device in self._devices.usage(anew).items()]
        if rss is not None:
            found.append(("", rss, self._host_bytes))
        for medium, used, total in found:
            most = self._limit * total if self._limit <= 1 else self._limit
            if used > most and medium not in self._told:
                return medium, used, most
        return None

    def tell(self, step: int, medium: str, why: str) -> None:
        """Note who holds the memory now, and what a collection would free."""
        self.notes.append(Note(kind="memory_pressure", text=f"step {step}: {why}", medium=medium or None))
        try:
            with _core.QuietCollector():
                self.notes += owner_notes(medium)
                self.notes.append(garbage_note(medium))
        except (
            Exception
        ) as error:  # a walk is under way; or there is no memory left for it, which is not for us to raise
            text = f"who holds it could not be read: {str(error) or type(error).__name__}"
            self.notes.append(Note(kind="gap", text=text, medium=medium or None))


def owner_notes(medium: str) -> list[Note]:
    """The largest owners of the blocks of a device or of all, or of the host's buffers."""
    from leakprobe.memory_map import memory_map

    found = memory_map()
    media = {
        row.medium for row in found.rows if family(row.medium) in BUFFERS and is_part(row.medium, medium)
    }
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


def is_part(name: str, medium: str) -> bool:
    """True for a medium of the host where ``medium`` is "", else for that device, or any for "cuda"."""
    return medium in (name, family(name)) if medium else family(name) != "cuda"


def garbage_note(medium: str) -> Note:
    """What gc.collect() would free: of the medium, or of all of the host's."""
    found = _core.collectable(medium)
    size = found["bytes"]
    if size == 0:
        text = "gc.collect() would free nothing of it now"
    else:
        path = " -> ".join(element["text"] for element in found["path"][:SHOWN_NODES])
        cycles = counted(found["count"], "cycle")
        text = f"gc.collect() would free {format_size(size)} of it now, in {cycles} such as {path}"
    return Note(kind="memory_pressure", text=text, medium=medium or None, live_bytes=size)


def host_bytes() -> int:
    """Bytes that this process may have: of its control group, else of the machine."""
    group = control_group.read()
    return group.limit if group is not None and group.limit is not None else control_group.machine_bytes()
