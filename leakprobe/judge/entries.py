"""What a traced entry says in the words of a report: its main member, stacks, holder, path."""

import collections
import dataclasses
import itertools
from collections.abc import Iterable, Mapping, Sequence

from leakprobe import _core
from leakprobe.judge.causes.case import depth_of
from leakprobe.judge.statements import growing_frame
from leakprobe.model.entry import Entry, Member, Series, rows_of, sum_series
from leakprobe.model.finding import HolderRow, PathRow
from leakprobe.model.frames import FIRST_SITE, Frame, FrameTuple, innermost_user_frame, is_user_file
from leakprobe.model.history import History
from leakprobe.model.thresholds import EARLY_SHARE, HALF
from leakprobe.model.units import format_size
from leakprobe.model.verdict import Judgement, Verdict

#: Key of the nodes of autograd graphs: no object that the census counts, no block of the ledger.
AUTOGRAD_KEY = ("block", "native", 0)


@dataclasses.dataclass(frozen=True, slots=True)
class Seen:
    """An entry as of the mark ``step``, what is known of its members' lines, and the verdict on the entry.

    ``met``: the same as a walk met it, where the numbers are of a later look.  ``has_rested``: as of a later
    look its main line grows no more.
    """

    entry: Entry
    step: int
    bases: Mapping[tuple[str, int | str, int], History] = dataclasses.field(default_factory=dict)  # by key
    merged: Sequence[tuple[int, int]] = ()  # (first, last) of steps that are known together only
    judgement: Judgement | None = None
    grown_site: int = 0  # the line that enlarges its one block, where that is known
    met: Entry | None = None
    has_rested: bool = False

    @property
    def as_met(self) -> Entry:
        """The holder, its path and what it keeps as they belong together."""
        return self.entry if self.met is None else self.met

    @property
    def rate(self) -> float:
        """Bytes a step; 0 where nothing grows."""
        return self.judgement.rate if self.judgement is not None else 0.0


def series_of(entry: Entry) -> Series:
    """What is alive below the holder, of all members together."""
    return sum_series(m.series for m in entry.members)


def main_of(members: Iterable[Member]) -> Member:
    """The member with most bytes; autograd nodes, which have no site, only where there is nothing else."""
    return max(members, key=lambda m: (m.medium != "native", m.main_bytes, m.count, m.site, str(m.type)))


def main_member(entry: Entry) -> Member:
    """What the finding is about: the member that the path ends at, unless another has far more bytes.

    Autograd nodes only where there is nothing else.
    """
    most = main_of(entry.members)
    at = entry.sample
    shown = entry.members[at] if at is not None and at < len(entry.members) else most
    return shown if shown.main_bytes >= HALF * most.main_bytes and shown.key != AUTOGRAD_KEY else most


def stack_of(site: int, deep_site: int = 0) -> Sequence[FrameTuple]:
    """The fullest stack known for a site: (filename, lineno, function), innermost first.

    deep_site: one of the same line that is known to have a whole stack, or 0.
    """
    for one in (deep_site, *reversed(_core.site_children(site)), site):
        if one >= FIRST_SITE:
            frames = _core.site_frames(one)
            if frames:
                return frames
    return []


def stack_of_member(member: Member) -> Sequence[FrameTuple]:
    return stack_of(member.site, member.deep_site)


def stack_that_made(entry: Entry, main: Member) -> Sequence[FrameTuple]:
    """The stack of the main member; where that is not known up to the user's code, of the largest one of
    those that most bytes of the entry come from by line.
    """
    own = stack_of_member(main)
    if innermost_user_frame(own):
        return own
    bytes_by_line: collections.Counter[FrameTuple] = collections.Counter()
    largest: dict[FrameTuple, Sequence[FrameTuple]] = {}
    for member in sorted(entry.members, key=lambda m: -m.main_bytes):
        stack = stack_of_member(member)
        line = innermost_user_frame(stack)
        if line is not None:
            bytes_by_line[line] += member.main_bytes
            largest.setdefault(line, stack)
    return largest[bytes_by_line.most_common(1)[0][0]] if bytes_by_line else own


