"""From what a walk saw to findings and notes: one verdict for each holder, and its words."""

import dataclasses
import gc
import itertools
import math
from collections.abc import Callable, Collection, Iterable, Sequence

from leakprobe import _core
from leakprobe.evidence.phases import Births
from leakprobe.evidence.readings import rows_of_series
from leakprobe.judge import causes
from leakprobe.judge.bounded import believable, bound_of
from leakprobe.judge.causes.case import depth_of
from leakprobe.judge.entries import (
    AUTOGRAD_KEY,
    Seen,
    growing_stack,
    holder_of,
    item_of,
    main_member,
    path_with_view,
    series_of,
    stack_of_member,
    stack_that_made,
    type_of,
    view_text,
)
from leakprobe.judge.fingerprints import fingerprint
from leakprobe.judge.holders import enlarged, judged, of_one_line, table_of_items
from leakprobe.judge.lifetimes import EACH_STEP, with_lifetimes
from leakprobe.judge.looks import Key, Look, Walk
from leakprobe.judge.merging import (
    begins_in_user_code,
    merge_findings,
    merge_garbage,
    merge_opaque,
    merge_parts,
    merge_small,
    merge_weak,
)
from leakprobe.judge.overtaken import overtaken, without_overtaken
from leakprobe.judge.renewed import at_rest, renewed, renewed_blocks
from leakprobe.judge.rewrites import shown_change
from leakprobe.judge.suppressions import known_table
from leakprobe.model.entry import Entry, Member, Path, rows_of
from leakprobe.model.facts import LARGEST_THRESHOLD, OUTCOMES
from leakprobe.model.finding import Finding, Note
from leakprobe.model.frames import SPECIAL_SITES, Frame, FrameTuple, innermost_user_frame, short_place
from leakprobe.model.thresholds import HALF, PART
from leakprobe.model.units import COUNT_DIGITS, SHARE_DIGITS, format_size
from leakprobe.model.verdict import Judgement, Verdict

#: Kind of a traced entry => kind of the finding, where it is not "retained".
KINDS = {"garbage": "reference_cycle", "lost": "lost_reference"}
#: What helps where an epoch's end releases what it kept, whatever keeps it.
FIX_WITHIN_EPOCH = (
    "the end of the epoch releases it, and by then it is too much: reduce it every few steps to what is "
    "needed, or write it to a file"
)
#: Verdicts that make a note where what they speak of is large => (kind of the note, its first words).
NOTED = {
    Verdict.BOUNDED: ("bounded", "filling"),
    Verdict.FILLING: ("bounded", "filling up"),
    Verdict.STOPPED: ("stopped", "stopped growing"),
    Verdict.WITHIN_EPOCH: ("within_epoch", "grows within each epoch and is released at its end"),
}


@dataclasses.dataclass(frozen=True, slots=True)
class Scope:
    """What all verdicts of one report are given."""

    walk: Walk
    step: int  # the present mark
    warmup: int
    limit: float
    #: Gives the stack of the line that makes autograd nodes, of so many bytes a step; empty where it is not
    #: known.
    line_of_nodes: Callable[[float], Sequence[FrameTuple]] = lambda rate: ()
    #: Gives the bytes that can still be had of a medium.
    room: Callable[[str], float] = lambda medium: math.inf

    def as_of(self, seen: Seen) -> str:
        """Words for an entry that was last seen before the present mark; else ""."""
        return f"; as of step {seen.step:,}" if seen.step < self.step else ""

    def judged(self, seen: Seen) -> Seen:
        return judged(seen, self.walk, self.warmup, self.limit)

    def is_near_limit(self, seen: Seen) -> bool:
        """True if the peak takes half of what there is when all of it has been released."""
        room = self.room(main_member(seen.entry).medium) + seen.entry.bytes
        return seen.judgement is not None and seen.judgement.peak_bytes >= HALF * room

    def rate_so_far(self, entry: Entry) -> float:
        """Bytes a measured step of all that the entry has."""
        return entry.bytes / max(1, self.walk.step - self.warmup)


