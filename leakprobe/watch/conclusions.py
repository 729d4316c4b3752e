"""From looks and walks to the report of a watch: findings, notes, verdict, media."""

from collections.abc import Iterable
from typing import TypedDict

from leakprobe import _core, switch
from leakprobe.evidence.phases import Phases
from leakprobe.judge import findings as of_holders
from leakprobe.judge import workers as of_workers
from leakprobe.judge.entries import stack_of
from leakprobe.judge.looks import Look, Suspect, Unsettled, Walk
from leakprobe.judge.overtaken import unwalked
from leakprobe.judge.phased import in_own_steps, own_rate
from leakprobe.judge.rises import Rise
from leakprobe.model.facts import CUDA_DEVICES
from leakprobe.model.finding import Finding, Note
from leakprobe.model.frames import Frame, innermost_user_frame, place_of
from leakprobe.model.media import PRIVATE, of_family
from leakprobe.model.report import MIN_STEPS, Report, verdict_of
from leakprobe.model.rows import LineRow, MediumRow, SiteRow, live_bytes
from leakprobe.model.thresholds import HALF, LEAST_EVENTS
from leakprobe.model.units import format_size
from leakprobe.model.verdict import Verdict
from leakprobe.torch import devices
from leakprobe.torch.device_memory import PINNED_RESERVE, reserves_pinned
from leakprobe.torch.workers import Workers
from leakprobe.watch import resource_findings
from leakprobe.watch.early_rises import early_rise_notes
from leakprobe.watch.engine import Engine
from leakprobe.watch.forecast import limit_notes, room_of
from leakprobe.watch.rested import LetGo
from leakprobe.watch.timeline import Timeline
from leakprobe.watch.unexplained import explained_by, of_children, unexplained


class Status(TypedDict):
    """How each medium was served, and what the ledger counted.

    ``by_torch``: {medium: (bytes, mechanism)} of those that torch itself was asked for.  ``beyond``: events
    of CUDA devices that have no medium.
    """

    hook: "_core.HookStatus"
    native: "list[_core.MediumStatus]"
    totals: "dict[str, _core.Totals]"
    by_torch: dict[str, tuple[int, str]]
    beyond: int


def read_status() -> Status:
    """What must be read before the hooks go: how each medium was served, and the ledger's counts."""
    native = _core.native_status()
    return {
        "hook": _core.hook_status(),
        "native": native,
        "totals": _core.ledger_totals(),
        "by_torch": devices.totals(native),
        "beyond": _core.cuda_memory()["beyond"],
    }


def conclude(
    *,
    engine: Engine | None,
    timeline: Timeline | None,
    status: Status | None,
    warmup: int,
    steps: int,
    limit: float,
    workers: Workers | None = None,
    phases: Phases | None = None,
) -> Report:
    """The report of a watch as of its last look, without its timeline and memory.

    ``engine``: None of a watch that never began.  ``status``: None where nothing was served.  ``phases``: of
    a watch whose steps torch may mark.
    """
    measured = max(0, steps - warmup)
    early = [*too_early_notes(engine), *unwalked_notes(engine, limit)]
    found = of_engine(engine, limit) if engine is not None else of_holders.Found()
    findings, notes = found.findings, found.notes
    early += early_rise_notes(engine.resources) if engine is not None and not findings else []
    if workers is not None:
        told = of_workers.of_workers(workers, limit, enough=measured >= MIN_STEPS)
        findings += told[0]
        notes += told[1]
    notes += [*(limit_notes(findings, steps) if findings else []), *early]
    as_of = engine.last_look.step if engine and engine.last_look else steps
    findings = in_own_steps(findings, found.births, phases, as_of)
    notes += status_notes(status, range(warmup, steps)) + put_off_notes(engine) + error_notes(engine)
    if engine is None:
        notes += disabled_notes()
    elif measured < MIN_STEPS:
        notes.append(more_steps_note(warmup, steps))
    return Report(
        as_of_step=as_of,
        verdict=verdict_of(findings, measured, is_too_early=bool(early)),
        steps={"warmup": min(warmup, steps), "measured": measured},
        findings=findings,
        notes=notes,
        lines=lines_of(engine, phases),
        media=media_table(status, steps, timeline, engine),
        timeline=[],
        memory=[],
        sites=sites_of(engine),
    )


