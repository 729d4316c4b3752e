"""Pages of differences: of two reports, and of two snapshots."""

import os
from collections.abc import Sequence
from typing import Any, Protocol

from leakprobe.model.finding import PathRow
from leakprobe.model.report import Report
from leakprobe.model.rows import live_bytes
from leakprobe.model.units import counted, format_size
from leakprobe.report import charts
from leakprobe.report.clean import clean
from leakprobe.report.compare import Change, Comparison, rate
from leakprobe.report.html import facts, named_lines
from leakprobe.report.pages import render, write_page
from leakprobe.report.tables import Column, Table
from leakprobe.report.text import amount_of, cause_text, path_text, verdict_line, what_grows
from leakprobe.report.words import Words


class RowOfDiff(Protocol):
    """A leakprobe.DiffRow."""

    @property
    def medium(self) -> str: ...
    @property
    def type(self) -> str | None: ...
    @property
    def where(self) -> str: ...
    @property
    def count_diff(self) -> int: ...
    @property
    def size_diff(self) -> int: ...
    @property
    def path(self) -> Sequence[PathRow] | None: ...


class DiffOfSnapshots(Protocol):
    """A leakprobe.Diff."""

    @property
    def rows(self) -> Sequence[RowOfDiff]: ...
    @property
    def steps(self) -> tuple[int, int]: ...


def write_comparison(found: Comparison, path: str | os.PathLike[str], *, redact: bool = False) -> None:
    """The page of two reports.  Errors: as of Report.to_html()."""
    write_page(comparison_page(found, redact=redact), path)


def write_diff(found: DiffOfSnapshots, path: str | os.PathLike[str], *, redact: bool = False) -> None:
    """The page of two snapshots.  Errors: as of Report.to_html()."""
    write_page(diff_page(found, redact=redact), path)


def comparison_page(found: Comparison, *, redact: bool = False) -> str:
    words = Words(redact, [found.older, found.newer])
    sites = [(row[2], row[1], row[0], row[3], row[4], "") for row in found.sites]
    compare = {name: {"A": of_a, "B": of_b} for name, of_a, of_b in curves(found.older, found.newer)}
    return whole_page(
        f"{counted(len(found.findings), 'finding')} and {counted(len(found.sites), 'site')} compared"
        if found.findings
        else "No findings in either",
        site_table(sites),
        older="A",
        newer="B",
        compare=compare,
        changes=[change_row(change, words) for change in found.findings],
        sides=[
            {
                "name": name,
                "verdict": report.verdict,
                "text": verdict_line(report).partition(": ")[2],
                "facts": facts(report, words),
            }
            for name, report in (("A", found.older), ("B", found.newer))
        ],
    )


def diff_page(found: DiffOfSnapshots, *, redact: bool = False) -> str:
    words = Words(redact)
    older, newer = found.steps
    rows = [
        (
            clean(row.where),
            clean(row.type or ""),
            row.medium,
            row.count_diff,
            row.size_diff,
            words(path_text(row.path)) if row.path else "",
        )
        for row in found.rows
    ]
    title = f"From step {older} to step {newer}: {counted(len(rows), 'row')} changed"
    return whole_page(
        title,
        site_table(rows),
        older=f"step {older}",
        newer=f"step {newer}",
        compare={},
        changes=None,
        sides=[],
    )


def whole_page(title: str, table: Table, compare: dict[str, Any], **context: Any) -> str:
    tables = {"sites": table} if len(table) else {}
    data = {"compare": compare, "tables": {name: one.to_data() for name, one in tables.items()}}
    return render(
        "diff.html", data, {"title": title, "verdict": "", "compare": compare, "tables": tables, **context}
    )


def change_row(change: Change, words: Words) -> dict[str, str]:
    finding = change.newer or change.older
    assert finding is not None
    amount, _, live = amount_of(finding).partition("   ")
    named = named_lines(finding, words)
    return {
        "state": change.state,
        "rate": amount,
        "was": rate(change.older) if change.state == "changed" and change.older is not None else "",
        "what": clean(what_grows(finding)),
        "cause": clean(cause_text(finding)),
        "where": named[-1][1] if named else "line not known",
        "live": live.strip(),
    }


def curves(older: Report, newer: Report) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """(name, columns of A, columns of B) of RSS and of each medium that either has."""
    sides = [charts.highs_and_lows(charts.rows_of(report), charts.MOST_POINTS) for report in (older, newer)]
    if not any(sides):
        return []
    names = sorted({name for rows in sides for row, _ in rows for name in row["media"]})
    found = []
    for name in ["rss", *names]:
        a, b = (
            {
                "step": [row["step"] for row, _ in rows],
                "bytes": [
                    memory["rss"] if name == "rss" else live_bytes(row["media"], name) for row, memory in rows
                ],
            }
            for rows in sides
        )
        if any(a["bytes"]) or any(b["bytes"]):
            found.append((clean(name), a, b))
    return found


def site_table(rows: Sequence[tuple[str, str, str, int, int, str]]) -> Table:
    """Rows (where, type, medium, count, bytes, kept by)."""
    columns = [
        Column("allocated at", "place", [clean(row[0]) for row in rows]),
        Column("type", "text", [clean(row[1] or "buffers") for row in rows]),
        Column("memory", "choice", [clean(row[2]) for row in rows]),
        Column("bytes", "amount", [signed(row[4]) for row in rows], [row[4] for row in rows]),
        Column("count", "amount", [f"{row[3]:+,}" for row in rows], [row[3] for row in rows]),
    ]
    if any(row[5] for row in rows):
        columns.append(Column("kept by", "text", [row[5] for row in rows]))
    return Table("sites", "sites", columns, marked=[row[4] > 0 for row in rows], few=25)


def signed(size: int) -> str:
    return f"+{format_size(size)}" if size > 0 else format_size(size)
