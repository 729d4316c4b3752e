"""From the pages that forked workers have copied to findings: which attribute, how much so far, where it
ends.
"""

from collections.abc import Sequence
from typing import NamedTuple

from leakprobe.judge.entries import stack_of
from leakprobe.judge.fingerprints import fingerprint
from leakprobe.judge.worker_sets import Followed, Workers, WorkerSet
from leakprobe.model.entry import rows_of
from leakprobe.model.finding import Finding, HolderRow, Note
from leakprobe.model.frames import Frame, FrameTuple, innermost_user_frame
from leakprobe.model.thresholds import LEAST_COPIED_BYTES, LEAST_END_BYTES, NEARLY_ALL
from leakprobe.model.units import PERCENT, format_rate, format_size

FIXES = {
    "copy_on_access": "keep it in numpy, Arrow, a torch tensor or one packed buffer with offsets: leakprobe.audit(dataset) prices them",
    "copied_by_collection": "call gc.freeze() before the loader starts its workers, or keep it in arrays: leakprobe.audit(dataset) prices them",
}


class Copied(NamedTuple):
    """What a worker will have copied in the end, in bytes, how fast it does, and why."""

    end: int
    rate: float
    cause: str


def of_copies(workers: Workers, limit: float) -> tuple[list[Finding], list[Note]]:
    """(findings, notes) of what the workers have copied; per loader and attribute, that of the last set."""
    last: dict[tuple[int, str], tuple[WorkerSet, Followed]] = {}
    for one in workers.sets:
        state = workers.copies.of_set.get(one)
        for followed in (state.followed or ()) if state else ():
            if followed.samples:
                last[one.loader_key, followed.attribute.name] = (one, followed)
    findings: list[Finding] = []
    notes: list[Note] = []
    for one, followed in last.values():
        judge(one, followed, limit, findings, notes)
    if workers.copies.why_not:
        notes.append(
            Note(
                kind="gap",
                text=f"what workers copy of their dataset is not known: {workers.copies.why_not}",
                medium="worker",
            )
        )
    return findings, notes


def judge(
    one: WorkerSet, followed: Followed, limit: float, findings: list[Finding], notes: list[Note]
) -> None:
    slots = sorted(followed.samples)
    main = max(slots, key=followed.private_bytes)
    end = followed.end_bytes(main, one.batches_in_all, one.count, one.is_persistent)
    rate = sum(map(followed.rate, slots)) / len(slots)
    if (
        end * one.count < LEAST_END_BYTES
        or followed.private_bytes(main) < LEAST_COPIED_BYTES
        or rate <= limit
    ):
        return
    cause = "copied_by_collection" if followed.by_collection(main) else "copy_on_access"
    if all(map(followed.has_long_stopped, slots)) and one.is_persistent:
        notes.append(note_of(one, followed, slots, cause))
        return
    copied = Copied(end, rate, cause)
    findings.append(finding_of(one, followed, main, slots, copied, stack_of(followed.attribute.site)))


def finding_of(
    one: WorkerSet,
    followed: Followed,
    main: int,
    slots: Sequence[int],
    copied: Copied,
    stack: Sequence[FrameTuple],
) -> Finding:
    attribute = followed.attribute
    user = innermost_user_frame(stack)
    mean = sum(map(followed.private_bytes, slots)) / len(slots)
    holder: HolderRow = {
        "text": attribute.name,
        "type": attribute.type,
        "grown_at": None,
        "length": attribute.length,
    }
    return Finding(
        fingerprint=fingerprint("worker_growth", attribute.path, "worker", stack),
        kind="worker_growth",
        pattern="per_step" if one.is_persistent else "within_epoch",
        medium="worker",
        type=attribute.item_type() or attribute.type,
        bytes_per_step=round(copied.rate, 1),
        count_per_step=0.0,
        live_bytes=round(mean * one.count),
        live_count=attribute.count,
        confidence=NEARLY_ALL,
        evidence=evidence_of(one, followed, main, copied),
        allocation=Frame(*user) if user else None,
        allocation_stack=[Frame(*f) for f in stack],
        holder=holder,
        path=rows_of(attribute.path),
        cycle=None,
        cause=copied.cause,
        fix=FIXES[copied.cause],
    )


def evidence_of(one: WorkerSet, followed: Followed, main: int, copied: Copied) -> str:
    """ "dataset.paths: list of 1,000,000 str, 94 MB, shared at fork; 61 % now private in worker 0, ..."."""
    attribute = followed.attribute
    size = format_size(attribute.bytes)
    share = PERCENT * followed.private_bytes(main) / max(1, attribute.copied_bytes)
    each = f"x {one.count}" if one.count > 1 else "1 worker"
    span = "" if one.is_persistent or one.batches_in_all is None else ", again in each epoch"
    return (
        f"{attribute.name}: {attribute.describe()}, {size}, shared at fork; {share:.0f} % now private in worker {main}, "
        f"{format_rate(copied.rate)}; ends at +{format_size(copied.end)} per worker, {each}{span}"
    )


def note_of(one: WorkerSet, followed: Followed, slots: Sequence[int], cause: str) -> Note:
    mean = sum(map(followed.private_bytes, slots)) / len(slots)
    attribute = followed.attribute
    text = (
        f"copied by the workers until everything that they read was private: {attribute.name}, {attribute.describe()}, "
        f"+{format_size(round(mean))} per worker, x {one.count}; {FIXES[cause]}"
    )
    return Note(
        kind="stopped",
        text=text,
        medium="worker",
        type=attribute.type,
        live_bytes=round(mean * one.count),
        path=rows_of(attribute.path),
    )
