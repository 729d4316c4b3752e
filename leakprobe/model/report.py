"""The report as plain data: what Report.to_dict() gives is a contract (schema version 2)."""

import dataclasses
import os
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

from leakprobe.checks import shown
from leakprobe.errors import LeakprobeError
from leakprobe.model import renderers
from leakprobe.model.facts import REPORT_VERSION
from leakprobe.model.finding import Finding, Note, plain
from leakprobe.model.rows import LineRow, MediumRow, MemoryRow, PeakRow, SiteRow, TimelineRow
from leakprobe.model.thresholds import LAG, LEAST_STEPS

#: Versions that are read: the first had no steps of onset.
READABLE_VERSIONS = (1, REPORT_VERSION)
#: Fewer measured steps than this make no verdict: a leak of each step takes so many to be told.
MIN_STEPS = LEAST_STEPS + LAG


def verdict_of(findings: Sequence[object], measured: int, *, is_too_early: bool = False) -> str:
    """The verdict of a report with these findings after so many measured steps.

    is_too_early: something may grow that was met in too few of them.
    """
    if findings:
        return "growing"
    return "steady" if measured >= MIN_STEPS and not is_too_early else "inconclusive"


@dataclasses.dataclass(repr=False)
class Report:
    """What a watch found, as of its last mark; ``findings`` are sorted by rate, largest first."""

    verdict: str
    steps: dict[str, int]
    findings: list[Finding]
    notes: list[Note]
    lines: list[LineRow]
    media: dict[str, MediumRow]
    timeline: list[TimelineRow]
    memory: list[MemoryRow]
    #: The largest and the fastest growing allocation sites, with their survivors by birth step.
    sites: list[SiteRow] = dataclasses.field(default_factory=list)
    #: Of each medium the highest point of the steps whose roles were read, by role and line.
    peaks: list[PeakRow] = dataclasses.field(default_factory=list)
    #: Facts of the process that was watched: versions, program, start, rank.
    run: dict[str, Any] = dataclasses.field(default_factory=dict)
    #: {filename: {lineno: text}} where a recording brought lines of source along, else None; no key of
    #: to_dict().
    source: dict[str, dict[int, str]] | None = None
    #: Of a merged report, how fast each medium grows on each rank: [{"medium", "rates": {rank: bytes a step},
    #: "outliers": [rank], "series": {rank: [(step, live bytes)]}}]; no key of to_dict(), the notes of kind
    #: "ranks" have it in words.
    ranks: list[dict[str, Any]] = dataclasses.field(default_factory=list)

    #: The step that every number here speaks of: that of the last look; by default the last one marked.
    as_of_step: int = -1

    def __post_init__(self) -> None:
        if self.as_of_step < 0:
            self.as_of_step = sum(self.steps.values())
        self.findings = sorted(self.findings, key=lambda f: (-f.bytes_per_step, f.fingerprint))

    def to_dict(self) -> dict[str, Any]:
        """The report by schema version 2, of plain dicts, lists, strings and numbers."""
        return {
            "schema_version": REPORT_VERSION,
            **self.parts(self._keys()),
        }

    def _keys(self) -> list[str]:
        """Those of to_dict(), but schema_version."""
        return [f.name for f in dataclasses.fields(self) if f.name not in ("source", "ranks")]

    def parts(self, names: Iterable[str]) -> dict[str, Any]:
        """Some of the keys of to_dict().  Errors: LeakprobeError "bad_argument" for another one."""
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise LeakprobeError(f"parts() takes a list of names, not {shown(names)}", "bad_argument")
        names, known = list(names), self._keys()
        unknown = [name for name in names if name not in known]
        if unknown:
            raise LeakprobeError(
                f"a report has no part {shown(unknown[0])}; it has {', '.join(known)}", "bad_argument"
            )
        return {name: plain(getattr(self, name)) for name in names}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Report":
        """The report that to_dict() gave.  Errors: LeakprobeError "wrong_schema" or "unreadable_file"."""
        report: Report = renderers.call("from_dict", data)
        return report

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write to_dict() as JSON, readable by its owner only.

        Errors: LeakprobeError "unwritable_file" or "foreign_file"; a file that is there must be such a
        report.
        """
        renderers.call("to_json", self.to_dict(), path)

    def to_html(self, path: str | os.PathLike[str], *, redact: bool = False, source: bool = True) -> None:
        """Write one self-contained page, readable by its owner only; needs jinja2 and plotly.

        redact: names of folders, and the line "program", are left out; names of files and dict keys stay.
        source=False: lines of source code are left out.
        Errors: LeakprobeError "missing_package", "unwritable_file" or "foreign_file"; a file that is there
        must be such a page.
        """
        renderers.call("to_html", self, path, redact=redact, source=source)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a recording of this report: ``leakprobe report PATH`` shows it, here or on another machine.

        Errors: LeakprobeError "unwritable_file", "recording_in_use" or "foreign_file".
        """
        renderers.call("save", self, path)

    def print(self, file: TextIO | None = None, *, verbose: bool = False) -> None:
        """Print the report to ``file``, or to standard output.

        verbose: paths in full, what was live at the highest points, and what saw each kind of memory.
        """
        renderers.call("print", self, file=file, verbose=verbose)

    def _repr_html_(self) -> str:
        """What a notebook shows: verdict, findings that open, media."""
        text: str = renderers.call("report_in_notebook", self)
        return text

    def __repr__(self) -> str:
        """One line: the report itself is printed by print()."""
        findings, steps = len(self.findings), self.steps["measured"]
        many = "" if findings == 1 else "s"
        return f"<leakprobe report: {self.verdict}, {findings} finding{many}, {steps} steps>"
