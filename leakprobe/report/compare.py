"""Two reports side by side: findings by fingerprint, allocation sites by what they read as."""

import dataclasses
from typing import Any, TextIO

from rich.text import Text

from leakprobe.model.finding import Finding
from leakprobe.model.frames import SPECIAL_SITES, Frame, innermost_user_frame
from leakprobe.model.report import Report
from leakprobe.model.rows import SiteRow
from leakprobe.model.units import format_rate, format_size
from leakprobe.report.clean import clean
from leakprobe.report.diagnostic import say
from leakprobe.report.text import (
    VERDICT_STYLE,
    amount_of,
    console_for,
    print_rows,
    verdict_line,
    what_grows,
)

#: A rate counts as changed by more than this share of the larger one.
CHANGED = 0.1
STATES = ("new", "changed", "same", "gone")


@dataclasses.dataclass(frozen=True)
class Change:
    """One finding in the older report, the newer, or both."""

    state: str  # one of STATES
    older: Finding | None
    newer: Finding | None

    def to_dict(self) -> dict[str, Any]:
        older, newer = (item and item.to_dict() for item in (self.older, self.newer))
        return {"state": self.state, "older": older, "newer": newer}


@dataclasses.dataclass(frozen=True)
class Comparison:
    """findings: Change, new ones first.  sites: (medium, type, where, count_diff, size_diff), the largest
    change first.
    """

    older: Report
    newer: Report
    findings: list[Change]
    sites: list[tuple[str, str, str, int, int]]

    def to_dict(self) -> dict[str, Any]:
        """Plain data: both verdicts, the findings by what became of them, the sites."""
        names = ("medium", "type", "where", "count_diff", "size_diff")
        return {
            "verdicts": [self.older.verdict, self.newer.verdict],
            "findings": [change.to_dict() for change in self.findings],
            "sites": [dict(zip(names, row, strict=True)) for row in self.sites],
        }


def compare(older: Report, newer: Report) -> Comparison:
    """What changed from one Report to another."""
    before = {f.fingerprint: f for f in older.findings}
    after = {f.fingerprint: f for f in newer.findings}
    changes = [
        change(before.get(key), after.get(key)) for key in [*after, *(k for k in before if k not in after)]
    ]
    return Comparison(
        older, newer, sorted(changes, key=lambda c: STATES.index(c.state)), compare_sites(older, newer)
    )


def change(older: Finding | None, newer: Finding | None) -> Change:
    if older is None or newer is None:
        return Change("new" if older is None else "gone", older, newer)
    a, b = older.bytes_per_step or older.count_per_step, newer.bytes_per_step or newer.count_per_step
    return Change("changed" if abs(a - b) > CHANGED * max(a, b) else "same", older, newer)


@dataclasses.dataclass(frozen=True, slots=True)
class Listed:
    """What a report lists of one line; is_own: it is one of the program's own."""

    count: int = 0
    bytes: int = 0
    is_own: bool = False


def compare_sites(older: Report, newer: Report) -> list[tuple[str, str, str, int, int]]:
    """(medium, type, where, count, bytes) of what changed, newer less older, the most bytes first."""
    before, after = of_sites(older), of_sites(newer)
    rows = [
        (*key, now.count - was.count, now.bytes - was.bytes)
        for key in {**before, **after}
        if says_more(key[0], was := before.get(key, Listed()), now := after.get(key, Listed()))
    ]
    return sorted(rows, key=lambda row: (-abs(row[4]), row))


def says_more(medium: str, was: Listed, now: Listed) -> bool:
    """True if a line has changed.  A report lists its largest lines only, and reads Python's objects by a
    walk or by a scan: of a library's line, what is in one of the lists or differs by a little says nothing.
    """
    moved = abs(now.bytes - was.bytes)
    if medium != "python" or was.is_own or now.is_own:
        return moved > 0 or now.count != was.count
    return bool(was.count and now.count) and moved > CHANGED * max(was.bytes, now.bytes)


def of_sites(report: Report) -> dict[tuple[str, str, str], Listed]:
    """By (medium, type, where)."""
    found: dict[tuple[str, str, str], Listed] = {}
    for row in report.sites:
        key = (row["medium"], row["type"] or "", where(row))
        one = found.get(key, Listed())
        is_own = one.is_own or row["allocation"] is not None
        found[key] = Listed(one.count + row["live_count"], one.bytes + row["live_bytes"], is_own)
    return found


def where(site: SiteRow) -> str:
    """ "train.py:58 step" of the user's own code, else of the innermost frame, else why there is none."""
    stack = site["allocation_stack"]
    user = innermost_user_frame([(f.filename, f.lineno, f.function) for f in stack])
    frame = site["allocation"] or (Frame(*user) if user else stack[0] if stack else None)
    if frame is None:
        return SPECIAL_SITES[0]
    return f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno} {frame.function}"


def print_comparison(found: Comparison, file: TextIO | None, limit: int) -> None:
    """Both verdicts, the findings by what became of them, and the sites that changed most."""
    with console_for(file) as console:
        for name, report in (("A", found.older), ("B", found.newer)):
            console.print(Text.assemble(f"{name}  ", (verdict_line(report), VERDICT_STYLE[report.verdict])))
        for item in found.findings:
            finding = item.newer or item.older
            if finding is None:
                continue
            was = f"  (was {rate(item.older)})" if item.state == "changed" and item.older else ""
            style = {"new": "bold red", "gone": "bold green"}.get(item.state, "yellow")
            text = f"{amount_of(finding)}   {clean(what_grows(finding))}{was}"
            say(console, Text(text), indent=0, lead=Text(f"{item.state:8}", style=style))
        if not found.findings:
            console.print("no findings in either")
    if found.sites:
        rows = [
            (format_size(size), f"{count:+}", medium, kind, place)
            for medium, kind, place, count, size in found.sites[:limit]
        ]
        print_rows(
            "live bytes by site, B less A", ["size", "count", "memory", "type", "allocated at"], rows, file
        )


def rate(finding: Finding) -> str:
    return (
        format_rate(finding.bytes_per_step) if finding.bytes_per_step else f"+{finding.count_per_step:g}/step"
    )
