"""The report as one self-contained page: no request leaves it, and it can be mailed.

The text of the page is made here; the charts are drawn by plotly.js, which the page carries compressed.  All
that comes from the watched program goes through clean() and jinja2's escaping; the page's policy lets only
its own script run.
"""

import dataclasses
import functools
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

from leakprobe.model.bounds import SOURCE_AROUND
from leakprobe.model.epochs import epoch_peaks
from leakprobe.model.finding import Finding, HolderRow, PathRow, first_wrong
from leakprobe.model.frames import Frame
from leakprobe.model.report import Report
from leakprobe.model.rows import PeakRow, SiteRow
from leakprobe.model.source import excerpts, places_of
from leakprobe.model.units import counted, format_rate, format_size
from leakprobe.report import charts, pictures
from leakprobe.report.clean import clean
from leakprobe.report.pages import check_packages, render, write_page
from leakprobe.report.tables import Column, Table
from leakprobe.report.text import amount_of, cause_text, verdict_line, what_grows
from leakprobe.report.words import Words

__all__ = ["check_packages", "page", "write_html"]

#: Rows of the table of ranks, those that stand out first.
MOST_RANKS = 64
#: Findings that are open at first, and rows of a table that are shown at first.
OPEN_FINDINGS, FEW_SITES = 2, 10
#: Rows of the table of epochs.
MOST_EPOCHS = 200
#: How a finding grows, where that is not at each step alone.
PATTERNS = {"per_epoch": "once an epoch", "within_epoch": "within each epoch"}


@dataclasses.dataclass(frozen=True)
class Live:
    """A page that follows a recording.  text: what is followed, and how far it is; state, version: those of
    a Follower.
    """

    text: str
    state: str
    version: int


def write_html(
    report: Report, path: str | os.PathLike[str], *, redact: bool = False, source: bool = True
) -> None:
    """Write the page, readable by its owner only.  Errors: LeakprobeError "missing_package",
    "unwritable_file" or "foreign_file".
    """
    write_page(page(report, redact=redact, source=source), path)


def page(
    report: Report,
    *,
    redact: bool = False,
    source: bool = True,
    live: Live | None = None,
    whole: bool = True,
) -> str:
    """The text of the page.  live: it follows a recording; whole=False: without plotly.js."""
    words = Words(redact, [report])
    tables = [table for table in (site_table(report, words), line_table(report, words)) if len(table)]
    context = {**written(report, tables, words, source), "live": live}
    return render("page.html", drawn(report, tables, words), context, whole=whole)


def written(report: Report, tables: Sequence[Table], words: Words, source: bool) -> dict[str, Any]:
    """What the template of the page writes."""
    known = Known(report)
    findings = [card(known, number, f, words, source) for number, f in enumerate(report.findings, 1)]
    return {
        "title": verdict_line(report),
        "verdict": report.verdict,
        "facts": facts(report, words),
        "findings": findings,
        "media_found": sorted({row["medium"] for row in findings}),
        "notes": [
            {"kind": note.kind, "text": words(note.text)}
            for note in report.notes
            if not (report.ranks and note.kind == "ranks")
        ],
        "ranks": rank_table(report),
        "memory": charts.memory_rows(report),
        "roles": charts.role_rows(report),
        "highest": [highest(row, words) for row in report.peaks],
        "peaks": epoch_peaks(report.timeline)[-MOST_EPOCHS:] if charts.epoch_chart(report) else [],
        "tables": {table.name: table for table in tables},
        "pictures": [site_picture(row, report) for row in ordered_sites(report)[:FEW_SITES]],
        "look": look_step(report),
        "media": report.media,
        "open_findings": OPEN_FINDINGS,
    }


def drawn(report: Report, tables: Sequence[Table], words: Words) -> dict[str, Any]:
    """What the script of the page draws."""
    return {
        "memory": charts.memory_chart(report),
        "roles": charts.role_chart(report),
        "peaks": charts.epoch_chart(report),
        "ranks": charts.rank_chart(report),
        "icicle": charts.icicle(report, words),
        "tables": {table.name: table.to_data() for table in tables},
    }


def facts(report: Report, words: Words) -> list[tuple[str, str]]:
    """What was watched, for the head of the page."""
    run = report.run
    found = []
    if "program" in run and not words.redact:
        found.append(("program", clean(run["program"])))
    if isinstance(run.get("started"), (int, float)):
        found.append(("started", time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(run["started"]))))
    if report.timeline:
        found.append(("watched for", duration(report.timeline[-1]["time"])))
    measured = counted(report.steps["measured"], "step")
    found.append(("steps", f"{measured} measured after {report.steps['warmup']} of warm-up"))
    if "rank" in run:
        found.append(("rank", f"{run['rank']} of {run.get('world_size', '?')}"))
    if "recordings" in run:
        found.append(("merged from", words(run["recordings"])))
    versions = [
        f"{name} {clean(run[name])}" for name in ("python", "torch", "numpy", "leakprobe") if name in run
    ]
    return [*found, ("with", ", ".join(versions))] if versions else found


def duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return (
        f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"
    )


# ---- findings ----


class Known:
    """What each finding looks up in its report, gathered once for all of them."""

    def __init__(self, report: Report):
        self.report = report
        self.rates = {(row["filename"], row["lineno"]): row["bytes_per_step"] for row in report.lines}
        #: The largest site of a medium at a line: of each type, and of all types under None.
        self.sites: dict[tuple[str, tuple[Frame, ...], str | None], SiteRow] = {}
        for row in sorted(report.sites, key=lambda row: -row["live_bytes"]):
            if row["bytes_per_step"] is not None:
                for kind in (row["type"], None):
                    self.sites.setdefault((row["medium"], tuple(row["allocation_stack"][:1]), kind), row)

    @functools.cached_property
    def source(self) -> dict[str, dict[int, str]]:
        """Lines around what the findings name; read where they are shown."""
        found = self.report.source
        return excerpts(places_of(self.report.findings)) if found is None else found


def card(known: Known, number: int, finding: Finding, words: Words, source: bool) -> dict[str, Any]:
    """A finding as the template shows it."""
    kind, _, rest = amount_of(finding).partition("   ")
    path = [step(element, words) for element in finding.path or []]
    if finding.holder and path:
        mark_holder(path, finding.holder)
    wrong = first_wrong(finding.path or [])
    if wrong is not None:
        path[wrong]["wrong"] = True
    named = named_lines(finding, words)
    what = clean(what_grows(finding))
    return {
        "number": number,
        "fingerprint": clean(finding.fingerprint),
        "pattern": PATTERNS.get(finding.pattern, ""),
        "rate": kind,
        "sizes": {
            "rate": finding.bytes_per_step,
            "live": finding.live_bytes,
            "confidence": finding.confidence,
        },
        "live": rest.strip(),
        "what": what,
        "where": named[-1][1] if named else "line not known",
        "medium": clean(finding.medium),
        "confidence": round(100 * finding.confidence),
        "cause": clean(cause_text(finding)),
        "fix": finding.fix and words(finding.fix),
        "evidence": words(finding.evidence),
        "path": path,
        "cycle": [step(element, words) for element in finding.cycle or []],
        "stack": [
            {"where": words.full(f), "function": clean(f.function), "mine": f == finding.allocation}
            for f in finding.allocation_stack
        ],
        "code": code_blocks(known, finding, words) if source else [],
        "lines_named": named,
        "survivors": finding_survivors(known, finding),
    }


def step(element: PathRow, words: Words) -> dict[str, Any]:
    return {
        "text": words(element["text"]),
        "edge": clean(element["edge"]),
        "type": clean(element["type"] or ""),
        "holder": False,
        "lives": clean(element.get("lives", "")),
        "why": clean(element.get("why", "")),
        "wrong": False,
    }


def mark_holder(path: list[dict[str, Any]], holder: HolderRow) -> None:
    """Mark the element of the path that grows."""
    text = clean(holder["text"])
    for element in reversed(path):
        if element["text"] == text or element["text"].split(" (")[0] == text.split(" (")[0]:
            element["holder"] = True
            return


def named_lines(finding: Finding, words: Words) -> list[tuple[str, str]]:
    found = []
    grown_at = finding.holder["grown_at"] if finding.holder else None
    if grown_at:
        found.append(("grows at", words.short(grown_at)))
    if finding.allocation:
        found.append(("allocated at", words.short(finding.allocation)))
    return found


def code_blocks(known: Known, finding: Finding, words: Words) -> list[dict[str, Any]]:
    """Excerpts of the user's source, each line with the growth that Report.lines has for it."""
    places = places_of([finding])
    grown_at = finding.holder["grown_at"] if finding.holder else None
    holder = (grown_at["filename"], grown_at["lineno"]) if grown_at else None
    birth = (finding.allocation.filename, finding.allocation.lineno) if finding.allocation else None
    blocks = []
    for filename in sorted({name for name, _ in places}):
        lines = known.source.get(filename, {})
        around = {
            lineno
            for name, number in places
            for lineno in range(number - SOURCE_AROUND, number + SOURCE_AROUND + 1)
            if name == filename and lineno in lines
        }
        rows: list[dict[str, Any] | None] = []
        before = None
        for lineno in sorted(around):
            if before is not None and lineno > before + 1:
                rows.append(None)
            before, place = lineno, (filename, lineno)
            rate = known.rates.get(place)
            marks = (word for word, at in (("allocates", birth), ("grows", holder)) if place == at)
            rows.append(
                {
                    "lineno": lineno,
                    "text": words(lines[lineno].expandtabs(4)),
                    "rate": format_rate(rate) if rate else "",
                    "mark": ", ".join(marks),
                }
            )
        if rows:
            blocks.append({"filename": words.file(filename), "rows": rows})
    return blocks


