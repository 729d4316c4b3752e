"""What a walk met, with the numbers of a look that is newer: a walk is dear, and who keeps what stays."""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from leakprobe.judge.entries import Seen, main_member
from leakprobe.judge.holders import of_one_line, table_of_items
from leakprobe.judge.looks import Key, Look, Record, Suspect, Walk
from leakprobe.judge.same_lines import part_of
from leakprobe.model.entry import Entry, Member
from leakprobe.model.history import History
from leakprobe.model.media import is_buffer
from leakprobe.model.thresholds import HALF, NEARLY_ALL
from leakprobe.model.verdict import Judgement, Rate, Verdict

#: What a later look may say of what a walk took for a leak: an epoch's end may have come between.
TOLD = (Verdict.LEAK, Verdict.WITHIN_EPOCH)


def renewed(look: Look, walk: Walk, every: Sequence[Seen]) -> list[Seen]:
    """All verdicts, as of the look where it knows more: of what grows on, or anew in each epoch, and that one
    holder kept.
    """
    if look.step <= walk.step:
        return list(every)
    newer = [s for s in look.suspects if s.judgement.step > walk.step]
    known = [s for s in newer if s.judgement.verdict in TOLD]
    met = Counter[Key]()
    for member in (member for seen in walk.seen for member in seen.entry.members):  # parts merged count once
        met[member.key] += member.count
    grown_on = [as_of_look(seen, newer_lines(seen, known, met), look, walk.step) for seen in every]
    return [with_epochs_since(seen, known, met) for seen in grown_on]


def with_epochs_since(seen: Seen, known: Sequence[Suspect], met: Mapping[Key, int]) -> Seen:
    """What a walk met within an epoch, in a holder of most of its line, with what is known now of whether
    epochs get longer: they may have stopped since, or begun.
    """
    judgement, main = seen.judgement, main_member(seen.entry)
    now = next((s.judgement for s in known if s.key == main.key), None)
    if judgement is None or now is None or main.count < HALF * met[main.key]:
        return seen
    if not judgement.verdict is now.verdict is Verdict.WITHIN_EPOCH:
        return seen
    return dataclasses.replace(seen, judgement=dataclasses.replace(judgement, peak_rises=now.peak_rises))


def newer_lines(seen: Seen, known: Sequence[Suspect], met: Mapping[Key, int]) -> dict[Key, Suspect]:
    """Those of a leak's lines of which its holder has nearly all that the walk met: the rest is its own; most
    of it where each epoch's end releases what the line made.
    """
    judgement = seen.judgement
    if judgement is None or judgement.verdict is not Verdict.LEAK or seen.entry.kind != "held":
        return {}
    shares = {m.key: m.count / max(1, met[m.key]) for m in seen.entry.members}
    return {suspect.key: suspect for suspect in known if shares.get(suspect.key, 0) >= share_asked(suspect)}


def share_asked(suspect: Suspect) -> float:
    return NEARLY_ALL if suspect.judgement.verdict is Verdict.LEAK else HALF


def as_of_look(seen: Seen, newer: Mapping[Key, Suspect], look: Look, walked: int) -> Seen:
    """With what its lines have now; the objects and nodes that go with the buffers have grown with them.
    ``walked``: the step of the path.
    """
    main = main_member(seen.entry)
    suspect = newer.get(main.key)
    if suspect is None:
        return seen
    times = suspect.live_count / max(1, main.count)
    now = suspect.judgement
    entry = dataclasses.replace(seen.entry, members=tuple(grown(m, newer, times) for m in seen.entry.members))
    judgement = dataclasses.replace(
        now,
        reason=f"{now.reason}; the path is of step {walked:,}",
        bytes_per_step=rate_of_all(seen.entry, main, newer, now),
        count_per_step=sum(newer[m.key].count_rate for m in of_one_line(seen.entry, main) if m.key in newer),
    )
    bases = {**seen.bases, suspect.key: suspect.history}
    merged = (*look.merged, *suspect.folded)
    return Seen(entry, now.step, bases, merged, judgement, seen.grown_site, met=seen.entry)


def renewed_blocks(look: Look, walk: Walk) -> list[Seen]:
    """Holders of single blocks that give way to larger ones, as of the look where it knows more."""
    if look.step <= walk.step:
        return list(walk.enlarged)
    records = {record.site: record for record in look.records}
    climbing = {s.key: s for s in look.suspects if s.judgement.verdict is Verdict.REPLACED}
    return [renewed_block(seen, records, climbing, look) for seen in walk.enlarged]


def renewed_block(
    seen: Seen, records: Mapping[int, Record], climbing: Mapping[Key, Suspect], look: Look
) -> Seen:
    main = main_member(seen.entry)
    if seen.grown_site in records:
        return as_of_record(seen, records[seen.grown_site], look)
    is_settled = seen.grown_site in look.settled or (not seen.grown_site and main.site in look.settled)
    if is_settled or (main.key[0] == "block" and main.key not in climbing):
        return at_rest(seen)
    if main.key in climbing:
        now = climbing[main.key]
        return as_larger(seen, now.judgement, now.history, now.live_bytes, look)
    return seen


