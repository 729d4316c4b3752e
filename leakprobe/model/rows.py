"""The rows of a report, as Report.to_dict() gives them; frames are objects until then."""

from collections.abc import Mapping
from typing import Any, TypedDict

from leakprobe.model.frames import Frame

#: What a mark knows of the process, in bytes: "step", "rss" (or None), "python_heap", "native_accounted" and
#: "probe_overhead", and keys that only that run has, which no TypedDict can name: those of its devices
#: ("cuda:0 reserved") and roles ("cpu as batch").
MemoryRow = dict[str, Any]
#: Keys of such a row that have a column where rows are written: a change is a new schema of recordings.
MEMORY_COLUMNS = (
    "rss",
    "python_heap",
    "native_accounted",
    "probe_overhead",
    "malloc_in_use",
    "malloc_free",
    "private",
    "shared",
)
#: What is alive of the births of a range of steps: [first step, last step, count, bytes].
Span = list[int]


class LineRow(TypedDict):
    """Growth of one source line of the user's own files."""

    filename: str
    lineno: int
    bytes_per_step: float
    live_bytes: int


class MediumRow(TypedDict):
    """What serves a medium, or why nothing does."""

    mechanism: str | None
    active: bool
    why_not: str | None
    live_bytes: int
    as_of_step: int
    unmatched_events: int


class MediumBytes(TypedDict):
    """A medium at one mark."""

    live_bytes: int
    peak_bytes: int


class TimelineRow(TypedDict):
    """One mark; ``time``: seconds since the watch began."""

    step: int
    epoch: int
    time: float
    media: dict[str, MediumBytes]


class SiteCounts(TypedDict):
    """What is alive of one allocation site, by birth; ``bytes_per_step``: None where nothing grows."""

    medium: str
    type: str | None
    live_bytes: int
    live_count: int
    bytes_per_step: float | None
    survivors: list[Span]


class SiteOfLook(SiteCounts):
    """The same, by the site's number."""

    site: int


class SiteRow(SiteCounts):
    """The same, with the site's line."""

    allocation: Frame | None
    allocation_stack: list[Frame]


def live_bytes(media: Mapping[str, MediumBytes], medium: str) -> int:
    """Bytes of a medium at a mark; 0 where it had none yet."""
    reading = media.get(medium)
    return reading["live_bytes"] if reading is not None else 0


class PeakPart(TypedDict):
    """What was alive of one role and one line; ``allocation``: None where no line is known."""

    role: str
    allocation: Frame | None
    count: int
    bytes: int


class PeakRow(TypedDict):
    """The highest point of a medium in the steps that were read; ``parts``: the largest, most bytes first."""

    medium: str
    step: int
    bytes: int
    parts: list[PeakPart]
