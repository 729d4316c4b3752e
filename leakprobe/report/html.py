"""The report as one self-contained page: no request leaves it, and it can be mailed.

The text of the page is made here; the charts are drawn by plotly.js, which the page carries compressed.  All
that comes from the watched program goes through clean() and jinja2's escaping; the page's policy lets only
its own script run.
"""

import base64
import functools
import gzip
import importlib.resources
import importlib.util
import itertools
import json
import os
import re
import secrets
import time

from leakprobe.errors import LeakprobeError
from leakprobe.model.units import format_rate, format_size
from leakprobe.report import pictures
from leakprobe.report.files import write_private
from leakprobe.report.source import AROUND, excerpts, places_of
from leakprobe.report.text import amount_of, cause_text, clean, counted, verdict_line, what_grows

PACKAGES = ("jinja2", "plotly")
#: Marks that are drawn; of more, the highest and the lowest of each span.
MOST_POINTS = 400
#: Sites in the icicle and the table of survivors, lines in the table of lines.
MOST_SITES, FEW_SITES, MOST_LINES = 36, 10, 40
#: Rows of the table of ranks, those that stand out first.
MOST_RANKS = 64


def check_packages() -> None:
    """Errors: LeakprobeError "missing_package" where the page can't be made."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise LeakprobeError(
            f"the page needs {' and '.join(missing)}: python3 -m pip install {' '.join(missing)}",
            "missing_package",
        )
    if not plotly_script().is_file():
        raise LeakprobeError(
            "the page needs plotly.min.js, which the plotly that is installed lacks (a distribution's, perhaps):"
            " python3 -m pip install plotly has it",
            "missing_package",
        )


def plotly_script():
    """The file in the installed plotly."""
    return importlib.resources.files("plotly").joinpath("package_data", "plotly.min.js")


def write_html(report, path, *, redact: bool = False, source: bool = True) -> None:
    """Write the page, readable by its owner only.  Errors: LeakprobeError "missing_package" or
    "unwritable_file".
    """
    write_private(path, page(report, redact=redact, source=source).encode(errors="backslashreplace"), "page")


def page(report, *, redact: bool = False, source: bool = True) -> str:
    """The text of the page."""
    check_packages()
    import jinja2

    loader = jinja2.PackageLoader("leakprobe.report", "templates")
    environment = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(size=format_size, rate=format_rate, clean=clean)
    words = Words(redact)
    context = {
        "nonce": secrets.token_urlsafe(18),
        "title": verdict_line(report),
        "report": report,
        "facts": facts(report, words),
        "findings": [
            card(report, number, finding, words, source) for number, finding in enumerate(report.findings, 1)
        ],
        "notes": [
            {"kind": note.kind, "text": words(note.text)}
            for note in report.notes
            if not (report.ranks and note.kind == "ranks")
        ],
        "ranks": rank_table(report),
        "survivors": survivor_rows(report, words),
        "few": FEW_SITES,
        "look": look_step(report),
        "lines": [{**row, "filename": words.file(row["filename"])} for row in report.lines[:MOST_LINES]],
        "media": report.media,
        "data": json_text({"memory": memory_chart(report), "icicle": icicle(report, words)}),
        "style": asset("page.css"),
        "script": asset("page.js"),
        "plotly": compressed_plotly(),
    }
    return environment.get_template("page.html").render(context)


class Words:
    """Text of the watched program for the page: printable, and without folders where they are to be left
    out.
    """

    def __init__(self, redact: bool):
        self.redact = redact

    def __call__(self, text) -> str:
        text = clean(text)
        return re.sub(r"(?<![\w.<])(?:/[^\s/:'\"]+)+/", "", text) if self.redact else text

    def file(self, name: str) -> str:
        return clean(os.path.basename(name) if self.redact else name)

    def short(self, frame) -> str:
        """ "train.py:58 step"."""
        frame = frame if isinstance(frame, dict) else frame.to_dict()
        return clean(f"{os.path.basename(frame['filename'])}:{frame['lineno']} {frame['function']}")

    def full(self, frame) -> str:
        frame = frame if isinstance(frame, dict) else frame.to_dict()
        return f"{self.file(frame['filename'])}:{frame['lineno']}"


def facts(report, words) -> list[tuple[str, str]]:
    """What was watched, for the head of the page."""
    run = report.run
    found = []
    if "program" in run and not words.redact:
        found.append(("program", clean(run["program"])))
    if isinstance(run.get("started"), (int, float)):
        found.append(("started", time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(run["started"]))))
    if report.timeline:
        found.append(("watched for", duration(report.timeline[-1]["time"])))
    found.append(
        (
            "steps",
            f"{counted(report.steps['measured'], 'step')} measured after {report.steps['warmup']} of warm-up",
        )
    )
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


def card(report, number: int, finding, words, source: bool) -> dict:
    """A finding as the template shows it."""
    kind, _, rest = amount_of(finding).partition("   ")
    path = [step(element, words) for element in finding.path or []]
    if finding.holder and path:
        mark_holder(path, finding.holder)
    return {
        "number": number,
        "fingerprint": clean(finding.fingerprint),
        "label": "reference cycle" if finding.kind == "reference_cycle" else "leak",
        "rate": kind,
        "live": rest.strip(),
        "what": clean(what_grows(finding)),
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
        "code": code_blocks(report, finding, words) if source else [],
        "lines_named": named_lines(finding, words),
        "survivors": finding_survivors(report, finding),
    }


def step(element: dict, words) -> dict:
    return {
        "text": words(element["text"]),
        "edge": clean(element["edge"]),
        "type": clean(element["type"] or ""),
        "holder": False,
    }


def mark_holder(path, holder) -> None:
    """Mark the element of the path that grows."""
    text = holder["text"].split(" (")[0]
    for element in reversed(path):
        if element["text"] == clean(holder["text"]) or element["text"].split(" (")[0] == clean(text):
            element["holder"] = True
            return


def named_lines(finding, words) -> list[tuple[str, str]]:
    found = []
    grown_at = (finding.holder or {}).get("grown_at")
    if grown_at:
        found.append(("grows at", words.short(grown_at)))
    if finding.allocation:
        found.append(("allocated at", words.short(finding.allocation)))
    return found


def code_blocks(report, finding, words) -> list[dict]:
    """Excerpts of the user's source, each line with the growth that Report.lines has for it."""
    places = places_of([finding])
    texts = excerpts(places) if report.source is None else report.source
    rates = {(row["filename"], row["lineno"]): row["bytes_per_step"] for row in report.lines}
    grown_at = (finding.holder or {}).get("grown_at") or {}
    holder = (grown_at.get("filename"), grown_at.get("lineno"))
    birth = (finding.allocation.filename, finding.allocation.lineno) if finding.allocation else None
    blocks = []
    for filename in sorted({name for name, _ in places}):
        wanted = sorted(number for name, number in places if name == filename)
        rows, before = [], None
        for lineno in sorted(n for n in texts.get(filename, {}) if any(abs(n - w) <= AROUND for w in wanted)):
            if before is not None and lineno > before + 1:
                rows.append(None)
            before, place = lineno, (filename, lineno)
            rate = rates.get(place)
            rows.append(
                {
                    "lineno": lineno,
                    "text": clean(texts[filename][lineno].expandtabs(4)),
                    "rate": format_rate(rate) if rate else "",
                    "mark": ", ".join(
                        word for word, at in (("allocates", birth), ("grows", holder)) if place == at
                    ),
                }
            )
        if rows:
            blocks.append({"filename": words.file(filename), "rows": rows})
    return blocks