def at_rest(seen: Seen) -> Seen:
    """With the verdict that it has stopped."""
    judgement = seen.judgement
    if judgement is None:
        return seen
    stopped = dataclasses.replace(
        judgement, verdict=Verdict.STOPPED, bytes_per_step=None, count_per_step=None
    )
    return dataclasses.replace(seen, judgement=stopped)


def as_larger(seen: Seen, now: Judgement, history: History, size: int, look: Look) -> Seen:
    """With so many bytes, and the verdict of the look."""
    main = main_member(seen.entry)
    members = tuple(dataclasses.replace(m, bytes=size) if m is main else m for m in seen.entry.members)
    judgement = dataclasses.replace(now, reason=f"{now.reason}; the path is of step {seen.step:,}")
    entry = dataclasses.replace(seen.entry, members=members)
    bases = {**seen.bases, main.key: history}
    return Seen(entry, judgement.step, bases, look.merged, judgement, seen.grown_site, met=seen.entry)


def as_of_record(seen: Seen, record: Record, look: Look) -> Seen:
    """With as many bytes as the line's block has had since, where the walk had the record for its history."""
    main = main_member(seen.entry)
    base = seen.bases.get(main.key)
    if base is None or base.sizes[:1] != record.history.sizes[:1]:
        return seen
    *_, (_, _, size) = base.sizes
    size = main.bytes + max(0, record.bytes - round(size))
    return as_larger(seen, record.judgement, record.history, size, look)


def grown(member: Member, newer: Mapping[Key, Suspect], times: float) -> Member:
    """``times``: as many of the main line, with each of which an object of a line that is not known comes."""
    suspect = newer.get(member.key)
    if suspect is not None:
        count, size = suspect.live_count, round(suspect.live_bytes * larger(member, suspect))
        return dataclasses.replace(member, count=count, bytes=size, series=suspect.series)
    if is_buffer(member.medium):  # its line grows no more, or others keep it too
        return member
    return dataclasses.replace(member, count=round(member.count * times), bytes=round(member.bytes * times))


def larger(member: Member, suspect: Suspect) -> float:
    """How many times as large an item is as the line knows: an object with what it owns outside of Python."""
    known = mean_bytes(suspect.series, suspect.history.warmup)
    if is_buffer(member.medium) or not member.count or not known:
        return 1.0
    return member.bytes / member.count / known


def mean_bytes(series: Iterable[tuple[int, float, float]], since: int) -> float:
    """Of an item that was born in a step or later; 0 of none."""
    rows = [row for row in series if row[0] >= since]
    return sum(size for *_, size in rows) / max(1, sum(count for _, count, _ in rows))


def rate_of_all(entry: Entry, main: Member, newer: Mapping[Key, Suspect], now: Judgement) -> Rate | None:
    """The rate of the main line, of the others that grow, and of what goes with each of its items."""
    rate = now.bytes_per_step
    if rate is None:
        return None
    others = sum(
        newer[m.key].rate * larger(m, newer[m.key]) for m in entry.members if m.key in newer and m is not main
    )
    beside = sum(m.bytes for m in entry.members if m.key not in newer and not is_buffer(m.medium))
    each = (beside + table_of_items(entry)) / max(1, main.count)
    return rate.times(larger(main, newer[main.key])).plus(others + each * (now.count_per_step or 0.0))


# ---- suspects ----


def as_counted(suspect: Suspect, history: History, judgement: Judgement) -> Suspect:
    """A type of a line that a walk met, as of a later scan, which counts all of the line's types together: it
    has the share that it had.
    """
    met, counted = suspect.history.survivors, history.survivors
    if history.step <= suspect.history.step or met is None or counted is None:
        return suspect
    scanned = [row for row in suspect.series if met.rows and row[0] <= met.rows[-1][1]]
    own = sum(count for _, count, _ in scanned)  # a walk meets what came after the scan, too
    share = min(1.0, max(0, own - suspect.older_count) / max(1.0, met.count))
    mean = mean_bytes(scanned, history.warmup) or mean_bytes(scanned, 0)
    more = share * (history.live - suspect.history.live)
    return dataclasses.replace(
        suspect,
        history=history,
        judgement=part_of(judgement, share, share * mean * counted.count / max(1.0, counted.bytes)),
        live_count=max(0, round(suspect.live_count - suspect.older_count + more)),
        live_bytes=max(0, round(suspect.live_bytes + mean * more)),
        series=tuple((int(last), n * share, n * share * mean) for _, last, n, _ in counted.rows),
        folded=tuple((int(first), int(last)) for first, last, *_ in counted.rows if first < last),
        older_count=0,
    )
