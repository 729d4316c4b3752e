"""What is remembered of one line from look to look: the last scans, its totals, the size of an item.

Plain classes: what a dataclass's generated __init__ makes is of no file of leakprobe's, and would be watched.
"""

import dataclasses

from leakprobe.evidence.readings import history_of_total
from leakprobe.evidence.series import every_second
from leakprobe.model.bounds import KEPT_SCANS, MOST_POINTS, SCAN_STRETCH, THINNING
from leakprobe.model.history import History, Survivors


class Followed:
    """One site of objects, or of one medium's blocks."""

    def __init__(self) -> None:
        self.scans: list[Survivors] = []
        self.item_bytes: float | None = None  # None: no walk has met one yet, and the scans could not say
        self.is_settled = False  # a walk has met one, or only a walk can say

    def add(self, scan: Survivors) -> None:
        scans = self.scans
        last = scans.pop() if scans else None
        is_soon = bool(scans) and scan.step < SCAN_STRETCH * scans[-1].step
        if last is not None and last.step != scan.step and not is_soon:
            scans.append(last)
        scans.append(scan)
        del scans[: -KEPT_SCANS - 1]


class Totals:
    """Live count and bytes at the marks where they were read, thinned where there are many."""

    def __init__(self) -> None:
        self.points: list[tuple[int, int, int]] = []

    def add(self, step: int, count: int, size: int) -> None:
        if self.points and self.points[-1][0] == step:
            self.points[-1] = (step, count, size)
            return
        self.points.append((step, count, size))
        if len(self.points) > THINNING * MOST_POINTS:
            self.points = every_second(self.points)

    def history(self, warmup: int) -> History:
        """Of a line whose totals are all that is known of its past."""
        counts = [(step, count) for step, count, _ in self.points]
        plain = history_of_total(counts, warmup, MOST_POINTS)
        return dataclasses.replace(plain, sizes=tuple(self.points))


class Line:
    """One line whose live counts are known at looks only."""

    def __init__(self) -> None:
        self.totals, self.followed = Totals(), Followed()

    def add(self, step: int, count: int, size: int, survivors: Survivors) -> None:
        self.totals.add(step, count, size)
        self.followed.add(survivors)

    def thin(self, share: float) -> None:
        """So much of what was counted is known still: the rest is no longer followed, and has not died."""
        self.followed.scans.clear()
        self.totals.points = [
            (step, round(count * share), round(size * share)) for step, count, size in self.totals.points
        ]

    def history(self, warmup: int, epochs: tuple[int, ...]) -> History:
        scans = self.followed.scans
        plain = self.totals.history(warmup)
        return dataclasses.replace(plain, survivors=scans[-1], earlier=tuple(scans[:-1]), epochs=epochs)