def finding_survivors(report, finding) -> str | None:
    """The picture of the survivors of a finding's site, where a site row is about the same line and
    medium.
    """
    rows = [
        row for row in report.sites
        if row["bytes_per_step"] is not None and row["medium"] == finding.medium and row["allocation_stack"][:1] == finding.allocation_stack[:1]
    ]  # fmt: skip
    if not rows:
        return None
    return pictures.survivors(
        max(rows, key=lambda r: r["live_bytes"])["survivors"], look_step(report), report.steps["warmup"]
    )


def look_step(report) -> int:
    """The step of the last look, which the survivors are as of."""
    known = report.media.get("python", {}).get("as_of_step") or 0
    return known or (report.timeline[-1]["step"] if report.timeline else sum(report.steps.values()))


def survivor_rows(report, words) -> list[dict]:
    """Sites with a picture each, those that grow first."""
    made = []
    for row in report.sites[:MOST_SITES]:
        stack = row["allocation_stack"]
        frame = row["allocation"] or (stack[0] if stack else None)
        made.append(
            {
                "what": clean(row["type"] or "buffers"),
                "medium": clean(row["medium"]),
                "where": words.short(frame) if frame else "line not known",
                "live": row["live_bytes"],
                "count": row["live_count"],
                "rate": format_rate(row["bytes_per_step"]) if row["bytes_per_step"] else "",
                "picture": pictures.survivors(row["survivors"], look_step(report), report.steps["warmup"]),
            }
        )
    return made


