"""Several recordings, of ranks, workers or runs, as one report."""

import collections
import dataclasses

from leakprobe.model.report import Report
from leakprobe.report.ranks import notes_of_ranks, rates_of_ranks

WORST = ("growing", "inconclusive", "steady")


def merge(recordings) -> Report:
    """The report of all: findings with one fingerprint are one, their rates and live bytes added up.

    Each finding's evidence says which of the recordings show it.  Steps are those of the longest; bytes per
    medium and per mark are sums over the recordings, at each mark those of the last mark that a recording has.
    Those of DataLoader workers are left out of these, since their marks are batches and they share memory with their
    parent; a finding that the parent has of them has their numbers already.
    """
    reports = [r.report for r in recordings]
    labels = distinct([r.label for r in recordings])
    loops = [r for r in recordings if not is_of_worker(r.report)] or recordings
    looped = [r.report for r in loops]
    ranks = rates_of_ranks(loops)
    longest = max(looped, key=lambda r: r.steps["measured"])
    return Report(
        verdict=next(v for v in WORST if any(r.verdict == v for r in reports)),
        steps=dict(longest.steps),
        findings=merge_findings(reports, labels),
        notes=notes_of_ranks(ranks)
        + [
            dataclasses.replace(n, text=f"{label}: {n.text}")
            for r, label in zip(reports, labels)
            for n in r.notes
        ],
        lines=merge_lines(reports),
        media=merge_media(looped),
        timeline=sum_rows([r.timeline for r in looped], add_timeline),
        memory=sum_rows([r.memory for r in looped], add_memory),
        sites=merge_sites(reports),
        source=merge_source(reports),
        ranks=ranks,
        run={**longest.run, "recordings": ", ".join(labels)},
    )


def is_of_worker(report) -> bool:
    """True for the report of one DataLoader worker."""
    return isinstance(report.run.get("worker"), int)


def distinct(labels) -> list[str]:
    """The labels, numbered where two are the same."""
    counts = collections.Counter(labels)
    out, numbers = [], collections.Counter()
    for label in labels:
        numbers[label] += 1
        out.append(f"{label} ({numbers[label]})" if counts[label] > 1 else label)
    return out


def merge_findings(reports, labels) -> list:
    groups: dict[str, list] = {}
    for report, label in zip(reports, labels):
        for finding in report.findings:
            groups.setdefault(finding.fingerprint, []).append((label, finding, is_of_worker(report)))
    return [merge_same(found, len(labels)) for found in groups.values()]


def merge_same(found, total: int):
    """One finding of several (label, finding, whether a worker's own) with the same fingerprint.

    It is that with the largest rate, the numbers added up; a worker's own are in those of its parent, if that has it too.
    """
    labels = [label for label, *_ in found]
    findings = [f for _, f, of_worker in found if not of_worker] or [f for _, f, _ in found]
    first = max(findings, key=lambda f: (f.bytes_per_step, f.count_per_step))
    where = f"in {len(labels)} of {total} recordings ({', '.join(labels)})"
    return dataclasses.replace(
        first,
        evidence=f"{where}; {first.evidence}",
        **{
            key: round(sum(getattr(f, key) for f in findings), 2)
            for key in ("bytes_per_step", "count_per_step", "live_bytes", "live_count")
        },
    )


def merge_lines(reports) -> list:
    total: dict[tuple, list] = {}
    for row in (row for r in reports for row in r.lines):
        entry = total.setdefault((row["filename"], row["lineno"]), [0.0, 0])
        entry[0] += row["bytes_per_step"]
        entry[1] += row["live_bytes"]
    rows = [
        {"filename": f, "lineno": n, "bytes_per_step": round(a, 1), "live_bytes": b}
        for (f, n), (a, b) in total.items()
    ]
    return sorted(rows, key=lambda row: -row["bytes_per_step"])


def merge_media(reports) -> dict:
    """Live bytes are sums; a medium that one recording could not see is not seen."""
    merged: dict[str, dict] = {}
    for report in reports:
        for name, row in report.media.items():
            other = merged.get(name)
            if other is None:
                merged[name] = dict(row)
                continue
            seen = row if not row["active"] else other
            merged[name] = {
                **seen,
                **{key: row[key] + other[key] for key in ("live_bytes", "unmatched_events")},
                "as_of_step": max(row["as_of_step"], other["as_of_step"]),
            }
    return merged


def merge_source(reports) -> dict | None:
    known = [r.source for r in reports if r.source is not None]
    merged: dict[str, dict] = {}
    for source in known:
        for filename, lines in source.items():
            merged.setdefault(filename, {}).update(lines)
    return merged if known else None


def merge_sites(reports) -> list:
    rows = [row for r in reports for row in r.sites]
    return sorted(
        rows,
        key=lambda row: (row["bytes_per_step"] is None, -(row["bytes_per_step"] or 0), -row["live_bytes"]),
    )


def sum_rows(serieses, add) -> list[dict]:
    """Rows by step, rising; where one series has no row of a step, its last one before counts."""
    steps = sorted({row["step"] for series in serieses for row in series})
    places, rows = [0] * len(serieses), []
    for step in steps:
        latest = []
        for i, series in enumerate(serieses):
            while places[i] < len(series) and series[places[i]]["step"] <= step:
                places[i] += 1
            if places[i]:
                latest.append(series[places[i] - 1])
        rows.append({**add(latest), "step": step})
    return rows


def add_timeline(rows) -> dict:
    media: dict[str, dict] = {}
    for name, m in ((name, m) for row in rows for name, m in row["media"].items()):
        entry = media.setdefault(name, {"live_bytes": 0, "peak_bytes": 0})
        for key in entry:
            entry[key] += m[key]
    return {
        "step": 0,
        "epoch": max(r["epoch"] for r in rows),
        "time": max(r["time"] for r in rows),
        "media": media,
    }


def add_memory(rows) -> dict:
    """Sums; a key that a row lacks, or has no number for, is left out."""
    keys = set.intersection(*(set(row) for row in rows)) - {"step"}
    numbers = (int, float)
    summed = {
        key: sum(row[key] for row in rows)
        for key in sorted(keys)
        if all(isinstance(row[key], numbers) for row in rows)
    }
    return {"step": 0, "rss": None, "python_heap": 0, "native_accounted": 0, "probe_overhead": 0, **summed}
