"""Pickles that PyTorch's own ``torch/cuda/_memory_viz.py`` and pytorch.org/memory_viz open.

The format is that of torch.cuda.memory._snapshot(): plain dicts, lists, strings and numbers, protocol 4,
since the page's reader knows no newer one.  CUDA devices keep their numbers; media of the host follow as
devices of their own, named under the key "leakprobe", which readers ignore.
"""

import os
import pickle
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypedDict

from leakprobe.files import write_private
from leakprobe.model.blocks import Blocks, EventOfMedium
from leakprobe.model.frames import FrameTuple
from leakprobe.model.media import BUFFERS, HOOKED_ON_HOST, UNOWNED, family
from leakprobe.model.report import Report
from leakprobe.model.units import counted, span_text
from leakprobe.report.clean import clean

PROTOCOL = 4
#: Blocks with a larger gap between them are in different segments.
GAP = 2 << 20
#: Gives the frames of a site, innermost first.
StackOf = Callable[[int], Iterable[FrameTuple]]


class ShownFrame(TypedDict):
    """A frame of a stack."""

    filename: str
    line: int
    name: str


class Block(TypedDict):
    """A live block."""

    address: int
    size: int
    frames: list[ShownFrame]


class Tile(Block):
    """A block or a gap of a segment."""

    requested_size: int
    state: str


class Segment(TypedDict):
    """Memory that the device's allocator has got at once."""

    device: int
    address: int
    total_size: int
    allocated_size: int
    active_size: int
    requested_size: int
    stream: int
    segment_type: str
    segment_pool_id: tuple[int, int]
    is_expandable: bool
    frames: list[ShownFrame]
    blocks: list[Tile]


class TracedEvent(TypedDict):
    """What was done with a block."""

    action: str
    addr: int
    size: int
    stream: int
    frames: list[ShownFrame]


class TraceEvent(TracedEvent, total=False):
    """The same; of some with what the block is for."""

    category: str


class Snapshot:
    """Devices, their segments and their traces, put together step by step."""

    def __init__(self, media: Collection[str]) -> None:
        cuda = [int(m.partition(":")[2]) for m in media if family(m) == "cuda"]
        first = max(cuda, default=-1) + 1
        others = [m for m in HOOKED_ON_HOST if m in media]
        self.device_of = {f"cuda:{n}": n for n in cuda} | {m: first + i for i, m in enumerate(others)}
        self.traces: list[list[TraceEvent]] = [[] for _ in range(first + len(others))]
        self.segments: list[Segment] = []

    def add_segments(self, medium: str, blocks: Iterable[Block]) -> None:
        """blocks: they are put into segments that they tile together with the
        gaps.
        """
        run: list[Block] = []
        for block in sorted(blocks, key=lambda b: b["address"]):
            if run and not 0 <= block["address"] - end(run[-1]) <= GAP:
                self._add_segment(medium, run)
                run = []
            run.append(block)
        if run:
            self._add_segment(medium, run)

    def _add_segment(self, medium: str, run: Sequence[Block]) -> None:
        tiles: list[Tile] = []
        at = run[0]["address"]
        for block in run:
            if block["address"] > at:
                tiles.append(
                    {
                        "address": at,
                        "size": block["address"] - at,
                        "requested_size": 0,
                        "state": "inactive",
                        "frames": [],
                    }
                )
            tiles.append({**block, "requested_size": block["size"], "state": "active_allocated"})
            at = end(block)
        active = sum(b["size"] for b in run)
        self.segments.append({
            "device": self.device_of[medium], "address": run[0]["address"], "total_size": at - run[0]["address"],
            "allocated_size": active, "active_size": active, "requested_size": active, "stream": 0,
            "segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": False, "frames": [], "blocks": tiles,
        })  # fmt: skip

    def add_event(
        self,
        medium: str,
        action: str,
        address: int,
        size: int,
        frames: list[ShownFrame],
        category: str | None = None,
    ) -> None:
        event: TraceEvent = {"action": action, "addr": address, "size": size, "stream": 0, "frames": frames}
        if category is not None:
            event["category"] = category
        self.traces[self.device_of[medium]].append(event)

    def to_dict(self, about: Mapping[str, object]) -> dict[str, object]:
        for trace in self.traces:
            known = {event.get("category") for event in trace}
            if known - {None} and "unknown" not in known:  # the page can't do without
                trace[:0] = [
                    {"action": action, "addr": 1, "size": 1, "stream": 0, "frames": [], "category": "unknown"}
                    for action in ("alloc", "free_requested", "free_completed")
                ]
        return {
            "segments": self.segments,
            "device_traces": self.traces,
            "allocator_settings": {},
            "leakprobe": {"devices": {number: medium for medium, number in self.device_of.items()}, **about},
        }


