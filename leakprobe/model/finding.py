"""One cause of growth, and what is worth knowing besides: the parts of a report that Report.to_dict()
gives.
"""

import dataclasses
import os
from collections.abc import Sequence
from typing import Any, Literal, TypedDict

from leakprobe.model.frames import Frame, FrameRow
from leakprobe.model.units import format_rate

#: Whether an element of a path is meant to live as long as it does.
Lives = Literal["yes", "no", "unknown"]


class Element(TypedDict):
    """One element of a path or cycle: how it reads, how the one before refers to it, its type."""

    text: str
    edge: str
    type: str | None


class PathRow(Element, total=False):
    """The same; of a finding's path, with whether it is meant to live, and why."""

    lives: Lives
    why: str


def first_wrong(path: Sequence[PathRow]) -> int | None:
    """The place of the first element of a path that is not meant to live; None where that is not known."""
    return next((at for at, row in enumerate(path) if row.get("lives") == "no"), None)


class HolderRow(TypedDict):
    """The object whose contents grow, the line that last grew it, its items."""

    text: str
    type: str | None
    grown_at: FrameRow | None
    length: int | None


@dataclasses.dataclass(frozen=True, repr=False)
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
    allocation_stack: list[Frame]
    holder: HolderRow | None
    path: list[PathRow] | None
    cycle: list[PathRow] | None
    cause: str
    fix: str | None
    #: The step since which it grows: the rates are those since then.  None where that is not known.
    onset_step: int | None = None
    #: The step as of which it no longer held, of a finding that an earlier report gave.
    withdrawn: int | None = None

    def to_dict(self) -> dict[str, Any]:
        return fields_to_dict(self)

    def __repr__(self) -> str:
        """One line: the cause, how fast it grows, the line."""
        grows = format_rate(self.bytes_per_step) if self.bytes_per_step else f"+{self.count_per_step:g}/step"
        at = (
            f" at {os.path.basename(self.allocation.filename)}:{self.allocation.lineno}"
            if self.allocation
            else ""
        )
        return f"<leakprobe finding {self.cause}: {grows} of {self.type or 'buffers'} ({self.medium}){at}>"

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Finding":
        """The finding that to_dict() gave in a process of our own; leakprobe.record.parse reads what others
        give.
        """
        allocation = data["allocation"]
        return cls(
            **data
            | {
                "allocation": Frame(**allocation) if allocation else None,
                "allocation_stack": [Frame(**frame) for frame in data["allocation_stack"]],
            }
        )


@dataclasses.dataclass(frozen=True, repr=False)
class Note:
    """Something worth knowing that is not a finding; the keys of a finding are there where they apply."""

    kind: str
    text: str
    medium: str | None
    type: str | None = None
    bytes_per_step: float | None = None
    live_bytes: int | None = None
    allocation: Frame | None = None
    allocation_stack: list[Frame] | None = None
    holder: HolderRow | None = None
    path: list[PathRow] | None = None
    cycle: list[PathRow] | None = None
    cause: str | None = None
    fix: str | None = None
    onset_step: int | None = None
    withdrawn: int | None = None

    def __repr__(self) -> str:
        return f"<leakprobe note {self.kind}: {self.text:.80}>"

    def to_dict(self) -> dict[str, Any]:
        return {
            key: value for key, value in fields_to_dict(self).items() if value is not None or key == "medium"
        }


def note_of_finding(kind: str, text: str, finding: Finding) -> Note:
    """A note with what every finding says of its growth; a caller adds what else its kind shows."""
    return Note(
        kind=kind,
        text=text,
        medium=finding.medium,
        type=finding.type,
        bytes_per_step=finding.bytes_per_step,
        live_bytes=finding.live_bytes,
        allocation=finding.allocation,
        path=finding.path,
    )


def fields_to_dict(item: Finding | Note) -> dict[str, Any]:
    return {field.name: plain(getattr(item, field.name)) for field in dataclasses.fields(item)}


def plain(value: Any) -> Any:
    """A copy of a field, its frames as dicts."""
    if isinstance(value, (Frame, Finding, Note)):
        return value.to_dict()
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {key: plain(v) for key, v in value.items()}
    return value
