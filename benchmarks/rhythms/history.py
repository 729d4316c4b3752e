"""What an engine can know of one allocation site at a step, computed from a loop's items exactly.

At every mark the counters of the hooks give the live count, births and deaths of the site; they are folded
into at most SPANS spans, whose width doubles as the run gets longer.  On request a *scan* tells the survivors
by birth step, as of now; what one scan met and a later one did not has died between them.  A decider sees the
scans that it took, and no others.
"""

import dataclasses
import functools

import numpy as np

from benchmarks.rhythms.loop import WARMUP, Site, events_by_step

#: Spans that a site's counters are folded into.
SPANS = 64
#: Birth steps are told apart up to so many; of longer runs, by powers of two of steps (stamps have 12 bits
#: for them).
BIRTH_STEPS = 4096


@dataclasses.dataclass(frozen=True)
class Spans:
    """Counters of the steps since the warm-up, ``width`` steps to a span; the last span may have had fewer.

    ``low`` and ``high`` are those of the live count at the span's marks (the end of each of its steps),
    ``last`` that at its end.
    """

    first: int  # the step that the first span begins with
    width: int
    low: np.ndarray
    high: np.ndarray
    last: np.ndarray
    births: np.ndarray
    deaths: np.ndarray

    def __len__(self) -> int:
        return len(self.low)

    @property
    def starts(self) -> np.ndarray:
        """The first step of each span."""
        return self.first + self.width * np.arange(len(self.low))


@dataclasses.dataclass(frozen=True)
class Scan:
    """Survivors as of a mark, by rising birth step; where ``width`` > 1, the first of so many steps known
    together.
    """

    mark: int
    width: int
    birth: np.ndarray
    count: np.ndarray
    bytes: np.ndarray


@dataclasses.dataclass(frozen=True)
class Events:
    """What tools know that see each allocation and each free, step by step up to a mark; the hooks' counters
    do not have it.

    ``last_freed``: the step in which the last item of each step was freed, infinite if it was not yet (or
    there is none).
    """

    live_bytes: np.ndarray
    born_bytes: np.ndarray
    last_freed: np.ndarray


class Counters:
    """A site's counters at every mark, and its items for scans."""

    def __init__(self, site: Site, steps: int):
        self._site, self.steps = site, steps
        self.births, self.deaths = events_by_step(site, steps)
        self.live = np.cumsum(self.births - self.deaths)  # at mark i + 1

    def spans(self, mark: int) -> Spans:
        """The folded counters as of a mark: the same, span by span, as folding them mark by mark."""
        width = width_of(mark - WARMUP)
        starts = np.arange(0, max(0, mark - WARMUP), width)
        live, births, deaths = (c[WARMUP:mark] for c in (self.live, self.births, self.deaths))
        ends = np.minimum(starts + width, len(live)) - 1

        def folded(fold, values):
            return fold(values, starts) if len(starts) else values[:0]

        return Spans(
            WARMUP,
            width,
            low=folded(np.minimum.reduceat, live),
            high=folded(np.maximum.reduceat, live),
            last=live[ends] if len(ends) else live[:0],
            births=folded(np.add.reduceat, births),
            deaths=folded(np.add.reduceat, deaths),
        )

    @functools.cached_property
    def _all_events(self) -> Events:
        site, steps = self._site, self.steps
        born = np.bincount(site.birth, weights=site.bytes, minlength=steps)
        freed = site.death < steps
        lost = np.bincount(site.death[freed].astype(np.int64), weights=site.bytes[freed], minlength=steps)
        last_freed = np.full(steps, np.inf)
        last_freed[site.birth] = site.death  # by rising birth: the last of a step stays
        return Events(np.cumsum(born - lost), born, last_freed)

    def events(self, mark: int) -> Events:
        whole = self._all_events
        last_freed = whole.last_freed[:mark]
        known = np.where(last_freed < mark, last_freed, np.inf)
        return Events(whole.live_bytes[:mark], whole.born_bytes[:mark], known)

    def scan(self, mark: int) -> Scan:
        width = 1
        while mark > width * BIRTH_STEPS:
            width *= 2
        alive = self._site.alive(mark)
        bins, sizes = self._site.birth[alive] // width, self._site.bytes[alive]
        count = np.bincount(bins)
        kept = np.flatnonzero(count)
        weights = np.bincount(bins, weights=sizes)
        return Scan(mark, width, kept * width, count[kept], weights[kept])

    def died_between(self, earlier: Scan, later: Scan) -> tuple[np.ndarray, np.ndarray]:
        """(birth steps, counts) of what the earlier scan met and the later one did not."""
        width = max(earlier.width, later.width)
        before, after = (binned(scan, width) for scan in (earlier, later))
        gone = before - np.pad(after, (0, max(0, len(before) - len(after))))[: len(before)]
        last_seen = (
            earlier.mark - 1
        ) // width  # what was born since is in the later scan only, perhaps in the same bin
        if earlier.mark % width and last_seen < len(gone):
            died = (self._site.birth < earlier.mark) & (self._site.birth // width == last_seen)
            died &= (self._site.death >= earlier.mark) & (self._site.death < later.mark)
            gone[last_seen] = died.sum()
        steps = np.flatnonzero(gone)
        return steps * width, gone[steps]


def binned(scan: Scan, width: int) -> np.ndarray:
    return np.bincount(scan.birth // width, weights=scan.count).astype(np.int64)


def width_of(steps: int) -> int:
    """The width of spans after so many steps: the smallest power of two that needs no more than SPANS of
    them.
    """
    width = 1
    while steps > width * SPANS:
        width *= 2
    return width


class History:
    """What is known of one site as of ``mark``; the same object at each mark of a loop, moved on by the
    driver.
    """

    def __init__(self, counters: Counters):
        self._counters = counters
        self._scans: list[Scan] = []
        self.mark = 0
        self.is_end = False  # the loop ends here, and says so

    def move_to(self, mark: int) -> None:
        self.mark, self.is_end = mark, mark >= self._counters.steps
        self.__dict__.pop("spans", None)

    @functools.cached_property
    def spans(self) -> Spans:
        return self._counters.spans(self.mark)

    @property
    def live(self) -> int:
        return int(self._counters.live[self.mark - 1])

    @property
    def events(self) -> Events:
        """For the deciders that stand for other tools: what an engine of counters and scans does not know."""
        return self._counters.events(self.mark)

    @property
    def live_bytes(self) -> float:
        """As malloc's own figure and the ledger's totals tell it at a mark, without a scan."""
        return float(self._counters.events(self.mark).live_bytes[-1])

    @property
    def births(self) -> int:
        """Births since the start, the warm-up's too."""
        return int(self._counters.births[: self.mark].sum())

    @property
    def deaths(self) -> int:
        return int(self._counters.deaths[: self.mark].sum())

    @property
    def scans(self) -> tuple[Scan, ...]:
        """The scans taken so far, the oldest first."""
        return tuple(self._scans)

    def scan(self) -> Scan:
        """The survivors as of now; a second scan at the same mark is the first."""
        if not self._scans or self._scans[-1].mark != self.mark:
            self._scans.append(self._counters.scan(self.mark))
        return self._scans[-1]

    def died_between(self, earlier: Scan, later: Scan) -> tuple[np.ndarray, np.ndarray]:
        """(birth steps, counts) of what died between two scans; what was born and died between them is in the
        counters only.
        """
        return self._counters.died_between(earlier, later)