@dataclasses.dataclass(frozen=True, slots=True)
class Found:
    """What a walk comes to; ``births`` and ``lines``: of the findings by their fingerprints."""

    findings: list[Finding] = dataclasses.field(default_factory=list)
    notes: list[Note] = dataclasses.field(default_factory=list)
    births: dict[str, Births] = dataclasses.field(default_factory=dict)
    lines: dict[str, Key] = dataclasses.field(default_factory=dict)


def of_walk(look: Look, scope: Scope, most_garbage: Walk | None) -> Found:
    """Findings and notes of the last walk; of garbage that collections have freed since, as of the walk that
    met most.
    """
    walk = dataclasses.replace(scope.walk, readings=believable(scope.walk, look))
    scope = dataclasses.replace(scope, walk=walk)
    known: set[Key] = {AUTOGRAD_KEY, *(s.key for s in look.suspects)}
    seen = merge_garbage(walk.seen)
    if look.step > walk.step:
        alive = known.union(look.rested)
        seen = [as_of_look(s, known) for s in seen if is_alive(s, alive, look.rising)]
    every = [stopped(scope.judged(s), look, known) for s in seen]
    apart = [s for s in every if not is_growing(s) and not is_of(s, look.rested)]
    every += [scope.judged(s) for s in [*merge_parts(apart), *small_parts(every, scope)]]
    every = renewed(look, walk, without_overtaken(every, overtaken(look, walk, every)))
    growing = [s for s in every if is_reported(s, scope)]
    findings = [finding_of(s, scope) for s in growing]
    births = {f.fingerprint: births_of(s) for f, s in zip(findings, growing)}
    lines = {f.fingerprint: main_member(s.entry).key for f, s in zip(findings, growing)}
    tables = {holder_path(s.entry) for s in growing if s.entry.path}
    larger = [s for s in larger_ones(look, walk) if s.entry.path not in tables]  # else its items have it
    findings += [finding_of(s, scope) for s in larger if is_reported(s, scope)]
    reported = {main_member(s.entry).key for s in growing}
    others = [s for s in (*every, *larger) if not is_reported(s, scope) and not has_moved(s, reported)]
    notes = [note for s in others for note in notes_of(s, scope)]
    kinds = [*(f.kind for f in findings), *(n.kind for n in notes)]
    if "reference_cycle" not in kinds:
        notes += notes_of_freed(walk, most_garbage, scope)
    return Found(merge_weak(merge_opaque(merge_findings(findings))), notes, births, lines)


def births_of(seen: Seen) -> Births:
    return Births(main_member(seen.entry).series, seen.merged)


def holder_path(entry: Entry) -> Path:
    """The path to the holder itself."""
    return entry.path[: depth_of(entry.holder, entry.path) + 1]


def is_alive(seen: Seen, alive: set[Key], rising: Collection[int] = ()) -> bool:
    """True if something of it is still suspected, and the holder's own items if they were, or the line of
    these is ``rising``, by too few bytes to be suspected; garbage comes and goes.  Autograd nodes, which no
    look can count, are as alive as what came with them.
    """
    keys, item = {m.key for m in seen.entry.members}, item_of(seen.entry)
    counted = keys & (seen.bases.keys() - {AUTOGRAD_KEY})
    was_emptied = item is not None and item.key in counted - alive and item.site not in rising
    return seen.entry.kind == "garbage" or not (was_emptied or alive.isdisjoint(counted or keys))


def as_of_look(seen: Seen, alive: set[Key]) -> Seen:
    return dataclasses.replace(seen, has_rested=main_member(seen.entry).key not in alive)


def is_of(seen: Seen, lines: Collection[Key]) -> bool:
    return main_member(seen.entry).key in lines


def stopped(seen: Seen, look: Look, known: set[Key]) -> Seen:
    """At rest if its main member is of a line that has not grown since the walk, or all of its lines that had
    grown by the last look are.
    """
    has_rested = bool(look.rested) and not is_alive(seen, known, look.rising)
    has_stopped = is_of(seen, look.rested) or has_rested
    return at_rest(seen) if seen.entry.kind != "garbage" and has_stopped else seen