def type_of(entry: Entry, main: Member) -> str | None:
    """The type of the main member; for a buffer, of the nearest object on the path that owns it."""
    if main.type is not None:
        return main.type
    owners = (node.type for node in reversed(entry.path) if node.type not in (None, "", "buffer", "block"))
    return next(owners, None)


def grown_at_site(entry: Entry) -> int:
    """Where the holder was last enlarged; 0 if that was before what grows in it, and so tells nothing of it.

    Lists, dicts and sets have room for at most five times what they had when they were enlarged.
    """
    if entry.holder is None:
        return 0
    births = sorted(step for step, _, _ in series_of(entry))
    if births and entry.holder.grown_at_step < births[int(EARLY_SHARE * len(births))]:
        return 0
    return entry.holder.grown_at_site


def item_of(entry: Entry) -> Member | None:
    """The member that stands for what the holder itself refers to: the largest number of that type."""
    holder = entry.holder
    pairs = itertools.pairwise(entry.path)
    item = next((below for above, below in pairs if holder is not None and above.text == holder.text), None)
    same = [m for m in entry.members if item is not None and m.type == item.type]
    return max(same, key=lambda m: m.count, default=None)


def growing_stack(entry: Entry, found: Judgement | None = None, grown_site: int = 0) -> Sequence[FrameTuple]:
    """Where the holder was last enlarged, innermost first: as its memory tells, else as the source does.

    grown_site: the line that is known to enlarge its one block, or 0.
    """
    if entry.holder is None:
        return []
    is_replaced = found is not None and found.verdict is Verdict.REPLACED
    site = grown_site or (is_replaced and entry.holder.item_site) or grown_at_site(entry)
    frames = stack_of(site) if site >= FIRST_SITE else []
    if innermost_user_frame(frames):
        return frames
    depth = depth_of(entry.holder, entry.path)
    if entry.path and entry.holder.text != entry.path[depth].text:
        depth += 1  # a name in a namespace
    made = growing_frame(entry.path, depth, stack_of_member(main_member(entry)))
    made = made or growing_frame_of_item(entry, depth)
    return [made] if made else call_of_library(entry) or frames


def growing_frame_of_item(entry: Entry, depth: int) -> FrameTuple | None:
    """The same from where that was made which the holder refers to: what it keeps may be older, and come from
    elsewhere.
    """
    item = item_of(entry)
    stack = stack_of_member(item) if item is not None else ()
    return growing_frame(entry.path, depth, stack) if stack else None


def call_of_library(entry: Entry) -> Sequence[FrameTuple]:
    """Where the user called the library that made what the holder refers to: it is the library's own then."""
    item = item_of(entry)
    frames = stack_of_member(item) if item is not None else []
    is_own = any(is_user_file(filename) for filename, _, _ in frames[:1])
    return frames if not is_own and innermost_user_frame(frames) else []


def holder_of(entry: Entry, found: Judgement | None = None, grown_site: int = 0) -> HolderRow | None:
    """The holder for the report; where its one item is replaced, the line of the item is what made it
    grow.
    """
    holder = entry.holder
    if holder is None:
        return None
    frames = growing_stack(entry, found, grown_site)
    line = innermost_user_frame(frames) or next(iter(frames), None)
    return {
        "text": holder.text,
        "type": holder.type,
        "grown_at": Frame(*line).to_dict() if line else None,
        "length": holder.length,
    }


def path_with_view(entry: Entry) -> list[PathRow] | None:
    """The path; of a pinned block at its end, how much is viewed."""
    path, view = rows_of(entry.path), entry.view
    if not path or view is None or view.viewed_bytes is None or path[-1]["type"] != "buffer":
        return path
    last = path[-1]
    return [
        *path[:-1],
        {**last, "text": f"{last['text']}, {view.viewed_bytes} of them viewed"},
    ]


def view_text(entry: Entry) -> str:
    """What a kept tensor or array views of the pinned block that it keeps; "" where there is none."""
    view = entry.view
    if view is None:
        return ""
    parts = [f"views {format_size(view.viewed_bytes)}" if view.viewed_bytes is not None else "lies"]
    if view.storage_bytes is not None:
        parts.append(f"of a storage of {format_size(view.storage_bytes)}")
    return f"; the {view.type} shown {' '.join(parts)} in a pinned block of {format_size(view.block_bytes)}"
