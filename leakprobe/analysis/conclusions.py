"""From looks and traces to the report: findings, notes, verdict."""

import collections
import dataclasses
import os

from leakprobe import _core, switch
from leakprobe.analysis import devices, growth, resource_findings, worker_findings
from leakprobe.judge import causes
from leakprobe.judge.entries import (
    AUTOGRAD_KEY,
    Seen,
    grown_at_site,
    holder_of,
    main_member,
    path_with_view,
    series_of,
    stack_of,
    stack_of_member,
    type_of,
    view_text,
)
from leakprobe.judge.fingerprints import fingerprint
from leakprobe.judge.merging import (
    LEAST_PART,
    begins_in_user_code,
    merge_findings,
    merge_garbage,
    merge_parts,
    merge_small,
)
from leakprobe.judge.suppressions import known_table
from leakprobe.model.entry import Entry, Member, rows_of
from leakprobe.model.finding import Finding, Note
from leakprobe.model.frames import FIRST_SITE, SPECIAL_SITES, Frame, innermost_user_frame
from leakprobe.model.media import is_buffer, of_family
from leakprobe.model.report import MIN_STEPS, Report, verdict_of
from leakprobe.model.units import format_size

#: Kind of a traced entry => kind of the finding, where it is not "retained".
KINDS = {"garbage": "reference_cycle", "lost": "lost_reference"}
#: itertools.tee keeps items in blocks of so many; a block goes when every iterator is past it.
TEE_BLOCK_ITEMS = 57
BUFFER_TYPES = frozenset({"bytearray", "bytes", "str", "array.array", "mmap.mmap"})


def read_status() -> dict:
    """What must be read before the hooks go: how each medium was served, and the ledger's counts."""
    native = _core.native_status()
    return {
        "hook": _core.hook_status(),
        "native": native,
        "totals": _core.ledger_totals(),
        "by_torch": devices.totals(native),
    }


def conclude(*, suspects, timeline, status, warmup, steps, limit, workers=None) -> Report:
    """The report of a watch as of its last mark, without its timeline and memory.

    ``workers``: the torch.workers.Workers of the watch, if any.
    """
    measured = max(0, steps - warmup)
    findings, notes = [], []
    if suspects is not None and measured >= MIN_STEPS:
        findings, notes = entries_to_findings(suspects, limit)
        entries = [seen.entry for seen in traced_entries(suspects)]
        resource_findings.add_resources(suspects, entries, findings, notes)
    if workers is not None:
        told = worker_findings.of_workers(workers, limit, enough=measured >= MIN_STEPS)
        findings += told[0]
        notes += told[1]
    findings.sort(key=lambda f: (-f.bytes_per_step, f.fingerprint))
    notes += status_notes(status)
    notes += budget_notes(suspects)
    if suspects is None:
        notes += disabled_notes()
    if suspects is not None and suspects.look_error:
        notes.append(
            Note(kind="gap", text=f"what is alive could not be counted {suspects.look_error}", medium=None)
        )
    if suspects is not None and suspects.trace_error:
        notes.append(
            Note(
                kind="gap",
                text=f"who keeps what grows could not be read: {suspects.trace_error}",
                medium=None,
            )
        )
    if suspects is not None and measured < MIN_STEPS:
        notes.append(more_steps_note(warmup, steps))
    return Report(
        verdict=verdict_of(findings, measured),
        steps={"warmup": min(warmup, steps), "measured": measured},
        findings=findings,
        notes=notes,
        lines=lines_of(suspects),
        media=media_table(status, steps, timeline, suspects),
        timeline=[],
        memory=[],
        sites=sites_of(suspects),
    )


def disabled_notes() -> list:
    """Why a watch that never began has nothing to say, if the off switch is why."""
    line = switch.disabled_line()
    return [] if line is None else [Note(kind="gap", text=line, medium=None)]