def is_growing(seen: Seen) -> bool:
    return seen.judgement is not None and seen.judgement.is_finding


def larger_ones(look: Look, walk: Walk) -> list[Seen]:
    """Blocks that give way to larger ones, and crowds that climb as of the look."""
    climbing = {s.key for s in look.crowds}
    crowds = (s for s in walk.crowds if is_alive(s, climbing))
    return [dataclasses.replace(s, judgement=enlarged(s)) for s in (*renewed_blocks(look, walk), *crowds)]


def is_reported(seen: Seen, scope: Scope) -> bool:
    """True for a finding: it grows by more than the limit, and no known table keeps it."""
    least = PART * scope.limit if seen.entry.is_part else scope.limit
    return seen.rate > least and kills(seen, scope) and known_table(seen.entry.path) is None


def kills(seen: Seen, scope: Scope) -> bool:
    """True for what grows and is not released, or whose peak will be too high one day."""
    judgement = seen.judgement
    if judgement is None or judgement.verdict is not Verdict.WITHIN_EPOCH:
        return is_growing(seen)
    return judgement.peak_rises or scope.is_near_limit(seen)


def has_moved(seen: Seen, reported: Collection[Key]) -> bool:
    """True for what has stopped at one place, where the same line's grows at another."""
    judgement = seen.judgement
    is_over = judgement is not None and judgement.verdict is Verdict.STOPPED
    return is_over and main_member(seen.entry).key in reported


def small_parts(seen: Iterable[Seen], scope: Scope) -> list[Seen]:
    """What is below the limit holder by holder, and not by line; holders with a bound are no part of it."""
    parts = [
        s for s in seen if bound_of(s, scope.walk.readings) is None and known_table(s.entry.path) is None
    ]
    return merge_small(parts, scope.limit, line_of)


def line_of(entry: Entry) -> FrameTuple | None:
    """The user's line that makes what the entry keeps, else the one that enlarges its holder."""
    made = innermost_user_frame(stack_of_member(main_member(entry)))
    return made or innermost_user_frame(growing_stack(entry))


def notes_of(seen: Seen, scope: Scope) -> list[Note]:
    """What is worth knowing of an entry that makes no finding, where it has more than the limit."""
    entry, judgement = seen.entry, seen.judgement
    if judgement is None or judgement.verdict is Verdict.TOO_EARLY or scope.rate_so_far(entry) <= scope.limit:
        return []
    known = known_table(entry.path)
    if known is not None:
        return [make_note("bounded", seen, scope, known)] if is_growing(seen) else []
    if entry.kind == "garbage":
        return [make_note("reference_cycle", seen, scope, words_of_garbage(seen))]
    if judgement.verdict not in NOTED:
        return []
    kind, what = NOTED[judgement.verdict]
    bound = bound_of(seen, scope.walk.readings)
    if judgement.verdict is Verdict.BOUNDED and bound is not None:
        what = f"filling, {bound[0]} of {bound[1]}"
    if judgement.verdict is Verdict.WITHIN_EPOCH:
        what += f", {format_size(judgement.peak_bytes)} at its peak"
    return [make_note(kind, seen, scope, what)]


def words_of_garbage(seen: Seen) -> str:
    text = "cycles that wait for the garbage collector"
    if seen.judgement is None or seen.judgement.verdict is not Verdict.WAITING:
        text += f", which has freed some; {format_size(seen.entry.bytes)} when last seen"
    return text


def notes_of_freed(walk: Walk, most: Walk | None, scope: Scope) -> list[Note]:
    """Unreachable cycles as of the walk that met most of them, if collections have freed them since."""
    if most is None or most.step == walk.step:
        return []
    freed = merge_garbage(s for s in most.seen if s.entry.kind == "garbage")
    then = dataclasses.replace(scope, walk=most)
    return [note for s in freed for note in notes_of(then.judged(s), then)]


# ---- words ----


