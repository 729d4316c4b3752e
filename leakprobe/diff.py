"""The difference of two snapshots."""

import dataclasses

from leakprobe.errors import LeakprobeError
from leakprobe.snapshot import Snapshot


@dataclasses.dataclass(frozen=True)
class DiffRow:
    """One medium, type and site whose live blocks changed.  count_diff and size_diff (bytes): newer minus older."""

    medium: str
    type: str | None
    stack: tuple
    count_diff: int
    size_diff: int
    count: int
    size: int
    where: str


class Diff:
    """What changed between two snapshots; iterating gives DiffRow, the largest change first."""

    def __init__(self, older: Snapshot, newer: Snapshot):
        before = {row.key: row for row in older}
        rows = []
        for row in newer:
            old = before.pop(row.key, None)
            rows.append(diff_row(row, row.count, row.size, old))
        rows += [diff_row(old, 0, 0, old) for old in before.values()]
        rows = [r for r in rows if r.count_diff or r.size_diff]
        self.rows = sorted(rows, key=lambda r: (-abs(r.size_diff), r.medium, r.where))
        self.steps = (older.step, newer.step)

    def __iter__(self):
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def to_dict(self) -> dict:
        rows = [{**dataclasses.asdict(r), "stack": [list(f) for f in r.stack]} for r in self.rows]
        return {"schema_version": 1, "steps": list(self.steps), "rows": rows}

    def print(self, file=None, limit: int = 20) -> None:
        """A table of the ``limit`` largest changes."""
        from leakprobe.report.text import print_diff

        print_diff(self, file=file, limit=limit)


def diff_row(row, count: int, size: int, old) -> DiffRow:
    old_count, old_size = (old.count, old.size) if old is not None else (0, 0)
    return DiffRow(row.medium, row.type, row.stack, count - old_count, size - old_size, count, size, row.where())


def diff(older: Snapshot, newer: Snapshot) -> Diff:
    """The Diff of two snapshots, older first.  Errors: LeakprobeError "bad_argument" for anything else."""
    for name, value in (("older", older), ("newer", newer)):
        if not isinstance(value, Snapshot):
            raise LeakprobeError(f"diff(): {name} must be a Snapshot from leakprobe.snapshot(), not {type(value).__name__}", "bad_argument")
    return Diff(older, newer)
