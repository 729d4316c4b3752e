"""The verdict on what one holder keeps: that on its main line, with the rate of all."""

import dataclasses
import itertools
from collections.abc import Sequence

from leakprobe.evidence.cohorts import longest_life
from leakprobe.evidence.readings import of_part, of_uncounted, survivors_of_series
from leakprobe.judge import rates
from leakprobe.judge.bounded import bound_of
from leakprobe.judge.enlargement import carries_over
from leakprobe.judge.entries import (
    AUTOGRAD_KEY,
    Seen,
    item_of,
    main_member,
    main_of,
    series_of,
    stack_of_member,
)
from leakprobe.judge.looks import Walk
from leakprobe.judge.same_lines import line_of_site, summed
from leakprobe.judge.verdicts import judge
from leakprobe.model.entry import Entry, Member, sum_series
from leakprobe.model.history import Facts, History
from leakprobe.model.media import is_buffer
from leakprobe.model.thresholds import HALF, LAG
from leakprobe.model.verdict import Judgement, Verdict

#: Verdicts on the main member beside which another one may grow.
LEAVES_OTHERS_OPEN = frozenset({Verdict.TOO_EARLY, Verdict.STOPPED, Verdict.TURNOVER, Verdict.FILLING})
#: Verdicts on what is freed in time, or as a whole.
RELEASED = frozenset({Verdict.TURNOVER, Verdict.FILLING})
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
    alone = [judged_whole(with_members(seen, [m]), walk, warmup, limit) for m in seen.entry.members]
    alone = [
        judged_whole(beside_released(one, alone), walk, warmup, limit) if are_nodes_that_grow(one) else one
        for one in alone
    ]
    sure = [member for one in alone if is_leak(one.judgement) for member in one.entry.members]
    return judged_whole(with_members(seen, sure), walk, warmup, limit) if sure else found


def are_nodes_that_grow(seen: Seen) -> bool:
    return is_leak(seen.judgement) and all(member.key == AUTOGRAD_KEY for member in seen.entry.members)


def beside_released(nodes: Seen, every: Sequence[Seen]) -> Seen:
    """Autograd nodes, whose deaths are not counted, without those of steps from which something else is left
    that is released in the end: they go with it.
    """
    (member,) = nodes.entry.members
    released = {
        step
        for other in every
        if other.judgement is not None and other.judgement.verdict in RELEASED
        for step, *_ in series_of(other.entry)
    }
    series = tuple((step, count, size) for step, count, size in member.series if step not in released)
    count, size = sum(count for _, count, _ in series), sum(size for *_, size in series)
    left = dataclasses.replace(member, series=series, count=round(count), bytes=round(size))
    return with_members(nodes, [left])


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
    facts, base = facts_of(seen, walk, limit), base_of(seen, same)
    if base is None:
        facts = dataclasses.replace(facts, is_counted=False)
        history = of_uncounted(seen.step, warmup, survivors, facts, nodes_before(seen, walk))
    else:
        history = of_part(base, seen.step, survivors, facts)
    judgement = judge(history)
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


def nodes_before(seen: Seen, walk: Walk) -> list[tuple[int, int]]:
    """(step, count) of the autograd nodes that the walks before met in the holder."""
    holder = seen.entry.holder
    known = walk.readings.get(holder.address, ()) if holder is not None else ()
    return [(reading.step, reading.nodes) for reading in known if reading.step < seen.step]


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
    bound = bound_of(seen, walk.readings)
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


def table_of_items(entry: Entry) -> float:
    """Bytes of the tables of the holders, of which one is known, that are for what grows in them."""
    holder, items = entry.holder, item_of(entry)
    if holder is None or not holder.length or items is None:
        return 0.0
    most = items.count if entry.holder_count > 1 else holder.length
    return holder.table_bytes * min(items.count, most) / holder.length