def finding_survivors(known: Known, finding: Finding) -> str | None:
    """The picture of the survivors of a finding's site, where a site row is about the same line and
    medium.
    """
    medium, line = finding.medium, tuple(finding.allocation_stack[:1])
    row = known.sites.get((medium, line, finding.type)) or known.sites.get((medium, line, None))
    return site_picture(row, known.report) if row else None


# ---- the highest point, sites and lines ----


def highest(row: PeakRow, words: Words) -> dict[str, Any]:
    """The lines of a medium's highest point."""
    parts = [
        (part["role"], words.short(part["allocation"]) if part["allocation"] else "line not known", part)
        for part in row["parts"]
    ]
    return {"medium": row["medium"], "step": row["step"], "bytes": row["bytes"], "parts": parts}


def look_step(report: Report) -> int:
    """The step of the last look, which the survivors are as of."""
    python = report.media.get("python")
    if python is not None and python["as_of_step"]:
        return python["as_of_step"]
    return report.timeline[-1]["step"] if report.timeline else sum(report.steps.values())


def site_picture(row: SiteRow, report: Report) -> str:
    return pictures.survivors(row["survivors"], look_step(report), report.steps["warmup"])


def ordered_sites(report: Report) -> list[SiteRow]:
    """Those that grow first, the fastest first; then the largest."""
    return sorted(report.sites, key=lambda row: (-(row["bytes_per_step"] or 0), -row["live_bytes"]))


def site_table(report: Report, words: Words) -> Table:
    """Allocation sites with a picture each."""
    rows, last = ordered_sites(report), look_step(report)
    rates = [row["bytes_per_step"] or 0 for row in rows]
    return Table(
        "sites",
        "sites",
        (
            Column("allocated at", "place", [place_of_site(row, words) for row in rows]),
            Column("type", "text", [clean(row["type"] or "buffers") for row in rows]),
            Column("memory", "choice", [clean(row["medium"]) for row in rows]),
            amounts("growth", rates, lambda rate: format_rate(rate) if rate else ""),
            amounts("live", [row["live_bytes"] for row in rows], format_size),
            amounts("count", [row["live_count"] for row in rows], "{:,}".format),
            Column(
                "born, and still alive", "picture", [pictures.levels(row["survivors"], last) for row in rows]
            ),
        ),
        marked=[bool(rate) for rate in rates],
        few=FEW_SITES,
    )


def place_of_site(row: SiteRow, words: Words) -> str:
    stack = row["allocation_stack"]
    frame = row["allocation"] or (stack[0] if stack else None)
    return words.short(frame) if frame else "line not known"


def amounts(name: str, values: Sequence[float], in_words: Callable[[float], str]) -> Column:
    """A column that is sorted by its numbers."""
    return Column(name, "amount", [in_words(value) for value in values], values)


def line_table(report: Report, words: Words) -> Table:
    """Lines of the user's own files that grow."""
    rows = report.lines
    return Table(
        "lines",
        "lines",
        (
            Column("line", "place", [f"{words.file(row['filename'])}:{row['lineno']}" for row in rows]),
            amounts("growth", [row["bytes_per_step"] for row in rows], format_rate),
            amounts("live", [row["live_bytes"] for row in rows], format_size),
        ),
    )


def rank_table(report: Report) -> dict[str, Any] | None:
    """{"media", "rows": [{"rank", "cells": [(rate, whether it stands out)]}], "more"} of a merged report, or
    None.
    """
    if not report.ranks:
        return None
    far = {rank for row in report.ranks for rank in row["outliers"]}
    ranks = sorted(report.ranks[0]["rates"], key=lambda rank: (rank not in far, rank))
    return {
        "media": [
            "resident (RSS)" if row["medium"] == "rss" else clean(row["medium"]) for row in report.ranks
        ],
        "rows": [
            {"rank": rank, "cells": [(row["rates"][rank], rank in row["outliers"]) for row in report.ranks]}
            for rank in ranks[:MOST_RANKS]
        ],
        "more": max(0, len(ranks) - MOST_RANKS),
        "outliers": sorted(far),
        "count": len(ranks),
    }
