"""What is remembered of one line from look to look: the last scans, and the size of an item."""

import dataclasses

from leakprobe.model.history import Survivors
from leakprobe.model.verdict import Judgement, Standing

#: A scan is kept once the next one comes at so many times its step, and so many before the newest.
STRETCH, KEPT = 1.2, 3


@dataclasses.dataclass
class Followed:
    """One site of objects, or of one medium's blocks."""

    scans: list[Survivors] = dataclasses.field(default_factory=list)
    item_bytes: float | None = None  # None: no walk has met one yet
    standing: Standing | None = None

    def add(self, scan: Survivors) -> None:
        scans = self.scans
        if scans and (scan.step == scans[-1].step or (len(scans) > 1 and scan.step < STRETCH * scans[-2].step)):
            scans[-1] = scan
        else:
            scans.append(scan)
        del scans[: -KEPT - 1]

    def stand(self, judgement: Judgement) -> Standing:
        """Take the newest verdict."""
        self.standing = self.standing.then(judgement) if self.standing else Standing(judgement).then(judgement)
        return self.standing


@dataclasses.dataclass
class Totals:
    """Live count and bytes at the marks where they were read, thinned where there are many."""

    points: list[tuple[int, int, int]] = dataclasses.field(default_factory=list)

    def add(self, step: int, count: int, size: int, most: int) -> None:
        if self.points and self.points[-1][0] == step:
            self.points[-1] = (step, count, size)
            return
        self.points.append((step, count, size))
        if len(self.points) > most + most:
            self.points = self.points[:1] + self.points[1:-1:2] + self.points[-1:]

    @property
    def counts(self) -> list[tuple[int, float]]:
        return [(step, count) for step, count, _ in self.points]
