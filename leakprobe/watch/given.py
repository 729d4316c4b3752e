"""Which findings were given, and which of them no longer hold: the growth contract's withdrawn verdicts."""

import dataclasses
import os

from leakprobe.model.finding import Finding, Note, note_of_finding
from leakprobe.model.report import Report
from leakprobe.watch.count_findings import WORDS


@dataclasses.dataclass(frozen=True, slots=True)
class Standing:
    """One finding: the step of the report that first gave it, and of the first one since that did not."""

    finding: Finding
    given_at: int
    withdrawn_at: int | None = None


class Given:
    """The findings that the reports of one watch gave, by fingerprint."""

    def __init__(self) -> None:
        self._standings: dict[str, Standing] = {}

    def update(self, report: Report) -> list[Note]:
        """Take a report; notes on what earlier ones found and it does not.

        A leak that is told by another holder or line than before is not withdrawn, nor is one of descriptors
        that the finding of the objects that have them tells now.
        """
        now = {finding.fingerprint for finding in report.findings}
        for finding in report.findings:
            before = self._standings.get(finding.fingerprint)
            holds = before is not None and before.withdrawn_at is None
            given_at = before.given_at if before is not None and holds else report.as_of_step
            self._standings[finding.fingerprint] = Standing(finding, given_at)
        for name, standing in self._standings.items():
            holds = name in now or is_told_with_objects(standing.finding, report)
            if not holds and standing.withdrawn_at is None:
                self._standings[name] = dataclasses.replace(standing, withdrawn_at=report.as_of_step)
        lines = {finding.allocation for finding in report.findings}
        kinds = {(finding.medium, finding.type) for finding in report.findings}
        return [
            note_of(standing)
            for standing in self._standings.values()
            if standing.withdrawn_at is not None
            and standing.finding.allocation not in lines
            and (standing.finding.medium, standing.finding.type) not in kinds
            and not is_told_with_objects(standing.finding, report)
        ]


def is_told_with_objects(finding: Finding, report: Report) -> bool:
    """True for a count that still rises by the evidence of a finding of objects: attached() puts it there."""
    if finding.kind != "resource_growth" or finding.medium not in WORDS:
        return False
    words, _ = WORDS[finding.medium]
    return any(f"; {words} rose at " in now.evidence for now in report.findings)


def note_of(standing: Standing) -> Note:
    finding = standing.finding
    at = finding.allocation
    where = f" from {os.path.basename(at.filename)}:{at.lineno}" if at is not None else ""
    text = (
        f"{finding.type or finding.medium}{where}, reported as of step {standing.given_at:,}, "
        f"no longer grew as of step {standing.withdrawn_at:,}"
    )
    return dataclasses.replace(
        note_of_finding("withdrawn", text, finding),
        holder=finding.holder,
        cause=finding.cause,
        onset_step=finding.onset_step,
        withdrawn=standing.withdrawn_at,
    )
