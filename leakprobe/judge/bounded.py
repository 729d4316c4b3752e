"""Holders that bound themselves: containers with a largest length, and lists whose places are filled."""

import bisect
import itertools
import math
from collections.abc import Mapping, Sequence

from leakprobe.judge.entries import AUTOGRAD_KEY, Seen, item_of, series_of
from leakprobe.judge.looks import HolderReading, Key, Look, Readings, Walk
from leakprobe.model.entry import Entry
from leakprobe.model.facts import LEAST_ROOM, ROOM_OF_A_LIST, TEE_BLOCK_ITEMS
from leakprobe.model.history import Spans
from leakprobe.model.thresholds import HALF, LAG, LEAST_PLACES


def bound_of(seen: Seen, readings: Readings) -> tuple[int, int] | None:
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
    return filled_in_place(seen, readings.get(holder.address, ())) if holder.type == "list" else None


def reading_of(entry: Entry, step: int) -> HolderReading | None:
    """Of the entry's holder, if it has a length."""
    holder = entry.holder
    if holder is None or holder.length is None:
        return None
    most = max(m.count for m in entry.members)
    nodes = sum(m.count for m in entry.members if m.key == AUTOGRAD_KEY)
    return HolderReading(holder.address, step, holder.length, holder.filled, most, nodes)


def filled_in_place(seen: Seen, readings: Sequence[HolderReading]) -> tuple[int, int] | None:
    """(items that were set, length) of a list whose length stays while its items are set one after
    another.
    """
    entry = seen.entry
    grown_at = entry.holder.grown_at_step if entry.holder is not None else None
    since = [r for r in readings if r.step > (grown_at or 0)] or list(readings[-1:])
    if not since or entry.holder_count != 1 or len({r.length for r in since}) > 1 or gets_more(since):
        return None
    first, last = since[0], since[-1]
    births = [step for step, _, _ in series_of(entry)]
    was_set = any(step >= first.step for step in births)  # else the length tells nothing: none came
    stays = last.step - first.step > LAG and was_set and len(births) <= last.length
    if not stays and not is_set_in_place(seen, last.length):
        return None
    return min(last.length, last.count if last.filled is None else last.filled), last.length


def gets_more(readings: Sequence[HolderReading]) -> bool:
    """True if what a place of the list has got gains more, over the last half of the run: each a chain, or a
    container that grows, which the length of the list does not bound.  So many places are set by then that
    chance makes no half more.
    """
    known = [r for r in readings if r.filled is not None and r.filled >= LEAST_PLACES]
    before = [r for r in known if r.step <= HALF * known[-1].step]
    return bool(before) and known[-1].each > (1 + HALF) * before[-1].each


def believable(walk: Walk, look: Look) -> Readings:
    """The readings of holders, but of those that seemed to be filled in place: since the walk their line has
    gained more than they have places for, with half more in each than those have that are set.
    """
    alive = {
        s.key: (min((s.history.live, *s.history.spans.lows[-1:])), s.live_count / max(1, s.history.live))
        for s in look.suspects
    }
    refuted = {
        seen.entry.holder.address
        for seen in walk.seen
        if seen.entry.holder is not None
        and seen.entry.holder.address in walk.readings
        and gained_since(seen, alive) > room_left(walk.readings[seen.entry.holder.address][-1])
    }
    return {address: known for address, known in walk.readings.items() if address not in refuted}


def gained_since(seen: Seen, alive: Mapping[Key, tuple[float, float]]) -> float:
    """By how many items one of the entry's lines rose after the walk, at most; ``alive``: stamps of the line
    now, and items of this type for each, as an item may have several.
    """
    known = [
        key for key in {member.key for member in seen.entry.members} if key in alive and key in seen.bases
    ]
    rises = ((alive[key][0] - seen.bases[key].live) * min(1.0, alive[key][1]) for key in known)
    return max(rises, default=0.0)


def room_left(reading: HolderReading) -> float:
    """For so many more of one line's items there is room in the places of a list."""
    return (1 + HALF) * reading.each * reading.length - reading.count


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