def finding_of(seen: Seen, scope: Scope) -> Finding:
    entry, judgement = seen.entry, seen.judgement
    assert judgement is not None
    main = main_member(entry)
    stack = stack_that_made(entry, main) or (
        scope.line_of_nodes(seen.rate) if main.key == AUTOGRAD_KEY else []
    )
    user = innermost_user_frame(stack)
    case = case_of(seen, stack, scope)
    cause, fix = causes.cause_of(case)
    change = shown_change(cause, case, innermost_user_frame(case.stack) or user)
    if judgement.verdict is Verdict.WITHIN_EPOCH:
        fix, change = f"{FIX_WITHIN_EPOCH}{f', {case.line}' if case.line else ''}", ""
    kind = (
        KINDS.get(entry.kind, "retained") if entry.kind != "lost" or cause == "lost_reference" else "retained"
    )
    return Finding(
        fingerprint=fingerprint(kind, entry.path, main.medium, stack),
        kind=kind,
        pattern=pattern_of(seen),
        medium=main.medium,
        type=type_of(entry, main),
        bytes_per_step=round(seen.rate, 1),
        count_per_step=round(judgement.count_per_step or 0.0, COUNT_DIGITS),
        live_bytes=entry.bytes + round(table_of_items(entry)),
        live_count=sum(member.count for member in of_one_line(entry, main)),
        confidence=confidence_of(judgement),
        evidence=judgement.reason + view_text(entry) + words_of_unread(entry) + scope.as_of(seen),
        allocation=Frame(*user) if user else None,
        allocation_stack=[Frame(*f) for f in stack],
        holder=holder_of(seen.as_met, judgement, seen.grown_site),
        path=with_lifetimes(path_with_view(entry), seen.as_met, words_left(seen, cause)),
        cycle=rows_of(entry.cycle),
        cause=cause,
        fix=f"{fix}: {change}" if change else fix,
        onset_step=judgement.onset,
    )


def words_of_unread(entry: Entry) -> str:
    if entry.unread != "joined":
        return ""
    return (
        "; this version of torch does not show what autograd graphs have saved: tensors that no object "
        "refers to are counted as saved by this graph"
    )


def confidence_of(judgement: Judgement) -> float:
    """Laplace's rule of succession: that the next event is kept too, after so many of which all were."""
    return round((judgement.events + 1) / (judgement.events + OUTCOMES), SHARE_DIGITS)


def pattern_of(seen: Seen) -> str:
    """Once an epoch where epochs ended as often as a step left something, and most steps left nothing."""
    judgement = seen.judgement
    if judgement is None or judgement.verdict is Verdict.WITHIN_EPOCH:
        return "within_epoch"
    steps, base = steps_that_left(seen), seen.bases.get(main_member(seen.entry).key)
    pauses = pauses_between(steps)
    if base is None or len(pauses) <= 1 or min(pauses) <= 1:
        return "per_step"
    (first, _), *_, (last, _) = steps
    epochs = sum(first < end <= last for end in base.epochs)
    return "per_epoch" if epochs >= len(pauses) else "per_step"


def pauses_between(steps: Sequence[tuple[float, float]]) -> list[int]:
    """From each row to the next one, in steps; of steps that are known together the shortest that may be."""
    return [max(1, round(first - before)) for (_, before), (first, _) in itertools.pairwise(steps)]


def steps_that_left(seen: Seen) -> list[tuple[float, float]]:
    """(first, last) of each row of steps since the onset of which something is kept."""
    onset = (seen.judgement.onset if seen.judgement is not None else None) or 0
    rows = rows_of_series(main_member(seen.entry).series, seen.merged)
    return [(first, last) for first, last, count, _ in rows if count > 0 and last >= onset]


def words_left(seen: Seen, cause: str) -> str:
    """What steps leave at the first reference that should not be."""
    if seen.judgement is not None and seen.judgement.verdict is Verdict.REPLACED:
        return "each step leaves a larger one"
    if cause in ("graph_chain", "growing_chain"):
        return "each step adds a link to what the last one left"
    return words_of_rhythm(seen)


