"""Growth that is known and harmless: tables of the interpreter and of libraries that stop or prune
themselves.

An entry names the module and the name that the retention path begins with, and what the table does.
Findings whose holder is such a table become notes of kind "bounded".

A user's own rules come from a file (docs/suppressions.md) or as text; what they match becomes a note of kind
"suppressed".
"""

import dataclasses
import fnmatch
import os
import re
from collections.abc import Callable, Sequence
from typing import Protocol

from leakprobe import _core
from leakprobe.checks import checked_path
from leakprobe.errors import LeakprobeError
from leakprobe.model import inert
from leakprobe.model.causes import CAUSES, printed
from leakprobe.model.entry import Path
from leakprobe.model.finding import Finding, Note, note_of_finding
from leakprobe.model.frames import FIRST_SITE, Frame
from leakprobe.model.report import Report, verdict_of

#: (module, name of the global) => why it is no leak.
BUILT_IN = {
    (
        "torch.multiprocessing.reductions",
        "shared_cache",
    ): "torch's table of shared storages, pruned each time it doubles from 128",
    ("re", "_cache"): "compiled patterns, emptied when full",
}


#: Modules whose own lines make nothing but the entries of such a table, and objects that stand for blocks of
#: the ledger.
MODULES_OF_TABLES = ("torch.multiprocessing.reductions",)


def is_of_known_table(site: int) -> bool:
    """True if the innermost line of a site makes entries of a known table: no reason to look closer.

    What they stand for, such as a shared storage that is kept, is counted by its own bytes.
    """
    frames = _core.site_frames(site) if site >= FIRST_SITE else []
    files = {inert.file_of_module(name) for name in MODULES_OF_TABLES}
    return bool(frames) and frames[0][0] in files


def known_table(path: Path) -> str | None:
    """Why growth under this path is no leak, or None.  ``path``: root first."""
    if len(path) <= 1 or path[0].edge != "module":
        return None
    return BUILT_IN.get((path[0].text, path[1].text.split(" ")[0]))


# ---- the user's own rules ----


def as_written(name: str) -> list[str]:
    """ "graph_kept" in JSON, "graph-kept" in text."""
    return [name, printed(name)]


#: What a rule may ask for => the texts of a finding that its pattern is tried on.
KEYS: dict[str, Callable[[Finding], list[str]]] = {
    "fingerprint": lambda f: [f.fingerprint],
    "kind": lambda f: as_written(f.kind),
    "cause": lambda f: as_written(f.cause),
    "medium": lambda f: [f.medium],
    "type": lambda f: [f.type or ""],
    "allocated": lambda f: [where(frame) for frame in f.allocation_stack],
    "path": lambda f: [element["text"] for element in f.path or f.cycle or ()],
}
FORM = 'a rule is "KEY = PATTERN", several joined with " and ", then "# reason"; the keys are ' + ", ".join(
    KEYS
)


@dataclasses.dataclass(frozen=True)
class Rule:
    """All of ``terms`` (key, pattern) must match.  ``reason`` may be empty."""

    terms: tuple[tuple[str, str], ...]
    reason: str

    def matches(self, finding: Finding) -> bool:
        return all(
            any(fnmatch.fnmatchcase(text, pattern) for text in KEYS[key](finding))
            for key, pattern in self.terms
        )

    def __str__(self) -> str:
        return " and ".join(f"{key} = {pattern}" for key, pattern in self.terms)


def where(frame: Frame) -> str:
    """ "/home/me/train.py:58 training_step"."""
    return f"{frame.filename}:{frame.lineno} {frame.function}"


def is_of_a_cause(pattern: str) -> bool:
    return any(fnmatch.fnmatchcase(text, pattern) for cause in CAUSES for text in as_written(cause))


def parse_rule(line: str, source: str = "suppression") -> Rule | None:
    """The Rule of one line, None for an empty one or a comment.  Errors: LeakprobeError "bad_suppression"."""
    text, _, reason = re.sub(r"^#", " #", line).partition(" #")
    if not text.strip():
        return None
    terms = []
    for part in re.split(r"\s+and\s+", text.strip()):
        key, equals, pattern = (piece.strip() for piece in part.partition("="))
        if not equals or key not in KEYS or not pattern:
            raise LeakprobeError(f"{source}: {part.strip()!r:.80} is not a rule: {FORM}", "bad_suppression")
        if key == "cause" and not is_of_a_cause(pattern):
            causes = ", ".join(map(printed, CAUSES))
            raise LeakprobeError(
                f"{source}: {part.strip()!r:.80} matches no cause; the causes are {causes}", "bad_suppression"
            )
        terms.append((key, pattern))
    return Rule(tuple(terms), reason.strip())


def load_rules(path: str | os.PathLike[str]) -> list[Rule]:
    """The rules of a file, one a line.  Errors: LeakprobeError "unreadable_file" or "bad_suppression"."""
    path = checked_path("path", path)
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, ValueError) as error:
        raise LeakprobeError(f"the suppressions {path} can't be read: {error}", "unreadable_file") from error
    rules = [parse_rule(line, f"{path}, line {number}") for number, line in enumerate(lines, 1)]
    return [rule for rule in rules if rule is not None]


class Allowance(Protocol):
    """What says which findings do not count: a Rule, or another with a reason, which may be empty."""

    @property
    def reason(self) -> str: ...

    def matches(self, finding: Finding) -> bool: ...


def is_open(note: Note) -> bool:
    """True for what is alive, may grow and has no verdict: too few of it came, or no walk has met it."""
    return note.kind in ("warm_up", "gap") and bool(note.live_bytes)


def suppress(report: Report, rules: Sequence[Allowance]) -> Report:
    """The report with every finding that a rule matches made a note of kind "suppressed", and the verdict
    without it.
    """
    kept, notes = [], []
    for finding in report.findings:
        rule = next((rule for rule in rules if rule.matches(finding)), None)
        if rule is None:
            kept.append(finding)
            continue
        reason = f" ({rule.reason})" if rule.reason else ""
        text = f"{finding.type or finding.medium}, {finding.evidence}; by the rule {rule}{reason}"
        notes.append(
            dataclasses.replace(
                note_of_finding("suppressed", text, finding),
                allocation_stack=finding.allocation_stack,
                cycle=finding.cycle,
                cause=finding.cause,
            )
        )
    if not notes:
        return report
    return dataclasses.replace(
        report,
        verdict=verdict_of(kept, report.steps["measured"], is_too_early=any(map(is_open, report.notes))),
        findings=kept,
        notes=[*report.notes, *notes],
    )
