"""The highest point of each epoch, chosen from the rows of Report.timeline."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any


@dataclasses.dataclass(frozen=True)
class EpochPeak:
    """One medium in one epoch.  Bytes are bytes.

    peak_bytes: the most that was live, between marks too, and peak_step the mark that ended that step.
    end_bytes: what was live at the last mark of the epoch.
    """

    epoch: int
    medium: str
    first_step: int
    last_step: int
    peak_step: int
    peak_bytes: int
    end_bytes: int


def epoch_peaks(timeline: Iterable[Mapping[str, Any]]) -> list[EpochPeak]:
    """A row per epoch and medium, in order; media that had nothing in an epoch are left out."""
    found: dict[tuple[int, str], EpochPeak] = {}
    for row in timeline:
        for medium, bytes_of in row["media"].items():
            key = row["epoch"], medium
            live, top = bytes_of["live_bytes"], max(bytes_of["peak_bytes"], bytes_of["live_bytes"])
            before = found.get(key)
            if before is None:
                found[key] = EpochPeak(*key, row["step"], row["step"], row["step"], top, live)
                continue
            higher: dict[str, Any] = (
                {"peak_step": row["step"], "peak_bytes": top} if top > before.peak_bytes else {}
            )
            found[key] = dataclasses.replace(before, last_step=row["step"], end_bytes=live, **higher)
    return [peak for _key, peak in sorted(found.items()) if peak.peak_bytes]
