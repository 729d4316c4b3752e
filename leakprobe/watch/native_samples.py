"""Which lines the growth of native memory comes from: blocks of the allocating functions, sampled while it is
suspected, and judged as all else.

How much grows is not told here, but by malloc's own figures and the kernel's: samples only divide it.  What
crosses no import slot is missing, and a block whose end was not seen may be there for nothing.
"""

import collections
import dataclasses
import time

from leakprobe import _core
from leakprobe.evidence.readings import survivors_of_series
from leakprobe.judge.verdicts import judge
from leakprobe.model.bounds import (
    LEAST_MEAN,
    PATIENCE,
    SAMPLE_S,
    SAMPLES_A_STEP,
    SAMPLES_ALLOWANCE_S,
    SAMPLES_KEPT,
    SAMPLES_SHARE,
    SAMPLES_TO_DECIDE,
)
from leakprobe.model.frames import SELF_SITE
from leakprobe.model.verdict import Judgement
from leakprobe.watch.followed import Line


@dataclasses.dataclass(frozen=True, slots=True)
class Grower:
    """One line whose native blocks are kept, as of the last look."""

    site: int
    rate: float
    judgement: Judgement
    live_bytes: int
    samples: int
    library: str  # that called the allocating function
    function: str


class NativeSamples:
    """Samples of one watch.  Nothing is paid while they are off."""

    def __init__(self) -> None:
        self.is_on = False
        self.growers: list[Grower] = []
        self._began, self._mean = 0, 0
        self._lines: dict[int, Line] = {}
        self._taken, self._taken_at, self._allowance_s = 0, 0.0, SAMPLES_ALLOWANCE_S
        self._idle_looks = 0
        self.missed = 0  # deaths that were not seen, as far as that shows

    def want(self, step: int, rate: float | None) -> None:
        """At a look: sample while something grows, by so many bytes a step; stop some looks after it does."""
        self._idle_looks = 0 if rate is not None else self._idle_looks + 1
        if rate is not None and not self.is_on:
            self._mean = max(LEAST_MEAN, int(rate / SAMPLES_A_STEP))
            self.is_on = _core.native_follow(self._mean)
            self._began, self._lines, self.growers = step, {}, []
            self._taken, self._taken_at = 0, time.monotonic()
        elif self.is_on and self._idle_looks > PATIENCE:
            self.end()

    def end(self) -> None:
        """Put the slots back; what was found stays."""
        if self.is_on:
            self.is_on = False
            _core.native_unfollow()

    def mark(self) -> None:
        """Sample less where samples take too much time, or too many are kept."""
        if not self.is_on:
            return
        taken, live, self.missed, _dropped = _core.native_counts()
        if live >= SAMPLES_KEPT:
            self._sample_less()
        now, since = time.monotonic(), taken - self._taken
        if since < SAMPLES_TO_DECIDE:
            return
        self._allowance_s -= max(0.0, since * SAMPLE_S - SAMPLES_SHARE * (now - self._taken_at))
        if self._allowance_s < 0:
            self._allowance_s = 0
            self._sample_less()
        self._taken, self._taken_at = taken, now

    def _sample_less(self) -> None:
        """Half as often, also in what is remembered: as if it had been so from the start."""
        before = collections.Counter(site for site, *_ in _core.native_samples())
        self._mean += self._mean
        _core.native_follow(self._mean)
        after = collections.Counter(site for site, *_ in _core.native_samples())
        for site, line in self._lines.items():
            line.thin(after[site] / max(1, before[site]))

    def look(self, step: int, epochs: tuple[int, ...]) -> None:
        """Judge what the samples say of each line."""
        if not self.is_on:
            return
        series: dict[int, dict[int, list[int]]] = collections.defaultdict(dict)
        callers: dict[int, collections.Counter[int]] = collections.defaultdict(collections.Counter)
        for site, born, size, caller in _core.native_samples():
            if site != SELF_SITE:
                row = series[site].setdefault(born, [0, 0])
                row[0] += 1
                row[1] += size
                callers[site][caller] += size
        self.growers = []
        for site in series.keys() | self._lines.keys():
            rows = [(born, row[0], row[1]) for born, row in sorted(series.get(site, {}).items())]
            found = self._judged(step, epochs, site, rows, callers[site])
            if found is not None:
                self.growers.append(found)
        self.growers.sort(key=lambda grower: -grower.rate)

    def _judged(
        self,
        step: int,
        epochs: tuple[int, ...],
        site: int,
        rows: list[tuple[int, int, int]],
        callers: "collections.Counter[int]",
    ) -> Grower | None:
        count, size = sum(count for _, count, _ in rows), sum(size for *_, size in rows)
        line = self._lines.setdefault(site, Line())
        line.add(step, count, size, survivors_of_series(step, rows, warmup=self._began))
        judgement = judge(line.history(self._began, epochs))
        if not rows or not judgement.is_finding:
            return None
        library, function = _core.native_symbol(callers.most_common(1)[0][0])
        return Grower(site, judgement.rate, judgement, size, count, library, function)
