"""Several reports, of ranks, workers or runs, as one."""

import collections
import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

from leakprobe.evidence.ranks import middle_and_spread, rates_of_ranks
from leakprobe.model.bounds import SHOWN_RANKS
from leakprobe.model.finding import Finding, Note
from leakprobe.model.report import MIN_STEPS, Report
from leakprobe.model.rows import LineRow, MediumBytes, MediumRow, MemoryRow, SiteRow, TimelineRow
from leakprobe.model.units import COUNT_DIGITS, format_rate

WORST = ("growing", "inconclusive", "steady")

#: Rows that have a step.
Row = TypeVar("Row", TimelineRow, MemoryRow)


class Labelled(Protocol):
    """What is merged: a Recording, or anything else with a report and a name for it."""

    @property
    def report(self) -> Report: ...

    @property
    def label(self) -> str: ...


def merge(recordings: Sequence[Labelled]) -> Report:
    """The report of all: findings with one fingerprint are one, their rates and live bytes added up.

    Each finding's evidence says which of the recordings show it.  Steps are those of the longest; bytes per
    medium and per mark are sums over the recordings, at each mark those of the last mark that a recording
    has. Those of DataLoader workers are left out of these, since their marks are batches and they share
    memory with their parent; a finding that the parent has of them has their numbers already.  That a worker
    had too few batches for a verdict says nothing of the loop.
    """
    reports = [r.report for r in recordings]
    labels = distinct([r.label for r in recordings])
    loops = [r for r in recordings if not is_of_worker(r.report)] or recordings
    looped = [r.report for r in loops]
    ranks = rates_of_ranks(looped)
    longest = max(looped, key=lambda r: r.steps["measured"])
    grown = [r.verdict for r in reports if r.verdict == "growing"]
    return Report(
        as_of_step=longest.as_of_step,
        verdict=min([*grown, *(r.verdict for r in looped)], key=WORST.index),
        steps=dict(longest.steps),
        findings=merge_findings(reports, labels),
        notes=notes_of_ranks(ranks) + merge_notes(reports, labels, beside_loop=len(looped) < len(reports)),
        lines=merge_lines(reports),
        media=merge_media(looped),
        timeline=sum_rows([r.timeline for r in looped], add_timeline),
        memory=sum_rows([r.memory for r in looped], add_memory),
        sites=merge_sites(reports),
        source=merge_source(reports),
        ranks=ranks,
        run={**longest.run, "recordings": ", ".join(labels), **too_short(looped)},
    )


def is_of_worker(report: Report) -> bool:
    """True for the report of one DataLoader worker."""
    return isinstance(report.run.get("worker"), int)


def too_short(reports: Sequence[Report]) -> dict[str, int]:
    """{"too_short": how many had too few steps for any verdict}, {} if none had."""
    count = sum(r.verdict == "inconclusive" and r.steps["measured"] < MIN_STEPS for r in reports)
    return {"too_short": count} if count else {}


def merge_notes(reports: Sequence[Report], labels: Sequence[str], beside_loop: bool) -> list[Note]:
    """beside_loop: workers are beside the program's own loop, and need no more steps for its verdict."""
    return [
        dataclasses.replace(note, text=f"{label}: {note.text}")
        for report, label in zip(reports, labels)
        for note in report.notes
        if not (beside_loop and is_of_worker(report) and is_of_steps(note))
    ]


def is_of_steps(note: Note) -> bool:
    """True for the note on how many steps more a verdict needs."""
    return note.kind == "warm_up" and note.medium is None


def distinct(labels: Sequence[str]) -> list[str]:
    """The labels, numbered where two are the same."""
    counts = collections.Counter(labels)
    out: list[str] = []
    numbers: collections.Counter[str] = collections.Counter()
    for label in labels:
        numbers[label] += 1
        out.append(f"{label} ({numbers[label]})" if counts[label] > 1 else label)
    return out


def merge_findings(reports: Sequence[Report], labels: Sequence[str]) -> list[Finding]:
    groups: dict[str, list[tuple[str, Finding, bool]]] = {}
    for report, label in zip(reports, labels):
        for finding in report.findings:
            groups.setdefault(finding.fingerprint, []).append((label, finding, is_of_worker(report)))
    return [merge_same(found, len(labels)) for found in groups.values()]


def merge_same(found: Sequence[tuple[str, Finding, bool]], total: int) -> Finding:
    """One finding of several (label, finding, whether a worker's own) with the same fingerprint.

    It is that with the largest rate, the numbers added up; a worker's own are in those of its parent, if that
    has it too.
    """
    labels = [label for label, *_ in found]
    findings = [f for _, f, of_worker in found if not of_worker] or [f for _, f, _ in found]
    first = max(findings, key=lambda f: (f.bytes_per_step, f.count_per_step))
    where = f"in {len(labels)} of {total} recordings ({', '.join(labels)})"
    if len(findings) > 1:
        each = [f"{label} {format_rate(f.bytes_per_step)}" for label, f, _ in found if f in findings]
        more = ", ..." if len(each) > SHOWN_RANKS else ""
        where += f", rates and bytes added up: {', '.join(each[:SHOWN_RANKS])}{more}"
    return dataclasses.replace(
        first,
        evidence=f"{where}; {first.evidence}",
        **{
            key: round(sum(getattr(f, key) for f in findings), COUNT_DIGITS)
            for key in ("bytes_per_step", "count_per_step", "live_bytes", "live_count")
        },
    )


