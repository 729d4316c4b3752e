"""Rows of a snapshot: what is alive, by kind of memory, type and site."""

import dataclasses

from leakprobe import _core
from leakprobe.model.frames import FIRST_SITE, FrameTuple, place_of

#: Why a row has no line: it is older than the watch, or there was none.
UNSEEN = "unknown (no watch saw it made)"


@dataclasses.dataclass(frozen=True)
class SnapshotRow:
    """Live blocks of one kind of memory, type and site.

    type: None for buffers.
    stack: frames (filename, lineno, function), innermost first; empty where the site is unknown.
    first_step, last_step: birth steps of the oldest and the newest block.
    size: in bytes.
    """

    medium: str
    type: str | None
    stack: tuple[FrameTuple, ...]
    first_step: int
    last_step: int
    count: int
    size: int

    @property
    def key(self) -> tuple[str, str, tuple[FrameTuple, ...]]:
        return (self.medium, self.type or "", self.stack)

    def where(self) -> str:
        """ "train.py:58" of the user's own code, else of the innermost frame, else why there is none."""
        return place_of(self.stack, UNSEEN)


def stack_of(site: int) -> tuple[FrameTuple, ...]:
    return tuple(_core.site_frames(site)) if site >= FIRST_SITE else ()
