"""The verdict on what one holder keeps: that on its main line, with the rate of all."""

import bisect
import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence

from leakprobe.evidence.cohorts import longest_life
from leakprobe.evidence.readings import of_part, survivors_of_series
from leakprobe.judge import rates
from leakprobe.judge.enlargement import carries_over
from leakprobe.judge.entries import (
    Seen,
    item_of,
    main_member,
    main_of,
    series_of,
    stack_of_member,
)
from leakprobe.judge.looks import Key, Look, Walk
from leakprobe.judge.same_lines import line_of_site, summed
from leakprobe.judge.verdicts import judge
from leakprobe.model.entry import Entry, Member, sum_series
from leakprobe.model.facts import LEAST_ROOM, ROOM_OF_A_LIST, TEE_BLOCK_ITEMS
from leakprobe.model.history import Facts, History, Spans
from leakprobe.model.media import is_buffer
from leakprobe.model.thresholds import HALF, LAG
from leakprobe.model.verdict import Judgement, Verdict

#: Verdicts on the main member beside which another one may grow.
LEAVES_OTHERS_OPEN = frozenset({Verdict.TOO_EARLY, Verdict.STOPPED, Verdict.TURNOVER, Verdict.FILLING})
BUFFER_TYPES = frozenset({"bytearray", "bytes", "str", "array.array", "mmap.mmap"})


def judged(seen: Seen, walk: Walk, warmup: int, limit: float) -> Seen:
    """With the verdict on all that the entry's holder keeps; where that is not that it grows, on the members
    of which each by itself is: what else lies in the holder, larger or older, says nothing of them.
    """
    found = judged_whole(seen, walk, warmup, limit)
    if found.judgement is None or found.judgement.verdict not in LEAVES_OTHERS_OPEN:
        return found
    if found.judgement.verdict is Verdict.STOPPED and is_leak(verdict_on_line(seen)):
        return found  # its newest are elsewhere still, as those of a window that is copied now and then
    alone = (judged_whole(with_members(seen, [m]), walk, warmup, limit) for m in seen.entry.members)
    sure = [member for one in alone if is_leak(one.judgement) for member in one.entry.members]
    return judged_whole(with_members(seen, sure), walk, warmup, limit) if sure else found


def verdict_on_line(seen: Seen) -> Judgement | None:
    """That on the main member's line, whoever keeps it."""
    base = base_of(seen, of_one_line(seen.entry, judged_member(seen.entry)))
    return None if base is None else judge(base)


def with_members(seen: Seen, members: Sequence[Member]) -> Seen:
    return dataclasses.replace(
        seen, entry=dataclasses.replace(seen.entry, members=tuple(members), sample=None)
    )


def is_leak(judgement: Judgement | None) -> bool:
    return judgement is not None and judgement.verdict is Verdict.LEAK


def judged_whole(seen: Seen, walk: Walk, warmup: int, limit: float) -> Seen:
    """With the verdict on the entry's main member, with those of its line that other callers made, and the
    rate of all.
    """
    same = of_one_line(seen.entry, judged_member(seen.entry))
    count = sum(member.count for member in same)
    survivors = survivors_of_series(
        seen.step, sum_series(member.series for member in same), seen.merged, warmup
    )
    facts = facts_of(seen, walk, limit)
    judgement = judge(of_part(base_of(seen, same), seen.step, warmup, survivors, facts))
    if judgement.bytes_per_step is not None and judgement.onset is not None:
        everything = survivors_of_series(seen.step, series_of(seen.entry), seen.merged, warmup)
        until = seen.step - max(judgement.age, LAG)
        rate = rates.of_all(judgement.bytes_per_step, survivors, everything, judgement.onset, until)
        slots = table_of_items(seen.entry) * (judgement.count_per_step or 0.0) / max(1, count)
        judgement = dataclasses.replace(judgement, bytes_per_step=rate.plus(slots))
    return dataclasses.replace(seen, judgement=judgement)


