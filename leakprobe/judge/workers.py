"""From what workers posted to findings of the whole watch: one per cause, merged over the workers that have
it.
"""

import collections
import dataclasses
import os
import statistics
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from leakprobe.judge import copies as copy_findings
from leakprobe.judge.epochs import get_longer
from leakprobe.judge.fingerprints import without_numbers
from leakprobe.judge.worker_sets import Workers, WorkerSet
from leakprobe.model.finding import Finding, Note, note_of_finding
from leakprobe.model.units import COUNT_DIGITS, format_size


class OfWorker(NamedTuple):
    """A finding of one worker's own."""

    workers: WorkerSet
    slot: int
    finding: Finding


def of_workers(workers: Workers, limit: float, *, enough: bool) -> tuple[list[Finding], list[Note]]:
    """(findings, notes) of a watch's Workers.  ``enough``: the watch has seen enough steps for a verdict."""
    workers.read()
    findings: list[Finding] = []
    notes = list(notes_of(workers))
    if enough:
        causes = by_cause(workers.sets)
        released = {key for key in causes if is_released(key, workers.sets)}
        notes += [note_of_released(merged(causes[key])) for key in released]
        findings = [
            f
            for f in (merged(rows) for key, rows in causes.items() if key not in released)
            if f.bytes_per_step > limit or (f.count_per_step and not f.bytes_per_step)
        ]
        copied, more = copy_findings.of_copies(workers, limit)
        findings += copied
        notes += more
    return findings, notes


def by_cause(sets: Sequence[WorkerSet]) -> dict[tuple[str, ...], list[OfWorker]]:
    """What tells causes apart => findings: of each loader those workers that had the cause last."""
    causes: dict[tuple[str, ...], dict[int, dict[int, OfWorker]]] = collections.defaultdict(dict)
    for one in sets:
        for slot in range(one.count):
            for finding in one.findings(slot):
                of_loader = causes[identity(finding)].setdefault(one.loader_key, {})
                if of_loader and next(iter(of_loader.values())).workers is not one:
                    of_loader.clear()  # workers of an earlier epoch
                of_loader[slot] = OfWorker(one, slot, finding)
    return {
        key: [row for of_loader in rows.values() for row in of_loader.values()]
        for key, rows in causes.items()
    }


def is_released(cause: tuple[str, ...], sets: Sequence[WorkerSet]) -> bool:
    """True if what grows ends with its workers, epoch after epoch, and epochs do not get longer: its peak is
    as high as ever.  Epochs in which too few batches came for a verdict have ended too.
    """
    loaders = {
        one.loader_key
        for one in sets
        if cause in {identity(f) for slot in range(one.count) for f in one.findings(slot)}
    }
    return all(ends_with_epochs([one for one in sets if one.loader_key == key]) for key in loaders)


def ends_with_epochs(sets: Sequence[WorkerSet]) -> bool:
    """True of new workers in each of three epochs or more, unless these get longer."""
    lengths = [sum(posting.batches for posting in one.postings) for one in sets]
    return bool(lengths[1:-1]) and not any(one.is_persistent for one in sets) and not get_longer(lengths)


def note_of_released(finding: Finding) -> Note:
    """What grows within each epoch, in words."""
    seen = format_size(finding.live_bytes)
    text = f"grows within each epoch in workers, which end with it, {seen} when last seen: {finding.evidence}"
    return dataclasses.replace(
        note_of_finding("within_epoch", text, finding),
        allocation_stack=finding.allocation_stack,
        holder=finding.holder,
    )


def identity(finding: Finding) -> tuple[str, ...]:
    """The line and the holder, whatever leads to it: where a worker ends, the frame of its loop is gone."""
    if finding.allocation is None or finding.holder is None:
        return (finding.fingerprint,)
    line, holder = finding.allocation, without_numbers(finding.holder["text"])
    return finding.cause, finding.medium, line.filename, str(line.lineno), str(finding.type), holder


def merged(rows: Sequence[OfWorker]) -> Finding:
    """One finding of several workers' own.  Its rate is per batch of the loader, as the process tree
    grows.
    """
    sets = list({id(one): one for one, _slot, _finding in rows}.values())
    main = max((finding for *_, finding in rows), key=lambda f: f.bytes_per_step)
    built = {(id(one), slot): max(1, one.postings[slot].batches) for one in sets for slot in range(one.count)}
    in_all = sum(built.values())
    share = {(id(one), slot): built[id(one), slot] / in_all for one, slot, _finding in rows}
    rate = sum(f.bytes_per_step * share[id(one), slot] for one, slot, f in rows)
    count = sum(f.count_per_step * share[id(one), slot] for one, slot, f in rows)
    return dataclasses.replace(
        main,
        kind="worker_growth",
        medium="worker",
        bytes_per_step=round(rate, 1),
        count_per_step=round(count, COUNT_DIGITS),
        live_bytes=sum(f.live_bytes for *_, f in rows),
        live_count=sum(f.live_count for *_, f in rows),
        confidence=max(f.confidence for *_, f in rows),
        evidence=evidence_of(rows, sum(one.count for one in sets), main),
    )


def evidence_of(rows: Sequence[OfWorker], count: int, main: Finding) -> str:
    """ "4 of 4 workers, +3.1 MiB/batch each, dataset.py:41 self.cache; ..."."""
    if main.kind == "resource_growth":
        each = f"+{statistics.median(f.count_per_step for *_, f in rows):g} {main.medium}/batch each"
    else:
        each = f"+{format_size(statistics.median(f.bytes_per_step for *_, f in rows))}/batch each"
    frame = main.allocation
    line = f", {os.path.basename(frame.filename)}:{frame.lineno}" if frame else ""
    held = f" {main.holder['text']}" if main.holder else ""
    return f"{len(rows)} of {count} worker{'s' * (count != 1)}, {each}{line}{held}; in one worker: {main.evidence}"


def notes_of(workers: Workers) -> Iterator[Note]:
    """What could not be seen of the workers."""
    if workers.why_not:
        yield Note(
            kind="gap", text=f"DataLoader workers are not followed: {workers.why_not}", medium="worker"
        )
    unwritten = [text for one in workers.sets for text in one.not_recorded()]
    if unwritten:
        yield Note(
            kind="gap",
            text=f"{len(unwritten)} DataLoader workers have no recording: {unwritten[0]}",
            medium="worker",
        )
    errors = [e for one in workers.sets for e in one.errors()]
    if errors:
        yield Note(
            kind="gap",
            text=f"{len(errors)} DataLoader workers could not be followed to their end: {errors[0]}",
            medium="worker",
        )
