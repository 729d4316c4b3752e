"""The largest block that each line made or grew, or the lines that extended one another's blocks: what
gives way to ever larger ones is seen without a walk.

Nothing but this shows a string that gets longer, or a container that is filled with what lived before: as
many objects are alive as ever.
"""

import dataclasses
import math

from leakprobe import _core
from leakprobe.judge.enlarging import unsettled_enlargement
from leakprobe.judge.looks import Record, Unsettled
from leakprobe.judge.verdicts import replaced
from leakprobe.model.facts import SMALL_BYTES
from leakprobe.model.history import Facts, History
from leakprobe.model.thresholds import HALF, LEAST_RISES
from leakprobe.watch.followed import Totals


class Records:
    """Those of one watch, as of its looks."""

    def __init__(self, warmup: int):
        self._warmup = warmup
        self._totals: dict[tuple[bool, int], Totals] = {}
        self.growing: list[Record] = []  # those that get ever larger
        self.unsettled: list[Unsettled] = []  # those that may
        self.judged: set[tuple[str, int]] = set()
        self._rates: dict[int, float] = {}  # bytes a step of those that grew at some look
        self.settled: frozenset[int] = frozenset()  # lines of those that grew and do no more
        self._is_following = False  # every large object that is made

    @property
    def open_bytes(self) -> float:
        """0 if none of them may grow; else nobody knows by how much."""
        return math.inf if self.growing or self.unsettled else 0.0

    def want(self, wanted: bool) -> None:
        """Follow all large objects, while malloc's bytes say that one may get larger."""
        if wanted is not self._is_following:
            self._is_following = wanted
            _core.follow_large(wanted)

    def end(self) -> None:
        self.want(False)

    def look(self, step: int, limit: float) -> None:
        """Read them; ``limit``: slower growth, in bytes a step, does not count."""
        self.growing, self.unsettled, self.judged, self.settled = [], [], set(), frozenset()
        lines: dict[int, list[int]] = {}  # of each family, which come before it
        for row in _core.backing_records(self._warmup, 1):
            is_family = row.lines > 1
            if not is_family:
                lines.setdefault(row.family, []).append(row.site)
            if row.record_steps < LEAST_RISES:
                continue
            totals = self._totals.setdefault((is_family, row.family if is_family else row.site), Totals())
            totals.add(step, 1, row.bytes)
            extends = row.extended_steps >= HALF * row.record_steps
            facts = Facts(carries_over=True) if extends else Facts()
            history = dataclasses.replace(totals.history(self._warmup), facts=facts)
            judgement = replaced(history)
            if judgement is not None and judgement.rate > limit:
                made_by = tuple(lines[row.family]) if is_family else (row.site,)
                self.growing.append(Record(row.site, row.bytes, history, judgement, made_by))
                self._rates[row.site] = judgement.rate
            elif self._stands(row.site, row.last_step, history):
                self.settled |= {row.site}
            early = unsettled_enlargement("python", row.site, history) if judgement is None else None
            self.unsettled += [early] if early is not None else []
            self.judged.add(("python", row.site))

    def _stands(self, site: int, last_step: int, history: History) -> bool:
        """True if a line whose record grew would have set a larger one long since: a list grows by an eighth
        at a time and a dict to twice its size, so that its next record waits for as many bytes as the last
        one added.
        """
        *_, before, last = (0.0, math.inf, *sorted({size for _, _, size in history.sizes}))
        added = last - before
        return HALF * self._rates.get(site, 0.0) * (history.step - last_step) > added

    def of(self, count: int, size: int) -> list[Record]:
        """Those that ``count`` objects of so many bytes may be, with what they own: each, or one of them if
        the rest is small.
        """
        return [
            record
            for record in self.growing
            if any(0 <= each - record.bytes <= SMALL_BYTES for each in (size, size / max(1, count)))
        ]