def of_engine(engine: Engine, limit: float) -> of_holders.Found:
    """Findings and notes of the last look and walk."""
    look, walk = engine.last_look, engine.last_walk
    found = of_state(engine, look, walk, limit, engine.most_garbage)
    entries = [seen.entry for seen in walk.seen] if walk is not None else []
    if engine.gone is not None:
        add_gone(engine.gone, of_state(engine, engine.gone.look, engine.gone.walk, limit, None), found)
    resource_findings.add_resources(engine, entries, found.findings, found.notes)
    rise = engine.account.rise(limit)
    rest = unexplained(
        rise,
        explained_by(found.findings, found.notes),
        seen_rate(look) + (filled_since(engine, rise) if rise is not None else 0.0),
        engine.resources.bookkeeping(resource_findings.bookkeeping_of(engine, entries)),
    )
    if rise is not None and rest is not None:
        resource_findings.add_rest(rest, rise, engine, entries, found.findings)
    of_others = of_children(engine.resources.children, limit)
    if of_others is not None:
        found.findings.append(of_others)
    found.notes.extend(filling_notes(engine, [*found.findings, *found.notes]))
    return found


def add_gone(gone: LetGo, before: of_holders.Found, found: of_holders.Found) -> None:
    """Add the findings of the state before that are about lines which went with the loop: what a module lets
    go of, it has released.
    """
    told = {f.fingerprint for f in found.findings}
    for finding in before.findings:
        mark, root = finding.fingerprint, next(iter(finding.path or ()), None)
        has_gone = before.lines.get(mark) in gone.lines and root is not None and root["edge"] != "module"
        if mark not in told and has_gone:
            found.findings.append(finding)
            found.births.update({mark: before.births[mark]})


def of_state(
    engine: Engine, look: Look | None, walk: Walk | None, limit: float, most: Walk | None
) -> of_holders.Found:
    if look is None or walk is None:
        return of_holders.Found()
    scope = of_holders.Scope(walk, engine.step, engine.warmup, limit, engine.line_of_nodes, room_of)
    return of_holders.of_walk(look, scope, most)


def seen_rate(look: Look | None) -> float:
    """Bytes a step of private memory of all that a look met, findings or not."""
    return sum(s.rate for s in look.suspects if s.medium in PRIVATE) if look is not None else 0.0


def filled_since(engine: Engine, rise: Rise) -> float:
    """Bytes a step of the rise's time that lines keep of which no verdict is known yet: caches that fill."""
    (first, _), (last, _) = rise.first, rise.last
    open_lines = [*engine.unsettled(Verdict.FILLING), *engine.unsettled(Verdict.TOO_EARLY)]
    return sum(one.kept_since(first) for one in open_lines if one.medium in PRIVATE) / (last - first)


def disabled_notes() -> list[Note]:
    """Why a watch that never began has nothing to say, if the off switch is why."""
    line = switch.disabled_line()
    return [] if line is None else [Note(kind="gap", text=line, medium=None)]


def more_steps_note(warmup: int, steps: int) -> Note:
    """How many steps more a verdict needs."""
    more = warmup + MIN_STEPS - steps
    text = (
        f"run {more} more step{'s' if more != 1 else ''}: {steps} marked, the first {warmup} are warm-up, "
        f"and a verdict needs {MIN_STEPS} after them"
    )
    if not steps:
        text += (
            "; no step of an optimizer and no batch of a DataLoader was seen: put leakprobe.watch() around "
            "the loop, and call probe.step() at the end of each iteration"
        )
    return Note(kind="warm_up", text=text, medium=None)


def too_early_notes(engine: Engine | None) -> list[Note]:
    """What may grow, by more than the limit, and came in too few steps for a verdict."""
    every = engine.unsettled(Verdict.TOO_EARLY) if engine else []
    whole = {one.medium for one in every if one.lines > 1}
    told = [one for one in every if one.lines > 1 or one.medium not in whole]
    return [note_of_unsettled(one, "warm_up", f"are kept, {too_few(one)}, run more steps") for one in told]


