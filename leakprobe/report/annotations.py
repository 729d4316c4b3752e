"""Annotations of GitHub: lines such as "::error file=train.py,line=58,title=...::..." in a job's log, which
are shown beside the code of a pull request.

Format: "Workflow commands for GitHub Actions", setting a message.  A line break and what separates fields is
written as % and two hexadecimal digits.
"""

import os
from collections.abc import Mapping

from leakprobe.model.finding import Finding
from leakprobe.model.frames import Frame
from leakprobe.model.report import Report
from leakprobe.report.clean import clean
from leakprobe.report.places import grown_at, inside, place_of
from leakprobe.report.text import amounts, cause_text, frame_text, path_text, verdict_line, what_grows


def workspace() -> str:
    """The folder that paths of annotations are relative to: the checkout of the job, else the current one."""
    return os.environ.get("GITHUB_WORKSPACE") or os.getcwd()


def is_github() -> bool:
    """True in a job of GitHub Actions."""
    return os.environ.get("GITHUB_ACTIONS", "").lower() == "true"


def to_annotations(report: Report, root: str | None = None) -> str:
    """An error for each finding, the fastest growing first; a warning where there is too little evidence."""
    if report.verdict == "inconclusive":
        return command("warning", {"title": "leakprobe"}, verdict_line(report)) + "\n"
    return "".join(annotation(finding, root) + "\n" for finding in report.findings)


def annotation(
    finding: Finding, root: str | None = None, title: str = "", otherwise: Frame | None = None
) -> str:
    """One finding.  ``title``: else how much of what grows; ``otherwise``: where no line of it is known."""
    fields = place_fields(place_of(finding) or otherwise, root or workspace())
    fields["title"] = title or f"leakprobe: {amounts(finding)}"
    lines = [what_grows(finding)]
    if finding.path or finding.cycle:
        lines.append("kept by: " + path_text(finding.path or finding.cycle or []))
    grower = grown_at(finding)
    if grower is not None:
        lines.append("grown at: " + frame_text(grower))
    lines.append("cause: " + cause_text(finding))
    if finding.fix:
        lines.append("fix: " + finding.fix)
    return command("error", fields, "\n".join(map(clean, lines)))


def place_fields(place: Frame | None, root: str) -> dict[str, str]:
    """file and line; a file outside of ``root`` keeps its whole name, and GitHub shows it beside no line."""
    if place is None:
        return {}
    name = inside(place.filename, root) or place.filename
    return {"file": clean(name)} | ({"line": str(place.lineno)} if place.lineno else {})


def command(level: str, fields: Mapping[str, str], text: str) -> str:
    """A workflow command."""
    parts = ",".join(f"{name}={field_text(value)}" for name, value in fields.items())
    return f"::{level} {parts}::{line_text(text)}"


def line_text(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def field_text(text: str) -> str:
    return line_text(text).replace(":", "%3A").replace(",", "%2C")