def of_one_line(entry: Entry, main: Member) -> list[Member]:
    """The member, and those of the same type and line by way of other callers."""
    alike = [m for m in entry.members if (m.medium, m.type_id) == (main.medium, main.type_id)]
    if len(alike) == 1:
        return alike
    line = line_of_site(main.site)
    return [member for member in alike if line_of_site(member.site) == line]


def base_of(seen: Seen, members: Sequence[Member]) -> History | None:
    """What is known of the line itself: of all its sites, or of the main member's."""
    bases = [seen.bases[member.key] for member in members if member.key in seen.bases]
    whole = summed(bases) if len(bases) > 1 else None
    return whole or seen.bases.get(main_member(seen.entry).key)


def judged_member(entry: Entry) -> Member:
    """The member that the verdict on the entry rests on: the one it is about, unless nothing counts its
    births.
    """
    main = main_member(entry)
    return main if main.series else main_of(entry.members)


def enlarged(seen: Seen) -> Judgement | None:
    """The verdict on what is replaced by larger ones, once its lines have told whether content is carried
    over.
    """
    judgement = seen.judgement
    if judgement is None or judgement.verdict is not Verdict.REPLACED:
        return judgement
    if (
        is_extended(seen)
        or is_in_place(seen)
        or carries_over(stack_of_member(main_member(seen.entry)), seen.entry.path)
    ):
        return judgement
    return None


def is_extended(seen: Seen) -> bool:
    """True if the interpreter was seen to extend the block, with what was in it."""
    base = seen.bases.get(main_member(seen.entry).key)
    return base is not None and base.facts.carries_over is True


def is_in_place(seen: Seen) -> bool:
    """True if the blocks belong to one object, and it got more of them after it was born."""
    newest = max((step for step, _, _ in series_of(seen.entry)), default=seen.step)
    base = seen.bases.get(main_member(seen.entry).key)
    sizes = base.sizes if base is not None else ()
    later = [size for step, _, size in sizes if step > newest]
    return any(after > before for before, after in itertools.pairwise(later))


def facts_of(seen: Seen, walk: Walk, limit: float) -> Facts:
    entry = seen.entry
    if entry.kind == "garbage":
        pinned = pinned_a_step(seen, walk.collector_is_on)
        return Facts(
            is_garbage=True,
            is_collectable=entry.collectable is not False,
            pins=pinned > limit and not was_collected(seen),
        )
    bound = bound_of(seen, walk.lengths)
    length, most = (None, None) if bound is None else bound
    return Facts(length=length, bound=most, has_graph=entry.has_graph)


def was_collected(seen: Seen) -> bool:
    """True if others of its line died after they had been garbage for a while: collections come, and what is
    left has got old enough to wait for a rare one; or if the line has grown no more since.
    """
    if seen.has_rested:
        return True
    base = seen.bases.get(main_member(seen.entry).key)
    return base is not None and longest_life(base) > max(base.age, LAG)


def pinned_a_step(seen: Seen, collector_is_on: bool) -> float:
    """Bytes a step of buffers that cycles keep; of all, where the collector is switched off.  None where the
    objects have more themselves: collections come by the number of these.
    """
    members, pinned = seen.entry.members, seen.entry.bytes
    if collector_is_on:
        buffers = sum(m.bytes for m in members if is_buffer(m.medium) or m.type in BUFFER_TYPES)
        pinned = buffers if buffers > HALF * pinned else 0
    first = min((step for step, _, _ in series_of(seen.entry)), default=seen.step)
    return pinned / max(1, seen.step - first)


def bound_of(seen: Seen, lengths: dict[int, list[tuple[int, int]]]) -> tuple[int, int] | None:
    """(length, most) of a holder that bounds itself: deque(maxlen), lru_cache(maxsize), a list filled in
    place.
    """
    entry, holder = seen.entry, seen.entry.holder
    if holder is None:
        return None
    if holder.bound is not None:
        return holder.length or 0, holder.bound
    if holder.type.endswith("_tee_dataobject"):
        most = max(m.count for m in entry.members)
        return (most, TEE_BLOCK_ITEMS) if most < TEE_BLOCK_ITEMS else None
    return filled_in_place(seen, lengths.get(holder.address, ())) if holder.type == "list" else None