def end(block: Block) -> int:
    return block["address"] + block["size"]


def frames_of(stack: Iterable[FrameTuple], *titles: str | None) -> list[ShownFrame]:
    """Frames as the page shows them; each of ``titles``, such as the owner, is a frame above them."""
    shown: list[ShownFrame] = [
        {"filename": "leakprobe", "line": 0, "name": clean(title)} for title in titles if title
    ]
    for filename, line, name in stack:
        shown.append({"filename": clean(filename), "line": int(line), "name": clean(name)})
    return shown


def nobody(medium: str) -> str:
    """What stands for the owner of a block that no object was seen to own."""
    return "owner not seen" if family(medium) in UNOWNED else "held by nothing in Python"


def from_map(memory_map: Blocks, stack_of: StackOf) -> dict[str, object]:
    """The snapshot of a MemoryMap."""
    rows = [row for row in memory_map.rows if family(row.medium) in BUFFERS]
    events = [e for e in memory_map.events if family(e.medium) in BUFFERS]
    made = Snapshot({row.medium for row in rows} | {e.medium for e in events})
    shown = {
        row.address: frames_of(
            row.stack,
            f"held by {row.owner}" if row.owner else nobody(row.medium),
            f"{row.role}, born in step {row.step}",
        )
        for row in rows
    }
    for medium in made.device_of:
        blocks: list[Block] = [
            {"address": r.address, "size": r.size, "frames": shown[r.address]}
            for r in rows
            if r.medium == medium
        ]
        made.add_segments(medium, blocks)
    add_events(made, memory_map, events, shown, stack_of)
    return made.to_dict({"step": memory_map.step, "events_lost": memory_map.events_lost})


def add_events(
    made: Snapshot,
    memory_map: Blocks,
    events: Sequence[EventOfMedium],
    shown: Mapping[int, list[ShownFrame]],
    stack_of: StackOf,
) -> None:
    rows = {row.address: row for row in memory_map.rows}
    last_birth = {event.address: i for i, event in enumerate(events) if event.size > 0}
    stacks: dict[int, list[ShownFrame]] = {}
    for i, event in enumerate(events):
        if event.site not in stacks:
            stacks[event.site] = frames_of(stack_of(event.site))
        row = rows.get(event.address) if last_birth.get(event.address) == i else None
        frames = shown[event.address] if row is not None else stacks[event.site]
        if event.size > 0:
            made.add_event(
                event.medium,
                "alloc",
                event.address,
                event.size,
                frames,
                row.role if row is not None else "unknown",
            )
        else:
            for action in ("free_requested", "free_completed"):
                made.add_event(event.medium, action, event.address, -event.size, frames)


def from_report(report: Report) -> dict[str, object]:
    """The snapshot of a report: what its largest sites have alive, by birth, in the order of steps."""
    sites = [s for s in report.sites if family(s["medium"]) in BUFFERS]
    made = Snapshot({s["medium"] for s in sites})
    owners = {(f.medium, f.allocation): " -> ".join(p["text"] for p in f.path or []) for f in report.findings}
    at = dict.fromkeys(made.device_of, 1 << 20)
    pieces = sorted(
        (first, last, s["medium"], number, count, size)
        for number, s in enumerate(sites)
        for first, last, count, size in s["survivors"]
        if size > 0
    )
    blocks: dict[str, list[Block]] = {}
    for first, last, medium, number, count, size in pieces:
        site = sites[number]
        owner = owners.get((medium, site["allocation"]))
        stack = [(f.filename, f.lineno, f.function) for f in site["allocation_stack"]]
        frames = frames_of(
            stack,
            f"held by {owner}" if owner else None,
            f"{counted(count, 'block')} born in {span_text(first, last)}",
        )
        blocks.setdefault(medium, []).append({"address": at[medium], "size": size, "frames": frames})
        made.add_event(medium, "alloc", at[medium], size, frames)
        at[medium] += -(-size // 512) * 512
    for medium, found in blocks.items():
        made.add_segments(medium, found)
    return made.to_dict({"verdict": report.verdict})


def to_memory_viz(report: Report) -> bytes:
    return pickle.dumps(from_report(report), protocol=PROTOCOL)


def write_map(memory_map: Blocks, path: str | os.PathLike[str], stack_of: StackOf) -> None:
    """``stack_of(site)``: the frames of a site."""
    write_private(path, pickle.dumps(from_map(memory_map, stack_of), protocol=PROTOCOL), "memory_viz")