def more_steps_note(warmup: int, steps: int) -> Note:
    """How many steps more a verdict needs."""
    more = warmup + MIN_STEPS - steps
    text = f"run {more} more step{'s' if more != 1 else ''}: {steps} marked, the first {warmup} are warm-up, and a verdict needs {MIN_STEPS} after them"
    return Note(kind="warm_up", text=text, medium=None)


def entries_to_findings(suspects, limit: float):
    """Findings and notes of the last traces."""
    findings, notes = [], []
    alive = {AUTOGRAD_KEY, *(g.key for g in suspects.last_look.groups)} if suspects.last_look else set()
    traced = [with_growth(seen) for seen in traced_entries(suspects)]
    parts = [
        *merge_parts(seen for seen in traced if seen.growth is None),
        *small_parts(suspects, traced, limit),
    ]
    for seen in [*traced, *map(with_growth, parts)]:
        judge_traced(suspects, seen, alive, limit, findings, notes)
    if not any(item.kind == "reference_cycle" for item in [*findings, *notes]):
        for seen in map(with_growth, freed_garbage(suspects)):
            judge_traced(suspects, seen, alive, limit, findings, notes)
    if suspects.last_replaced is not None:
        for entry in suspects.last_replaced.entries:
            found = replaced_growth(suspects, entry)
            if found is not None:
                judge(suspects, entry, found, None, limit, findings, notes)
    return merge_findings(findings), notes


def small_parts(suspects, traced: list[Seen], limit: float) -> list[Seen]:
    """What is below the limit holder by holder, and not by line; holders with a bound are no part of it."""
    judged = [
        seen
        for seen in traced
        if bound_of(suspects, seen.entry) is None and known_table(seen.entry.path) is None
    ]
    return merge_small(judged, limit, lambda entry: innermost_user_frame(stack_of_member(main_member(entry))))


def judge_traced(suspects, seen: Seen, alive, limit, findings, notes) -> None:
    """Judge an entry by how the survivors of its members grow."""
    found = seen.growth
    if seen.entry.kind != "garbage":
        found = known_since_frees(suspects, seen)
    if found is not None:
        judge(suspects, seen.entry, found, alive, limit, findings, notes)


def with_growth(seen: Seen) -> Seen:
    """With how the survivors of the entry's members grow, or None."""
    series = series_of(seen.entry)
    found = growth.classify(series, seen.window, seen.merged)
    if found is None and seen.entry.kind == "garbage":
        found = growth.since_a_point(series, seen.window)
    return dataclasses.replace(seen, growth=found)


def known_since_frees(suspects, seen: Seen):
    """The growth of an entry, or how it grows since frees are followed, if that is more.

    Lost objects, and what only C++ refers to, are in a census from then on only.
    """
    since = suspects.last_trace.frees_since if suspects.last_trace is not None else None
    if since is None or since <= seen.window.first:
        return seen.growth
    window = growth.Window(since, seen.window.last)
    later = growth.classify(series_of(seen.entry), window, seen.merged)
    if later is None:
        return seen.growth
    if seen.growth is not None:
        return later if later.bytes_per_step > 1.05 * seen.growth.bytes_per_step else seen.growth
    return later if suspects.explains(later) else None


def traced_entries(suspects) -> list[Seen]:
    """Holder entries of the last trace; where none could be taken, the groups without holders."""
    trace, look = suspects.last_trace, suspects.last_look
    if trace is not None:
        return merge_garbage(up_to_date(trace, look))
    return [Seen(entry_without_holder(g), look.window, look.merged) for g in (look.groups if look else [])]


def freed_garbage(suspects) -> list[Seen]:
    """Unreachable cycles as of the trace that met most of them, if collections have freed them since."""
    garbage = suspects.most_garbage
    if garbage is None or garbage is suspects.last_trace:
        return []
    return merge_garbage(
        Seen(dataclasses.replace(entry, freed=True), garbage.window, garbage.merged)
        for entry in garbage.entries
        if entry.kind == "garbage"
    )