def too_few(early: Unsettled) -> str:
    if early.readings:
        needed = f"a verdict needs {LEAST_EVENTS - 1} readings"
        return f"each of {early.readings} readings met larger blocks: {needed}"
    verdict = f"a verdict needs {LEAST_EVENTS} births"
    if early.lines > 1:
        return f"each line of too few births for itself: {verdict} of a line"
    return f"of {early.judgement.events} births: {verdict}"


def filling_notes(engine: Engine, told: Iterable[Finding | Note]) -> list[Note]:
    """What is kept of lines that keep ever less, by more than the limit, and of which no walk has told."""
    lines = {(one.medium, one.allocation) for one in told}
    words = (
        "are kept as of step {0.step:,}, by a cache that fills, or a history that slows down "
        "({0.judgement.reason})"
    )
    kept = engine.unsettled(Verdict.FILLING)
    notes = [note_of_unsettled(one, "bounded", words.format(one)) for one in kept]
    return [note for note in notes if (note.medium, note.allocation) not in lines]


def note_of_unsettled(kept: Unsettled, kind: str, words: str) -> Note:
    stack = stack_of(kept.site)
    user = innermost_user_frame(stack)
    place = place_of(stack, "no line of user code")
    others = kept.lines - 1
    if others:
        place += f" and {others} other line{'s' if others > 1 else ''}"
    return Note(
        kind=kind,
        text=f"{format_size(kept.bytes)} from {place} {words}",
        medium=kept.medium,
        live_bytes=kept.bytes,
        allocation=Frame(*user) if user else None,
    )


def unwalked_notes(engine: Engine | None, limit: float) -> list[Note]:
    """What grows by more than the limit, and whose holder no walk has met."""
    notes = []
    for suspect in unwalked(engine.last_look, engine.last_walk) if engine and engine.last_look else ():
        if suspect.rate > limit:
            stack = stack_of(suspect.site)
            user = innermost_user_frame(stack)
            text = (
                f"{suspect.medium} memory from {place_of(stack, 'no line of user code')} grows by "
                f"{suspect.rate:,.0f} B/step ({suspect.judgement.reason}), but no walk could be taken since: "
                "who keeps it is not known, and may have a bound"
            )
            notes.append(
                Note(
                    kind="gap",
                    text=text,
                    medium=suspect.medium,
                    bytes_per_step=round(suspect.rate, 1),
                    live_bytes=suspect.live_bytes,
                    allocation=Frame(*user) if user else None,
                )
            )
    return notes


def error_notes(engine: Engine | None) -> list[Note]:
    """What could not be read, if the last attempt failed."""
    if engine is None:
        return []
    texts = []
    if engine.look_error:
        texts.append(f"what is alive could not be counted {engine.look_error}")
    if engine.walk_error:
        texts.append(f"who keeps what grows could not be read: {engine.walk_error}")
    return [Note(kind="gap", text=text, medium=None) for text in texts]


def lines_of(engine: Engine | None, phases: Phases | None) -> list[LineRow]:
    """Growth per source line of the user's own files, as of the last look."""
    rows: dict[tuple[str, int], tuple[float, int]] = {}
    for look, suspect in suspects_of(engine):
        user = innermost_user_frame(stack_of(suspect.site))
        if user and suspect.rate:
            filename, lineno, _function = user
            rate, live = rows.get((filename, lineno), (0.0, 0))
            own = own_rate(suspect, look, phases)
            rows[filename, lineno] = rate + own, live + suspect.live_bytes
    return [
        {"filename": name, "lineno": line, "bytes_per_step": round(rate, 1), "live_bytes": live}
        for (name, line), (rate, live) in sorted(rows.items(), key=lambda item: -item[1][0])
    ]


def suspects_of(engine: Engine | None) -> list[tuple[Look, Suspect]]:
    """With the look that knows each: of what went with the loop, the one before."""
    look, gone = (engine.last_look, engine.gone) if engine is not None else (None, None)
    found = [(look, s) for s in look.suspects] if look is not None else []
    if gone is not None and gone.look is not None:
        found += [(gone.look, s) for s in gone.look.suspects if s.key in gone.lines]
    return found


