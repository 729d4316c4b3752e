"""What a DataLoader worker tells its parent, and the plain data that it travels as."""

import dataclasses
from typing import Any

from leakprobe.model.finding import Finding


@dataclasses.dataclass(frozen=True)
class WorkerReport:
    """The newest of one worker: its own findings, the fastest first, or what went wrong."""

    findings: tuple[Finding, ...] = ()
    error: str | None = None  # why it is watched no longer
    not_recorded: str | None = None  # why it has no recording of its own

    def without_last(self) -> "WorkerReport":
        """With one finding less."""
        return dataclasses.replace(self, findings=self.findings[:-1])

    def to_plain(self) -> dict[str, Any]:
        """Of dicts, lists, strings and numbers, for JSON."""
        return {
            "findings": [finding.to_dict() for finding in self.findings],
            "error": self.error,
            "not_recorded": self.not_recorded,
        }

    @classmethod
    def from_plain(cls, data: dict[str, Any]) -> "WorkerReport":
        """What to_plain() gave."""
        return cls(**{**data, "findings": tuple(map(Finding.from_dict, data["findings"]))})