def words_of_rhythm(seen: Seen) -> str:
    """How often one more is left; of what is known for several steps together only, as if in each."""
    pauses = pauses_between(steps_that_left(seen))
    if seen.merged or len(pauses) <= 1 or pauses.count(1) >= HALF * len(pauses):
        return EACH_STEP
    first, *others = sorted(set(pauses))
    return "some steps leave one more" if others else f"every {first} steps leave one more"


def make_note(kind: str, seen: Seen, scope: Scope, what: str) -> Note:
    entry = seen.entry
    main = main_member(entry)
    stack = stack_of_member(main)
    user = innermost_user_frame(stack)
    holder = holder_of(entry)
    where = place_in_words(main, user)
    held = f" in {holder['text']}" if holder else ""
    rate = seen.rate or scope.rate_so_far(entry)
    is_cycle = kind == "reference_cycle"
    cause, fix = causes.cause_of(case_of(seen, stack, scope)) if is_cycle else (None, None)
    kept = type_of(entry, main) or f"{main.medium} buffers"
    grown = f"{kept} from {where}{held}, {rate:,.0f} B/step so far"
    return Note(
        kind=kind,
        text=f"{what}: {grown}{scope.as_of(seen)}",
        medium=main.medium,
        type=type_of(entry, main),
        bytes_per_step=round(rate, 1),
        live_bytes=entry.bytes,
        allocation=Frame(*user) if user else None,
        allocation_stack=[Frame(*f) for f in stack],
        holder=holder,
        path=rows_of(entry.path),
        cycle=rows_of(entry.cycle),
        cause=cause,
        fix=fix,
    )


def place_in_words(main: Member, user: FrameTuple | None) -> str:
    if user:
        return short_place(user)
    return SPECIAL_SITES.get(main.site, "no line of user code")


def case_of(seen: Seen, stack: Sequence[FrameTuple], scope: Scope) -> causes.Case:
    """What the rules of causes.py may look at."""
    entry = seen.as_met
    grown = growing_stack(entry, seen.judgement, seen.grown_site)
    user = innermost_user_frame(grown) or innermost_user_frame(stack)
    count = sum(m.count for m in entry.members if m.type)
    is_replaced = seen.judgement is not None and seen.judgement.verdict is Verdict.REPLACED
    item = item_of(entry)
    return causes.Case(
        kind=entry.kind,
        pattern="replaced" if is_replaced else "per_step",
        path=entry.path,
        holder=entry.holder,
        media=frozenset(m.medium for m in entry.members),
        types=frozenset(m.type for m in entry.members if m.type),
        line=short_place(user) if user else None,
        made=line_of_item(entry),
        collectable=entry.collectable,
        cycle=entry.cycle,
        in_library=bool(entry.path) and not begins_in_user_code(entry.path, [Frame(*f) for f in stack]),
        has_graph=entry.has_graph or any(m.key == AUTOGRAD_KEY for m in entry.members),
        steps=len(series_of(entry)),
        item_steps=len(item.series) if item is not None else None,
        stack=tuple(grown or stack),
        made_by=tuple(stack),
        several=entry.holder_count > 1,
        unread=entry.unread == "maybe",
        frozen=0 < HALF * count <= scope.walk.frozen,
        collector=why_not_collected() if entry.kind == "garbage" and entry.collectable else "",
    )


def line_of_item(entry: Entry) -> str | None:
    """The user's line that makes what the holder refers to, as "train.py:58"; None where it is not known."""
    item = item_of(entry)
    user = innermost_user_frame(stack_of_member(item)) if item is not None else None
    return short_place(user) if user else None


def why_not_collected() -> str:
    """Why the collector leaves garbage alone, in words; "" where it is as Python starts it."""
    threshold, *_ = gc.get_threshold()
    if not _core.QuietCollector.is_on_outside() or threshold == 0:
        return "the garbage collector is switched off: gc.enable() lets it free them"
    if threshold > LARGEST_THRESHOLD:
        return f"the garbage collector runs only after {threshold:,} new objects (gc.set_threshold())"
    return ""