def memory_chart(report) -> dict:
    """Columns of the chart of memory over steps: one per medium, RSS, and what of RSS none of them has."""
    rows = highs_and_lows(list(zip(report.timeline, report.memory)), MOST_POINTS)
    names = sorted({name for row, _ in rows for name in row["media"]}, key=lambda n: (n != "python", n))
    media = {name: [row["media"].get(name, {}).get("live_bytes", 0) for row, _ in rows] for name in names}
    media = {name: values for name, values in media.items() if any(values)}
    rss = [memory["rss"] for _, memory in rows]
    probe = [memory["probe_overhead"] for _, memory in rows]
    rest = [
        max(0, r - p - sum(live)) if r is not None else None
        for r, p, *live in zip(rss, probe, *media.values())
    ]
    epochs = [
        row["step"]
        for before, row in zip(report.timeline, report.timeline[1:])
        if row["epoch"] != before["epoch"]
    ]
    return {
        "step": [row["step"] for row, _ in rows],
        "time": [round(row["time"], 3) for row, _ in rows],
        "media": media, "rss": rss, "probe": probe, "rest": rest, "warmup": report.steps["warmup"], "epochs": epochs[:60],
    }  # fmt: skip


def highs_and_lows(rows, most: int) -> list:
    """At most so many of the rows (timeline, memory): of each span those with most and fewest bytes, first
    and last kept.
    """
    if len(rows) <= most:
        return rows

    def height(i: int) -> float:
        row, memory = rows[i]
        return memory["rss"] or sum(m["live_bytes"] for m in row["media"].values())

    spans = (most - 2) // 2
    edges = [1 + i * (len(rows) - 2) // spans for i in range(spans + 1)]
    kept = {0, len(rows) - 1}
    for first, end in itertools.pairwise(edges):
        kept |= {max(range(first, end), key=height), min(range(first, end), key=height)}
    return [rows[i] for i in sorted(kept)]


def rank_table(report) -> dict | None:
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
    }


def icicle(report, words) -> dict:
    """Nodes of the icicle: stacks of the sites, outermost frame first; a node's value is the sum of the sites
    under it.
    """
    nodes: dict[str, dict] = {"": {"label": "all sites", "parent": None, "value": 0}}
    for row in report.sites:
        frames = [f for f in reversed(row["allocation_stack"]) if not f.filename.startswith("<frozen")][-12:]
        labels = [words(row["medium"]), *(words.short(f) for f in frames), clean(row["type"] or "buffers")]
        key = ""
        nodes[key]["value"] += row["live_bytes"]
        for label in labels:
            parent, key = key, f"{key}/{label}"
            node = nodes.setdefault(key, {"label": label, "parent": parent, "value": 0})
            node["value"] += row["live_bytes"]
    return {
        "ids": list(nodes), "labels": [n["label"] for n in nodes.values()],
        "parents": [n["parent"] if n["parent"] is not None else None for n in nodes.values()], "values": [n["value"] for n in nodes.values()],
    }  # fmt: skip


def json_text(value) -> str:
    """JSON that can stand inside a script element."""
    return (
        json.dumps(value, allow_nan=False, separators=(",", ":"))
        .replace("<", "\\u003c")
        .replace("\u2028", "")
        .replace("\u2029", "")
    )


def asset(name: str) -> str:
    return (
        importlib.resources.files("leakprobe.report").joinpath("templates", name).read_text(encoding="utf-8")
    )


@functools.lru_cache(maxsize=1)
def compressed_plotly() -> str:
    """plotly.js of the installed plotly, gzip in base64: 2 MB instead of 4.8."""
    return base64.b64encode(gzip.compress(plotly_script().read_bytes(), 9, mtime=0)).decode("ascii")