def sites_of(engine: Engine | None) -> list[SiteRow]:
    """The largest and the fastest growing sites as of the last look, their lines as text."""
    rows: list[SiteRow] = []
    for row in engine.last_look.sites if engine and engine.last_look else []:
        stack = stack_of(row["site"])
        user = innermost_user_frame(stack)
        rows.append(
            {
                "medium": row["medium"],
                "type": row["type"],
                "live_bytes": row["live_bytes"],
                "live_count": row["live_count"],
                "bytes_per_step": row["bytes_per_step"],
                "survivors": row["survivors"],
                "allocation": Frame(*user) if user else None,
                "allocation_stack": [Frame(*f) for f in stack],
            }
        )
    return rows


def media_table(
    status: Status | None, steps: int, timeline: Timeline | None, engine: Engine | None
) -> dict[str, MediumRow]:
    """Per medium: what serves it, or why nothing does; live bytes and what could not be matched."""
    if not status:
        return {}
    hook, totals = status["hook"], status["totals"]
    last_mark = timeline.last_media() if timeline is not None else {}
    look = engine.last_look if engine else None
    table: dict[str, MediumRow] = {
        "python": {
            "mechanism": hook["mechanism"],
            "active": bool(hook["active"]),
            "why_not": hook["why_not"],
            "live_bytes": live_bytes(last_mark, "python"),
            "as_of_step": look.step if look else steps,
            "unmatched_events": hook["dropped"] + hook["site_overflow"],
        }
    }
    for row in status["native"]:
        for medium in of_family(row["medium"], {**totals, **status["by_torch"]}) or [row["medium"]]:
            size, mechanism = status["by_torch"].get(medium) or (
                live_bytes(last_mark, medium),
                row["mechanism"],
            )
            of_medium = totals.get(medium)
            table[medium] = {
                "mechanism": mechanism,
                "active": bool(row["active"]) or medium in status["by_torch"],
                "why_not": row["why_not"],
                "live_bytes": size,
                "as_of_step": steps,
                "unmatched_events": of_medium["unmatched"] if of_medium is not None else 0,
            }
    return table


def put_off_notes(engine: Engine | None) -> list[Note]:
    """Notes about looks and walks that were too dear: the report describes an earlier step then."""
    rows = [] if engine is None else engine.put_off()
    return [Note(kind="gap", text=f"{what} were {why}", medium=None) for what, why in rows]


def cuda_notes(status: Status) -> list[Note]:
    """What the hooks of CUDA's memory do not see in this process."""
    notes = []
    if status["beyond"]:
        text = (
            f"CUDA devices from cuda:{CUDA_DEVICES} on are not followed: births and deaths of their blocks "
            f"that were left out: {status['beyond']:,}"
        )
        notes.append(Note(kind="gap", text=text, medium="cuda"))
    if any(row["medium"] == "pinned" and row["mechanism"] for row in status["native"]) and reserves_pinned():
        text = (
            f"pinned memory is not followed: with {PINNED_RESERVE} torch takes one large segment and "
            "cuts its blocks from that; leave the setting out to find growth there"
        )
        notes.append(Note(kind="gap", text=text, medium="pinned"))
    return notes


def status_notes(status: Status | None, judged: range) -> list[Note]:
    """Notes about what was not seen in the steps ``judged``: gaps in attribution, dropped records."""
    if not status:
        return []
    hook, notes = status["hook"], cuda_notes(status)
    for first, last, why in hook["gaps"]:
        notes.append(
            Note(kind="gap", text=f"no allocation lines for steps {first} to {last}: {why}", medium="python")
        )
    dropped = sum(of_one["dropped"] for of_one in status["totals"].values())
    dropped += hook["dropped"] + hook["site_overflow"]
    if dropped:
        notes.append(
            Note(
                kind="dropped",
                text=f"{dropped} records were dropped for lack of memory or site numbers",
                medium=None,
            )
        )
    if hook["backing_dropped_at"] > judged.start + HALF * len(judged):  # not those of imports
        text = (
            "more lines make larger and larger blocks than can be followed: lists or dicts that are filled "
            "there with what lived before may not be seen"
        )
        notes.append(Note(kind="dropped", text=text, medium="python"))
    return notes