def up_to_date(trace, look) -> list[Seen]:
    """The entries of a trace with the survivors as of the last look, where every member has one holder
    only.
    """
    latest = {g.key: g for g in look.groups}
    holders = collections.Counter(m.key for e in trace.entries for m in e.members)
    entries = []
    for entry in trace.entries:
        if look.step > trace.step and all(holders[m.key] == 1 and m.key in latest for m in entry.members):
            members = tuple(refreshed(m, latest[m.key]) for m in entry.members)
            entries.append(Seen(dataclasses.replace(entry, members=members), look.window, look.merged))
        else:
            entries.append(Seen(entry, trace.window, trace.merged))
    return entries


def refreshed(member: Member, group) -> Member:
    return dataclasses.replace(
        member, count=group.live_count, bytes=group.live_bytes, series=tuple(group.series)
    )


def entry_without_holder(group) -> Entry:
    member = Member(
        type=group.type,
        type_id=group.key[1] if group.type else 0,
        medium=group.medium,
        site=group.site,
        deep_site=0,
        count=group.live_count,
        bytes=group.live_bytes,
        series=tuple(group.series),
    )
    return Entry("untraced", (member,))


def replaced_growth(suspects, entry: Entry):
    """The growth of an entry of the second trace: that of the fastest of its groups whose total rises."""
    found = [suspects.replaced.get(m.key) for m in entry.members]
    return max((g for g in found if g is not None), key=lambda g: g.bytes_per_step, default=None)


def judge(suspects, entry: Entry, found, alive, limit, findings, notes) -> None:
    """Make a finding of a growing entry, or a note where the growth is no leak."""
    if found.bytes_per_step <= (LEAST_PART * limit if entry.is_part else limit):
        return
    if alive is not None and entry.kind != "garbage" and not any(m.key in alive for m in entry.members):
        notes.append(make_note("stopped", entry, found, suspects, "grew until it stopped"))
        return
    bound = bound_of(suspects, entry)
    if bound is not None and found.pattern != "replaced":
        length, most = bound
        notes.append(make_note("bounded", entry, found, suspects, f"filling, {length} of {most}"))
        return
    known = known_table(entry.path)
    if known is not None:
        notes.append(make_note("bounded", entry, found, suspects, known))
        return
    if entry.kind == "garbage" and not garbage_is_a_leak(entry, found, limit):
        what = "cycles that wait for the garbage collector"
        if found.pattern == "since_a_point" or entry.freed:
            what += f", which has freed some; {format_size(entry.bytes)} when last met"
        notes.append(make_note("reference_cycle", entry, found, suspects, what))
        return
    findings.append(make_finding(suspects, entry, found))


def bound_of(suspects, entry: Entry):
    """(length, most) of a holder that bounds itself: deque(maxlen), lru_cache(maxsize), a list filled in
    place.
    """
    holder = entry.holder
    if holder is None:
        return None
    if holder.bound is not None:
        return holder.length, holder.bound
    if holder.type.endswith("_tee_dataobject"):
        most = max(m.count for m in entry.members)
        return (most, TEE_BLOCK_ITEMS) if most < TEE_BLOCK_ITEMS else None
    lengths = suspects.lengths.get(holder.address)
    if holder.type == "list" and lengths and len(lengths) > 1 and entry.holder_count == 1:
        (first_step, first_length), (last_step, last_length) = lengths[0], lengths[-1]
        steps = len(series_of(entry))
        if last_step - first_step >= 3 and first_length == last_length and steps <= last_length:
            return sum(m.count for m in entry.members), last_length
    return None


