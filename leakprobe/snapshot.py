"""A frozen copy of what is alive, by medium, type and allocation site."""

import dataclasses
import json
import os

from leakprobe import _core
from leakprobe.analysis.frames import FIRST_SITE, SELF_SITE, SPECIAL_SITES, innermost_user_frame
from leakprobe.analysis.suspects import quiet_collector
from leakprobe.errors import LeakprobeError

SCHEMA = "leakprobe-snapshot"
SCHEMA_VERSION = 1


@dataclasses.dataclass(frozen=True)
class SnapshotRow:
    """Live blocks of one medium, type and site.

    type: None for buffers.  stack: frames (filename, lineno, function), innermost first; empty where the
    site is unknown.  first_step, last_step: birth steps of the oldest and the newest block.  size: bytes.
    """

    medium: str
    type: str | None
    stack: tuple
    first_step: int
    last_step: int
    count: int
    size: int

    @property
    def key(self) -> tuple:
        return (self.medium, self.type or "", self.stack)

    def where(self) -> str:
        """"train.py:58" of the user's own code, else of the innermost frame, else why there is none."""
        frame = innermost_user_frame(self.stack) or (self.stack[0] if self.stack else None)
        return f"{os.path.basename(frame[0])}:{frame[1]}" if frame else SPECIAL_SITES[0]


class Snapshot:
    """What was alive when it was taken; iterating gives SnapshotRow, sorted by size, largest first."""

    def __init__(self, rows, step: int, core=None, type_names=None):
        self._rows, self.step = rows, step
        self.core, self.type_names = core, type_names or {}

    @property
    def rows(self) -> list:
        if self._rows is None:
            rows = (row_of(self, *row) for row in self.core.rows())
            self._rows = merged_rows(rows)
        return sorted(self._rows, key=lambda r: -r.size)

    def __iter__(self):
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def diff(self, older: "Snapshot"):
        """What changed from ``older`` to this snapshot."""
        from leakprobe.diff import Diff

        return Diff(older, self)

    def to_dict(self) -> dict:
        rows = [{**dataclasses.asdict(r), "stack": [list(f) for f in r.stack]} for r in self.rows]
        return {"schema": SCHEMA, "schema_version": SCHEMA_VERSION, "step": self.step, "rows": rows}

    def save(self, path) -> None:
        """Write the snapshot as JSON, readable by its owner only."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(self.to_dict(), file)

    @classmethod
    def load(cls, path) -> "Snapshot":
        """Read what save() wrote.  Errors: LeakprobeError "unreadable_file" or "wrong_schema"."""
        try:
            with open(path, encoding="utf-8") as file:
                data = json.load(file)
        except (OSError, ValueError) as error:
            raise LeakprobeError(f"{path} can't be read as a snapshot: {error}", "unreadable_file") from error
        if not isinstance(data, dict) or data.get("schema") != SCHEMA or data.get("schema_version") != SCHEMA_VERSION:
            raise LeakprobeError(f"{path} is no snapshot of schema version {SCHEMA_VERSION}: save it again with this version", "wrong_schema")
        rows = [SnapshotRow(**{**row, "stack": tuple(tuple(f) for f in row["stack"])}) for row in data["rows"]]
        return cls(rows, data["step"])

    def print(self, file=None, limit: int = 20) -> None:
        """A table of the ``limit`` largest rows."""
        from leakprobe.report.text import print_snapshot

        print_snapshot(self, file=file, limit=limit)


def snapshot(graph: bool = False) -> Snapshot:
    """A Snapshot of now: native blocks of the ledger and, by a census, Python objects.

    Without a watch, sites are unknown and native blocks are not seen.  ``graph=True`` is an error in this
    version: the object graph is not kept in snapshots yet.
    """
    if graph:
        raise LeakprobeError("snapshot(graph=True) is not available in this version; use snapshot()", "not_available")
    with quiet_collector():
        census = _core.census(True, 0, 2**32 - 1, 2**32 - 1, True)
        groups = [group for group in census.top(2**31 - 1) if group[2] != SELF_SITE]
        rows = [(type_id, site, first, last, count, size) for _, type_id, site, count, size, *_, first, last in groups]
        names = {type_id: name for name, type_id, *_ in groups}
        return Snapshot(None, _core.step(), _core.snapshot_new(rows), names)


def row_of(snapshot, medium, type_id, site, first_step, last_step, count, size) -> SnapshotRow:
    """A row of the core as text."""
    return SnapshotRow(medium, snapshot.type_names.get(type_id), stack_of(site), first_step, last_step, count, size)


def stack_of(site: int) -> tuple:
    return tuple(_core.site_frames(site)) if site >= FIRST_SITE else ()


def merged_rows(rows):
    """Rows with the same key joined: several sites may read the same once they are text."""
    merged = {}
    for row in rows:
        other = merged.get(row.key)
        if other is None:
            merged[row.key] = row
            continue
        merged[row.key] = dataclasses.replace(
            other,
            count=other.count + row.count,
            size=other.size + row.size,
            first_step=min(other.first_step, row.first_step),
            last_step=max(other.last_step, row.last_step),
        )
    return list(merged.values())
