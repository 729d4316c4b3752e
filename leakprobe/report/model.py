"""The report as plain data: what Report.to_dict() gives is a contract (schema version 1)."""

import dataclasses

SCHEMA_VERSION = 1


@dataclasses.dataclass(frozen=True)
class Frame:
    """One frame of a stack: ``lineno`` is 1-based, 0 if unknown."""

    filename: str
    lineno: int
    function: str

    def to_dict(self) -> dict:
        return {"filename": self.filename, "lineno": self.lineno, "function": self.function}


@dataclasses.dataclass
class Finding:
    """One reported cause of growth.  Bytes are bytes; rates are per step."""

    fingerprint: str
    kind: str
    pattern: str
    medium: str
    type: str | None
    bytes_per_step: float
    count_per_step: float
    live_bytes: int
    live_count: int
    confidence: float
    evidence: str
    allocation: Frame | None
    allocation_stack: list
    holder: dict | None
    path: list | None
    cycle: list | None
    cause: str
    fix: str | None

    def to_dict(self) -> dict:
        return fields_to_dict(self)


@dataclasses.dataclass
class Note:
    """Something worth knowing that is no finding; the keys of a finding are there where they apply."""

    kind: str
    text: str
    medium: str | None
    type: str | None = None
    bytes_per_step: float | None = None
    live_bytes: int | None = None
    allocation: Frame | None = None
    allocation_stack: list | None = None
    holder: dict | None = None
    path: list | None = None
    cycle: list | None = None
    cause: str | None = None
    fix: str | None = None

    def to_dict(self) -> dict:
        return {
            key: value for key, value in fields_to_dict(self).items() if value is not None or key == "medium"
        }


def fields_to_dict(item) -> dict:
    return {field.name: plain(getattr(item, field.name)) for field in dataclasses.fields(item)}


def plain(value):
    """A copy of a field, its frames as dicts."""
    if isinstance(value, (Frame, Finding, Note)):
        return value.to_dict()
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {key: plain(v) for key, v in value.items()}
    return value


@dataclasses.dataclass
class Report:
    """What a watch found, as of its last mark; ``findings`` are sorted by rate, largest first."""

    verdict: str
    steps: dict
    findings: list
    notes: list
    lines: list
    media: dict
    timeline: list
    memory: list
    #: The largest and the fastest growing allocation sites, with their survivors by birth step.
    sites: list = dataclasses.field(default_factory=list)
    #: Facts of the process that was watched: versions, program, start, rank.
    run: dict = dataclasses.field(default_factory=dict)
    #: {filename: {lineno: text}} where a recording brought lines of source along, else None; no key of to_dict().
    source: dict | None = None
    #: Of a merged report, how fast each medium grows on each rank: [{"medium", "rates": {rank: bytes a step}, "outliers": [rank]}];
    #: no key of to_dict(), the notes of kind "ranks" have it in words.
    ranks: list = dataclasses.field(default_factory=list)

    def __post_init__(self):
        self.findings = sorted(self.findings, key=lambda f: (-f.bytes_per_step, f.fingerprint))

    def to_dict(self) -> dict:
        """The report by schema version 1, of plain dicts, lists, strings and numbers."""
        return {
            "schema_version": SCHEMA_VERSION,
            **self.parts(f.name for f in dataclasses.fields(self) if f.name not in ("source", "ranks")),
        }

    def parts(self, names) -> dict:
        """Some of the keys of to_dict()."""
        return {name: plain(getattr(self, name)) for name in names}

    @classmethod
    def from_dict(cls, data: dict) -> "Report":
        """The report that to_dict() gave.  Errors: LeakprobeError "wrong_schema" or "unreadable_file"."""
        from leakprobe.report.parse import parse_report

        return parse_report(data)

    def to_json(self, path) -> None:
        """Write to_dict() as JSON, readable by its owner only.

        Errors: LeakprobeError "unwritable_file" or "foreign_file"; a file that is there must be such a report.
        """
        from leakprobe.report.json import write_json

        write_json(self.to_dict(), path)

    def to_html(self, path, *, redact: bool = False, source: bool = True) -> None:
        """Write one self-contained page, readable by its owner only; needs the packages of ``torch-leakprobe[report]``.

        redact: names of folders and of the program are left out.  source=False: lines of source code are left out.
        Errors: LeakprobeError "missing_package", "unwritable_file" or "foreign_file"; a file that is there must be such a page.
        """
        from leakprobe.report.html import write_html

        write_html(self, path, redact=redact, source=source)

    def save(self, path) -> None:
        """Write a recording of this report: ``leakprobe report PATH`` shows it, here or on another machine.

        Errors: LeakprobeError "unwritable_file", "recording_in_use" or "foreign_file".
        """
        from leakprobe.recording import save

        save(self, path)

    def print(self, file=None) -> None:
        """Print the report to ``file``, or to standard output."""
        from leakprobe.report.text import print_report

        print_report(self, file=file)

    def _repr_html_(self) -> str:
        """What a notebook shows: the text, escaped."""
        import html
        import io

        text = io.StringIO()
        self.print(file=text)
        return f"<pre>{html.escape(text.getvalue())}</pre>"