def garbage_is_a_leak(entry: Entry, found, limit) -> bool:
    """Unreachable cycles count when no collection can free them, or when none has and they pin buffers above
    the limit.
    """
    if found.pattern == "since_a_point" or entry.freed:
        return False
    if entry.collectable is False:
        return True
    steps = max(1, len(series_of(entry)))
    pinned = sum(m.bytes for m in entry.members if is_buffer(m.medium) or m.type in BUFFER_TYPES)
    return pinned / steps > limit


def make_finding(suspects, entry: Entry, found) -> Finding:
    main = main_member(entry)
    stack = stack_of_member(main) or line_of_nodes(suspects, main, found)
    user = innermost_user_frame(stack)
    cause, fix = causes.cause_of(case_of(entry, found, stack, suspects))
    kind = KINDS.get(entry.kind, "retained")
    return Finding(
        fingerprint=fingerprint(kind, entry.path, main.medium, stack),
        kind=kind,
        pattern=found.pattern if found.pattern == "per_epoch" else "per_step",
        medium=main.medium,
        type=type_of(entry, main),
        bytes_per_step=round(found.bytes_per_step, 1),
        count_per_step=round(count_rate(main, found), 2),
        live_bytes=entry.bytes,
        live_count=main.count,
        confidence=found.confidence,
        evidence=found.evidence + view_text(entry),
        allocation=Frame(*user) if user else None,
        allocation_stack=[Frame(*f) for f in stack],
        holder=holder_of(entry, found),
        path=path_with_view(entry),
        cycle=rows_of(entry.cycle),
        cause=cause,
        fix=fix,
    )


def make_note(kind, entry: Entry, found, suspects, what) -> Note:
    main = main_member(entry)
    stack = stack_of_member(main)
    user = innermost_user_frame(stack)
    holder = holder_of(entry)
    where = (
        f"{os.path.basename(user[0])}:{user[1]}"
        if user
        else SPECIAL_SITES.get(main.site, "no line of user code")
    )
    held = f" in {holder['text']}" if holder else ""
    cause, fix = (
        causes.cause_of(case_of(entry, found, stack, suspects)) if kind == "reference_cycle" else (None, None)
    )
    text = f"{what}: {type_of(entry, main) or main.medium + ' buffers'} from {where}{held}, {found.bytes_per_step:,.0f} B/step so far"
    return Note(
        kind=kind,
        text=text,
        medium=main.medium,
        type=type_of(entry, main),
        bytes_per_step=round(found.bytes_per_step, 1),
        live_bytes=entry.bytes,
        allocation=Frame(*user) if user else None,
        allocation_stack=[Frame(*f) for f in stack],
        holder=holder,
        path=rows_of(entry.path),
        cycle=rows_of(entry.cycle),
        cause=cause,
        fix=fix,
    )


def line_of_nodes(suspects, main: Member, found) -> list:
    """The stack of the line that makes the autograd nodes, if it was followed; they have no site."""
    return suspects.native_lines.verdict(found.bytes_per_step)[0] if main.key == AUTOGRAD_KEY else []


def count_rate(main: Member, found) -> float:
    """Blocks a step of the main member, over the steps that have any."""
    if found.pattern == "replaced":
        return 0.0
    return main.count / max(1, len(main.series))


def case_of(entry: Entry, found, stack, suspects) -> causes.Case:
    """What the rules of causes.py may look at."""
    site = grown_at_site(entry)
    grown = stack_of(site) if site >= FIRST_SITE else []
    user = innermost_user_frame(grown) or innermost_user_frame(stack)
    count = sum(m.count for m in entry.members if m.type)
    return causes.Case(
        kind=entry.kind,
        pattern=found.pattern,
        path=entry.path,
        holder=entry.holder,
        media=frozenset(m.medium for m in entry.members),
        types=frozenset(m.type for m in entry.members if m.type),
        line=f"{os.path.basename(user[0])}:{user[1]}" if user else None,
        collectable=entry.collectable,
        cycle=entry.cycle,
        in_library=bool(entry.path) and not begins_in_user_code(entry.path, [Frame(*f) for f in stack]),
        has_graph=entry.has_graph,
        steps=len(series_of(entry)),
        stack=tuple(grown or stack),
        several=entry.holder_count > 1,
        frozen=0 < 0.5 * count <= suspects.frozen[1] - suspects.frozen[0],
    )