def filled_in_place(seen: Seen, lengths: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
    """(items that were set, length) of a list whose length stays while its items are set one after
    another.
    """
    entry = seen.entry
    grown_at = entry.holder.grown_at_step if entry.holder is not None else None
    since = [(step, length) for step, length in lengths if step > (grown_at or 0)] or lengths[-1:]
    if not since or entry.holder_count != 1 or len({length for _, length in since}) > 1:
        return None
    (first_step, _), (last_step, last) = since[0], since[-1]
    births = [step for step, _, _ in series_of(entry)]
    was_set = any(step >= first_step for step in births)  # else the length tells nothing: none came
    stays = last_step - first_step > LAG and was_set and len(births) <= last
    if not stays and not is_set_in_place(seen, last):
        return None
    return min(last, max(m.count for m in entry.members)), last


def believable(walk: Walk, look: Look) -> dict[int, list[tuple[int, int]]]:
    """The lengths of holders, but of those that seemed to be filled in place: since the walk their line has
    gained more than they had places left.
    """
    alive = {
        s.key: (min((s.history.live, *s.history.spans.lows[-1:])), s.live_count / max(1, s.history.live))
        for s in look.suspects
    }
    refuted = {
        seen.entry.holder.address
        for seen in walk.seen
        if seen.entry.holder is not None and gained_since(seen, alive) > places_left(seen, walk.lengths)
    }
    return {address: lengths for address, lengths in walk.lengths.items() if address not in refuted}


def gained_since(seen: Seen, alive: Mapping[Key, tuple[float, float]]) -> float:
    """By how many items one of the entry's lines rose after the walk, at most; ``alive``: stamps of the line
    now, and items of this type for each, as an item may have several.
    """
    known = [
        key for key in {member.key for member in seen.entry.members} if key in alive and key in seen.bases
    ]
    rises = ((alive[key][0] - seen.bases[key].live) * min(1.0, alive[key][1]) for key in known)
    return max(rises, default=0.0)


def places_left(seen: Seen, lengths: dict[int, list[tuple[int, int]]]) -> float:
    bound = bound_of(seen, lengths)
    return bound[1] - bound[0] if bound is not None else math.inf


def is_set_in_place(seen: Seen, length: int) -> bool:
    """True if more items were born since the list was last enlarged than it had room for then, an eighth and
    six; of one that was appended to before, only if their count is level since it must be full.
    """
    holder, items = seen.entry.holder, item_of(seen.entry)
    if holder is None or not holder.grown_at_step or items is None:
        return False
    each = max(1, items.count / max(1, length))  # an item may have several of them
    room = each * (length / ROOM_OF_A_LIST + LEAST_ROOM)
    since = [(step, count) for step, count, _ in sorted(items.series) if step > holder.grown_at_step]
    born = list(itertools.accumulate(count for _, count in since))
    full = bisect.bisect_right(born, room)
    if full == len(born):
        return False
    base = seen.bases.get(items.key)
    was_appended_to = holder.grown_at_step > holder.step
    if base is None or not was_appended_to:
        return True
    return is_level_since(base.spans, since[full][0], born[-1] - born[full])


def is_level_since(spans: Spans, step: int, born: float) -> bool:
    """True unless the floor rose by more than a quarter of what was born since."""
    at = max(0, math.ceil((step - spans.first) / spans.width))
    return at >= len(spans.lows) or spans.lows[-1] - spans.lows[at] <= HALF * HALF * born


def table_of_items(entry: Entry) -> float:
    """Bytes of the tables of the holders, of which one is known, that are for what grows in them."""
    holder, items = entry.holder, item_of(entry)
    if holder is None or not holder.length or items is None:
        return 0.0
    most = items.count if entry.holder_count > 1 else holder.length
    return holder.table_bytes * min(items.count, most) / holder.length