def merge_lines(reports: Sequence[Report]) -> list[LineRow]:
    total: dict[tuple[str, int], tuple[float, int]] = {}
    for row in (row for r in reports for row in r.lines):
        rate, live = total.get((row["filename"], row["lineno"]), (0.0, 0))
        total[row["filename"], row["lineno"]] = rate + row["bytes_per_step"], live + row["live_bytes"]
    rows: list[LineRow] = [
        {"filename": f, "lineno": n, "bytes_per_step": round(a, 1), "live_bytes": b}
        for (f, n), (a, b) in total.items()
    ]
    return sorted(rows, key=lambda row: -row["bytes_per_step"])


def merge_media(reports: Sequence[Report]) -> dict[str, MediumRow]:
    """Live bytes are sums; a medium that one recording could not see is not seen."""
    merged: dict[str, MediumRow] = {}
    for report in reports:
        for name, row in report.media.items():
            other = merged.get(name)
            if other is None:
                merged[name] = row.copy()
                continue
            seen = row if not row["active"] else other
            merged[name] = {
                **seen,
                "live_bytes": row["live_bytes"] + other["live_bytes"],
                "unmatched_events": row["unmatched_events"] + other["unmatched_events"],
                "as_of_step": max(row["as_of_step"], other["as_of_step"]),
            }
    return merged


def merge_source(reports: Sequence[Report]) -> dict[str, dict[int, str]] | None:
    known = [r.source for r in reports if r.source is not None]
    merged: dict[str, dict[int, str]] = {}
    for source in known:
        for filename, lines in source.items():
            merged.setdefault(filename, {}).update(lines)
    return merged if known else None


def merge_sites(reports: Sequence[Report]) -> list[SiteRow]:
    rows = [row for r in reports for row in r.sites]
    return sorted(
        rows,
        key=lambda row: (row["bytes_per_step"] is None, -(row["bytes_per_step"] or 0), -row["live_bytes"]),
    )


def sum_rows(serieses: Sequence[list[Row]], add: Callable[[int, list[Row]], Row]) -> list[Row]:
    """Rows by step, rising; where one series has no row of a step, its last one before counts."""
    steps = sorted({row["step"] for series in serieses for row in series})
    places = [0] * len(serieses)
    rows: list[Row] = []
    for step in steps:
        latest = []
        for i, series in enumerate(serieses):
            while places[i] < len(series) and series[places[i]]["step"] <= step:
                places[i] += 1
            if places[i]:
                latest.append(series[places[i] - 1])
        rows.append(add(step, latest))
    return rows


def add_timeline(step: int, rows: list[TimelineRow]) -> TimelineRow:
    media: dict[str, MediumBytes] = {}
    for name, m in ((name, m) for row in rows for name, m in row["media"].items()):
        entry = media.setdefault(name, {"live_bytes": 0, "peak_bytes": 0})
        entry["live_bytes"] += m["live_bytes"]
        entry["peak_bytes"] += m["peak_bytes"]
    return {
        "step": step,
        "epoch": max(r["epoch"] for r in rows),
        "time": max(r["time"] for r in rows),
        "media": media,
    }


def add_memory(step: int, rows: list[MemoryRow]) -> MemoryRow:
    """Sums; a key that a row lacks, or has no number for, is left out."""
    keys = set.intersection(*(set(row) for row in rows)) - {"step"}
    numbers = (int, float)
    summed = {
        key: sum(row[key] for row in rows)
        for key in sorted(keys)
        if all(isinstance(row[key], numbers) for row in rows)
    }
    return {"step": step, "rss": None, "python_heap": 0, "native_accounted": 0, "probe_overhead": 0, **summed}


def notes_of_ranks(rows: Iterable[dict[str, Any]]) -> list[Note]:
    """One note per row of rates_of_ranks()."""
    return [note_of_ranks(row["medium"], row["rates"], row["outliers"]) for row in rows]


def note_of_ranks(medium: str, slopes: dict[int, float], far: list[int]) -> Note:
    middle, spread = middle_and_spread(slopes)
    shown = sorted(slopes, key=lambda rank: (rank not in far, rank))[:SHOWN_RANKS]
    rates = ", ".join(f"rank {rank} {format_rate(slopes[rank])}" for rank in shown)
    more = ", ..." if len(slopes) > len(shown) else ""
    word = "memory of the process" if medium == "rss" else medium
    told = f"; outlier: rank {', '.join(map(str, far))}" if far else "; no outlier"
    return Note(
        kind="ranks",
        text=f"{word}: {rates}{more}{told} (median {format_rate(middle)}, MAD {format_rate(spread)})",
        medium=None if medium == "rss" else medium,
        bytes_per_step=round(max(slopes.values()), 1),
    )