def lines_of(suspects) -> list:
    """Growth per source line of the user's own files, from the groups of the last look."""
    rows = collections.defaultdict(lambda: [0.0, 0])
    for group in suspects.last_look.groups if suspects and suspects.last_look else []:
        if group.growth.pattern == "since_a_point":
            continue
        user = innermost_user_frame(stack_of(group.site))
        if user:
            rows[user[:2]][0] += group.growth.bytes_per_step
            rows[user[:2]][1] += group.live_bytes
    return [
        {"filename": name, "lineno": line, "bytes_per_step": round(rate, 1), "live_bytes": live}
        for (name, line), (rate, live) in sorted(rows.items(), key=lambda item: -item[1][0])
    ]


def sites_of(suspects) -> list:
    """The largest and the fastest growing sites as of the last look, their lines as text."""
    rows = []
    for row in suspects.last_look.sites if suspects and suspects.last_look else []:
        stack = stack_of(row["site"])
        user = innermost_user_frame(stack)
        rows.append(
            {
                **{key: value for key, value in row.items() if key != "site"},
                "allocation": Frame(*user) if user else None,
                "allocation_stack": [Frame(*f) for f in stack],
            }
        )
    return rows


def media_table(status, steps, timeline, suspects) -> dict:
    """Per medium: what serves it, or why nothing does; live bytes and what could not be matched."""
    if not status:
        return {}
    hook, totals = status["hook"], status["totals"]
    last_mark = timeline.last_media() if timeline is not None else {}
    look = suspects.last_look if suspects else None
    table = {
        "python": {
            "mechanism": hook["mechanism"],
            "active": bool(hook["active"]),
            "why_not": hook["why_not"],
            "live_bytes": last_mark.get("python", {}).get("live_bytes", 0),
            "as_of_step": look.step if look else steps,
            "unmatched_events": hook["dropped"] + hook["site_overflow"],
        }
    }
    for row in status["native"]:
        for medium in of_family(row["medium"], {**totals, **status["by_torch"]}) or [row["medium"]]:
            size, mechanism = status["by_torch"].get(medium) or (
                last_mark.get(medium, {}).get("live_bytes", 0),
                row["mechanism"],
            )
            table[medium] = {
                "mechanism": mechanism,
                "active": bool(row["active"]) or medium in status["by_torch"],
                "why_not": row["why_not"],
                "live_bytes": size,
                "as_of_step": steps,
                "unmatched_events": totals.get(medium, {}).get("unmatched", 0),
            }
    return table


def budget_notes(suspects) -> list:
    """Notes about looks and traces that were too dear: the report describes an earlier step then."""
    budgets = (
        [] if suspects is None else [("looks", suspects.looks_budget), ("traces", suspects.traces_budget)]
    )
    return [
        Note(kind="gap", text=f"{what} were {b.put_off()}", medium=None) for what, b in budgets if b.put_off()
    ]


def status_notes(status) -> list:
    """Notes about what was not seen: gaps in attribution, dropped records."""
    notes = []
    hook = status.get("hook") if status else None
    for first, last, why in (hook or {}).get("gaps", []):
        notes.append(
            Note(kind="gap", text=f"no allocation lines for steps {first} to {last}: {why}", medium="python")
        )
    dropped = sum(t.get("dropped", 0) for t in status.get("totals", {}).values()) if status else 0
    dropped += hook["dropped"] + hook["site_overflow"] if hook else 0
    if dropped:
        notes.append(
            Note(
                kind="dropped",
                text=f"{dropped} records were dropped for want of memory or site numbers",
                medium=None,
            )
        )
    return notes
