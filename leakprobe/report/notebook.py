"""What a notebook shows of reports, snapshots, differences, paths and cycles: small HTML without a script.

Colours are those of the notebook, light or dark; what comes from the watched program is escaped.
"""

import html
from collections.abc import Iterable, Sequence

from leakprobe.model.finding import Finding, PathRow
from leakprobe.model.report import Report
from leakprobe.model.rows import MediumRow
from leakprobe.model.snapshot_rows import SnapshotRow
from leakprobe.model.units import counted, format_size
from leakprobe.report.clean import clean
from leakprobe.report.diff_html import RowOfDiff
from leakprobe.report.html import Known, finding_survivors
from leakprobe.report.text import amount_of, cause_text, frame_text, stack_text, verdict_line, what_grows

#: Rows of a table, findings that are open at first.
MOST_ROWS, OPEN_FINDINGS = 20, 1
STYLE = """<style>
.leakprobe{font-size:.93em;line-height:1.45;max-width:62em}
.leakprobe table{border-collapse:collapse;margin:.4em 0}
.leakprobe td,.leakprobe th{text-align:left!important;padding:.15em .9em .15em 0;vertical-align:top}
.leakprobe .n{text-align:right!important;font-variant-numeric:tabular-nums;white-space:nowrap}
.leakprobe .verdict{display:inline-block;padding:.1em .8em;border-radius:1em;font-weight:600;border:1px solid}
.leakprobe .growing{color:#c0392b}.leakprobe .steady{color:#1a8a52}.leakprobe .inconclusive{color:#a06a00}
.leakprobe details{border-left:3px solid #c0392b;padding:.1em 0 .1em .8em;margin:.5em 0}
.leakprobe summary{cursor:pointer}
.leakprobe .keys td:first-child{opacity:.75}
.leakprobe ol.path{list-style:none;margin:.2em 0;padding:0}
.leakprobe ol.path li{border-left:2px solid #8894a3;padding-left:.7em}
.leakprobe ol.path i{opacity:.75;font-size:.86em}
.leakprobe svg{display:block;width:100%;max-width:30em;height:2.2em}
.leakprobe svg rect{fill:#c0392b}.leakprobe svg .warmup{fill:#8894a3;opacity:.25}
.leakprobe .soft{opacity:.75}
</style>"""


def cell(*parts: str) -> str:
    return f'<div class="leakprobe">{STYLE}{"".join(parts)}</div>'


def safe(text: object) -> str:
    return html.escape(clean(text))


# ---- reports ----


def of_report(report: Report) -> str:
    """Verdict, findings that open, notes, media."""
    known = Known(report)
    cards = [card(known, number, finding) for number, finding in enumerate(report.findings, 1)]
    notes = "".join(f"<li><b>{safe(n.kind)}</b> {safe(n.text)}</li>" for n in report.notes)
    media = [
        (name, format_size(row["live_bytes"]) if row["active"] else "", seen_by(row))
        for name, row in report.media.items()
    ]
    return cell(
        f'<p><span class="verdict {report.verdict}">{safe(report.verdict)}</span>',
        f" {safe(verdict_line(report).partition(': ')[2])}</p>",
        *cards,
        f"<ul>{notes}</ul>" if notes else "",
        f'<p class="soft">What could be seen</p>{table(("memory", "live", "seen by"), media, {1})}'
        if media
        else "",
    )


def seen_by(row: MediumRow) -> str:
    return str(row["mechanism"]) if row["active"] else f"not seen: {row['why_not']}"


def card(known: Known, number: int, finding: Finding) -> str:
    keys = []
    grown_at = finding.holder["grown_at"] if finding.holder else None
    if grown_at:
        keys.append(("grows at", frame_text(grown_at)))
    keys.append(("allocated", stack_text(finding) if finding.allocation_stack else "line not known"))
    keys += [("because", finding.evidence), ("cause", cause_text(finding))]
    if finding.fix:
        keys.append(("fix", finding.fix))
    rows = "".join(f"<tr><td>{name}</td><td>{safe(text)}</td></tr>" for name, text in keys)
    picture = finding_survivors(known, finding)
    rate = amount_of(finding).partition("   ")[0]
    head = f'<b>{number}</b> <b class="growing">{safe(rate)}</b> {safe(what_grows(finding))}'
    paths = "".join(path_list(path) for path in (finding.path, finding.cycle) if path)
    body = f'{paths}<table class="keys">{rows}</table>{picture or ""}'
    return f"<details{' open' * (number <= OPEN_FINDINGS)}><summary>{head}</summary>{body}</details>"


# ---- snapshots and differences ----


def of_snapshot(rows: Sequence[SnapshotRow], step: int) -> str:
    """The largest rows."""
    shown = [
        (format_size(r.size), f"{r.count:,}", r.medium, r.type or "buffers", r.where())
        for r in rows[:MOST_ROWS]
    ]
    names = ("size", "count", "memory", "type", "allocated at")
    return cell(
        f"<p>Snapshot at step {step}, {counted(len(rows), 'row')}</p>",
        table(names, shown, {0, 1}),
        more(len(rows)),
    )


def of_diff(rows: Sequence[RowOfDiff], steps: tuple[int, int]) -> str:
    """The largest changes."""
    shown = [
        (
            format_size(r.size_diff),
            f"{r.count_diff:+,}",
            r.medium,
            r.type or "buffers",
            r.where,
            " -> ".join(element["text"] for element in r.path) if r.path else "",
        )
        for r in rows[:MOST_ROWS]
    ]
    names = ("size", "count", "memory", "type", "allocated at", "kept by")
    head = f"<p>From step {steps[0]} to step {steps[1]}, {counted(len(rows), 'row')} changed</p>"
    return cell(head, table(names, shown, {0, 1}), more(len(rows)))


def more(rows: int) -> str:
    return f'<p class="soft">and {rows - MOST_ROWS:,} smaller ones</p>' if rows > MOST_ROWS else ""


# ---- paths and cycles ----


def of_paths(paths: Iterable[Sequence[PathRow]]) -> str:
    """Paths, the nearest root first."""
    found = [path_list(path) for path in paths]
    head = f"<p>{len(found)} path{'s' * (len(found) != 1)} from a root, root first</p>"
    return cell(head, "".join(found) if len(found) == 1 else numbered(found))


def of_cycle(path: Sequence[PathRow], head: str, why: str) -> str:
    return cell(f"<p>{safe(head)}<br>{safe(why)}</p>", path_list(path))


def numbered(lists: Sequence[str]) -> str:
    return "".join(
        f"<details{' open' if i == 1 else ''}><summary>{i}</summary>{text}</details>"
        for i, text in enumerate(lists, 1)
    )


def path_list(path: Sequence[PathRow]) -> str:
    items = []
    for i, element in enumerate(path):
        edge = f"<i>{safe(element['edge'])}</i> " if i else ""
        items.append(f"<li>{edge}<code>{safe(element['text'])}</code></li>")
    return f'<ol class="path">{"".join(items)}</ol>'


def table(names: Sequence[str], rows: Iterable[Sequence[str]], numbers: set[int]) -> str:
    """numbers: columns that are set to the right."""

    def line(tag: str, texts: Sequence[str]) -> str:
        return "".join(
            f"<{tag}{' class=n' if i in numbers else ''}>{safe(text)}</{tag}>" for i, text in enumerate(texts)
        )

    body = "".join(f"<tr>{line('td', row)}</tr>" for row in rows)
    return f"<table><thead><tr>{line('th', names)}</tr></thead><tbody>{body}</tbody></table>"
