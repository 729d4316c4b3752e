"""From segments of shared memory that pile up to findings: with their bytes, also once they are closed."""

import dataclasses

from leakprobe.judge.entries import stack_of
from leakprobe.judge.fingerprints import fingerprint
from leakprobe.judge.rises import Rise
from leakprobe.model.entry import Entry
from leakprobe.model.finding import Finding, Note
from leakprobe.model.frames import Frame, FrameTuple, innermost_user_frame
from leakprobe.model.units import COUNT_DIGITS, format_size
from leakprobe.watch.count_findings import (
    FIXES,
    attached,
    carries,
    count_finding,
    finding_of_bytes,
    is_of,
    line_of,
    makers_of,
)
from leakprobe.watch.engine import Engine

#: What is to be done about segments that have outlived their handles.
UNLINK = "unlink() the segment when you are done with it: closing it leaves its memory in /dev/shm"


def add_segments(engine: Engine, entries: list[Entry], findings: list[Finding], notes: list[Note]) -> None:
    """Add what grows in shared memory to findings and notes; to the finding of the objects that stand for it,
    or of their descriptors, where there is one.
    """
    resources = engine.resources
    others = resources.segments.others_rise()
    if others is not None and resources.processes.last:
        notes.append(note_of_others(others))
    count, size = resources.rise_of("shared"), resources.segment_bytes_rise()
    if count is None and size is None:
        unlisted = resources.segments.unlisted_rise()
        if unlisted is not None and others is None:
            notes.append(note_of_unlisted(unlisted))
        return
    place = place_of_owner(count, entries, findings, engine)
    if place is not None:
        if count is not None:
            findings[place] = with_count(attached(findings[place], "shared", count, resources), count)
        if size is not None:
            findings[place] = with_bytes(findings[place], size, resources.segments.bytes_since())
        return
    found = finding_of(count, size, entries, engine)
    if resources.segments.have_outlived_handles():
        found = dataclasses.replace(found, fix=f"{UNLINK}{line_of(found.allocation)}")
    findings.append(found)


def place_of_owner(
    count: Rise | None, entries: list[Entry], findings: list[Finding], engine: Engine
) -> int | None:
    """The place of the finding whose objects or descriptors are those of the segments."""
    makers = makers_of("shared", engine) | makers_of("fd", engine)
    if count is not None:
        for entry in entries:
            at = next((i for i, f in enumerate(findings) if is_of(f, entry)), None)
            if at is not None and carries(entry, makers, count):
                return at
    is_of_segments = engine.resources.fastest_kind() == "shm"
    return next((i for i, f in enumerate(findings) if f.medium == "fd" and is_of_segments), None)


def with_count(finding: Finding, count: Rise) -> Finding:
    """The finding of descriptors with the number of the segments that they stand for."""
    if finding.medium != "fd":
        return finding
    return dataclasses.replace(
        finding, count_per_step=round(count.slope, COUNT_DIGITS), live_count=int(count.total)
    )


def with_bytes(finding: Finding, size: Rise, live: int) -> Finding:
    """The finding with the bytes of the segments that its objects stand for."""
    return dataclasses.replace(
        finding,
        medium="shared",
        bytes_per_step=round(finding.bytes_per_step + size.slope, 1),
        live_bytes=finding.live_bytes + live,
        evidence=f"{finding.evidence}; {words_of_bytes(size)}",
    )


def words_of_bytes(size: Rise) -> str:
    return (
        f"their memory rose at {size.rises} of {size.of} marks, by {format_size(size.total)} between step "
        f"{size.first[0]} and step {size.last[0]}"
    )


def finding_of(count: Rise | None, size: Rise | None, entries: list[Entry], engine: Engine) -> Finding:
    if count is not None:
        makers = makers_of("shared", engine)
        entry = next((e for e in entries if carries(e, makers, count)), None)
        found = count_finding("shared", count, entry, makers, engine)
        found = with_line(found, count, engine)
        return with_bytes(found, size, engine.resources.segments.bytes_since()) if size is not None else found
    assert size is not None
    stack, measured = line_of_segments(engine)
    cause, fix = FIXES["shared"]
    evidence = f"segments of shared memory: {words_of_bytes(size)}" + (f"; {measured}" if measured else "")
    found = finding_of_bytes("resource_growth", "shared", stack, size, evidence)
    segments = engine.resources.segments
    return dataclasses.replace(
        found,
        live_bytes=segments.bytes_since(),
        live_count=int(segments.count.last),
        cause=cause,
        fix=f"{fix}{line_of(found.allocation)}",
    )


def with_line(finding: Finding, count: Rise, engine: Engine) -> Finding:
    """The finding at the line that makes the segments, or that gained their bytes, where no object's is
    known.
    """
    if finding.allocation is not None:
        return finding
    stack, measured = line_of_segments(engine)
    evidence = f"{finding.evidence}; {measured}" if measured else finding.evidence
    user = innermost_user_frame(stack)
    if user is None:
        return dataclasses.replace(finding, evidence=evidence)
    allocation = Frame(*user)
    return dataclasses.replace(
        finding,
        fingerprint=fingerprint("resource_growth", (), "shared", stack),
        evidence=evidence,
        allocation=allocation,
        allocation_stack=[Frame(*frame) for frame in stack],
        fix=f"{finding.fix}{line_of(allocation)}",
    )


def line_of_segments(engine: Engine) -> tuple[list[FrameTuple], str]:
    """(stack, sentence) by what tells it most exactly: files were seen being made; the kernel counts segments
    that have neither a name nor a number only as mappings or descriptors of this process.
    """
    known = engine.resources.segments.line()
    if known is not None:
        site, files = known
        return list(stack_of(site)), f"this line made {files:,} of the files in /dev/shm"
    rates = engine.resources.segments_come_by()
    said = [engine.native_lines.verdict(rate, what) for what, rate in rates.items()]
    return next((found for found in said if found[0]), next((found for found in said if found[1]), ([], "")))


def note_of_others(others: Rise) -> Note:
    """Of files in /dev/shm that a child process may have made."""
    return Note(
        kind="gap",
        text=f"files of this user in /dev/shm grow, {others.slope:.2g} files a step; this process was not "
        "seen to make them: one of its child processes may, or another program",
        medium="shared",
        bytes_per_step=0.0,
    )


def note_of_unlisted(unlisted: Rise) -> Note:
    """Of files in /dev/shm that nobody can be named for."""
    return Note(
        kind="gap",
        text=f"files in /dev/shm and System V segments grow, {unlisted.slope:.2g} a step from step "
        f"{unlisted.first[0]} to step {unlisted.last[0]}; whose they are is not known: to list them was put "
        "off, as it would have slowed the loop",
        medium="shared",
        bytes_per_step=0.0,
    )
