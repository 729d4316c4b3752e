"""What grew on after the last walk had met too little of it for a verdict, or had met it at rest, and no
other could be afforded.
"""

import dataclasses
from collections.abc import Iterable, Sequence

from leakprobe.judge.bounded import bound_of
from leakprobe.judge.entries import Seen, main_member
from leakprobe.judge.looks import Key, Look, Suspect, Walk
from leakprobe.judge.verdicts import judge
from leakprobe.model.entry import Entry, Member
from leakprobe.model.thresholds import HALF, LEAST_EVENTS
from leakprobe.model.verdict import Verdict


def overtaken(look: Look, walk: Walk, every: Sequence[Seen]) -> list[Seen]:
    """The suspects of a look that is newer than the walk, which knew each as too early or at rest: with the
    look's verdict, and with the holder that kept most of it.

    ``every``: what the walk met, with its verdicts.
    """
    if look.step <= walk.step:
        return []
    settled = {key for seen in every if not is_open(seen) for key in keys_of(seen)}
    found = []
    for suspect in look.suspects:
        holders = apart(seen for seen in every if suspect.key in keys_of(seen))
        if suspect.judgement.verdict is not Verdict.LEAK or suspect.key in settled or not holders:
            continue
        if all(bound_of(seen, walk.readings) is None for seen in holders):
            found.append(as_of_look(suspect, holders, suspect.judgement.step))
    return found


def apart(every: Iterable[Seen]) -> list[Seen]:
    """One of each holder: what several of its lines made, and a part of it, may be entries of their own."""
    return list({place_of(seen): seen for seen in every}.values())


def place_of(seen: Seen) -> object:
    return seen.entry.holder.address if seen.entry.holder else seen.entry.path or id(seen)


def unwalked(look: Look, walk: Walk | None) -> list[Suspect]:
    """What the last look calls a leak and no walk has met at all: who keeps it may have a bound."""
    met = {key for seen in (walk.seen if walk is not None else ()) for key in keys_of(seen)}
    if walk is not None and look.step <= walk.step:
        return []
    return [s for s in look.suspects if s.judgement.verdict is Verdict.LEAK and s.key not in met]


def keys_of(seen: Seen) -> Iterable[Key]:
    return (member.key for member in seen.entry.members)


def is_open(seen: Seen) -> bool:
    """True of a verdict that growth since then contradicts: turnover, too, where the births were too few for
    any other, or where it was that of the whole line.
    """
    judgement = seen.judgement
    if judgement is None:
        return False
    if judgement.verdict is Verdict.TURNOVER:
        return judgement.events < LEAST_EVENTS or line_turned_over(seen)
    return judgement.verdict in (Verdict.TOO_EARLY, Verdict.STOPPED)


def line_turned_over(seen: Seen) -> bool:
    """True if nothing set the holder apart from all else that the line had made."""
    base = seen.bases.get(main_member(seen.entry).key)
    return base is not None and judge(base).verdict is Verdict.TURNOVER


def without_overtaken(every: Sequence[Seen], newer: Sequence[Seen]) -> list[Seen]:
    """All verdicts, the newer ones in place of those that they contradict."""
    keys = {main_member(seen.entry).key for seen in newer}
    kept = [seen for seen in every if not (main_member(seen.entry).key in keys and is_open(seen))]
    return [*kept, *newer]


def as_of_look(suspect: Suspect, holders: Sequence[Seen], step: int) -> Seen:
    """Under the holder that keeps what is old: most of the time that all of it was kept for."""
    entry = entry_without_holder(suspect)
    kept = [kept_for(seen, suspect.key) for seen in holders]
    if max(kept) > HALF * sum(kept):
        keeper = holders[kept.index(max(kept))].entry
        entry = dataclasses.replace(keeper, members=entry.members, sample=None)
    return Seen(entry, step, {suspect.key: suspect.history}, (), suspect.judgement)


def kept_for(seen: Seen, line: Key) -> float:
    """Steps, summed over what the line made."""
    series = (row for member in seen.entry.members if member.key == line for row in member.series)
    return sum(count * (seen.step - step) for step, count, _ in series)


def entry_without_holder(suspect: Suspect) -> Entry:
    """A suspect of which no walk could tell who keeps it."""
    kind, type_id, site = suspect.key
    member = Member(
        type=suspect.type,
        type_id=int(type_id) if kind == "object" else 0,
        medium=suspect.medium,
        site=site,
        deep_site=0,
        count=suspect.live_count,
        bytes=suspect.live_bytes,
        series=tuple(suspect.series),
    )
    return Entry("untraced", (member,))
