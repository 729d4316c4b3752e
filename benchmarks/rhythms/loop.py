"""A loop with truth: what each allocation site bears and loses, step by step, and whether that grows.

Steps count from 0; *mark* t lies after t of them.  An item of birth b and death d was made in step b and
freed in step d (at once where b == d; never where d is infinite), so it is alive at mark t if b < t <= d.
"""

import dataclasses
import functools
import zlib
from collections.abc import Callable

import numpy as np

#: Steps at the start that no decider judges, as in leakprobe.watch().
WARMUP = 5
#: What growth must exceed to count, bytes a step: the default limit of leakprobe.watch().
LIMIT = 256.0
#: Growth is owed a verdict once it has had so many births, in steps of their own ...
DUE_EVENTS = 8
#: ... and so many steps after its onset, or this share of the steps before it if that is more.
DUE_STEPS, DUE_SHARE = 60, 0.25
#: Bytes a step are drawn between these, evenly by their logarithm: above the limit, and below what one
#: machine holds.
LEAST_RATE, MOST_RATE = 1_024.0, 262_144.0
NEVER = np.inf


@dataclasses.dataclass(frozen=True)
class Part:
    """Items of one allocation site that follow one rule, as a kind describes them.

    ``sizes`` are relative to each other; ``growing`` says for the part, or item by item, whether they make up
    the growth.
    """

    birth: np.ndarray
    death: np.ndarray | None = None
    sizes: np.ndarray | None = None
    growing: bool | np.ndarray = True
    site: str = "a"
    holder: str = "kept"


@dataclasses.dataclass(frozen=True)
class Draft:
    """What a kind makes: the items, and the truth about them.

    ``onset``: the step growth begins in; ``end``: the first step without it, None where it goes on.
    ``events``: the steps at which a rhythm has had a turn, where that is not each step with a birth.
    ``bytes_per_step``: the rate, where it is not drawn.
    """

    parts: tuple[Part, ...]
    onset: int = 0
    end: int | None = None
    events: np.ndarray | None = None
    findings: int = 1
    bytes_per_step: float | None = None


@dataclasses.dataclass(frozen=True)
class Kind:
    """A rhythm: its name, whether it grows, how, and what makes a draft of so many steps.

    ``named``: one of the sources that the benchmark began from names it; the others are the benchmark's own.
    """

    name: str
    grows: bool
    pattern: str
    named: bool
    make: Callable[[int, np.random.Generator], Draft]


@dataclasses.dataclass(frozen=True)
class Site:
    """One allocation site: births and deaths (steps) and bytes of its items, by rising birth."""

    name: str
    holder: str
    birth: np.ndarray  # int64
    death: np.ndarray  # float64, inf if kept
    bytes: np.ndarray  # float64
    growing: np.ndarray  # bool: the items that make up the growth

    @property
    def grows(self) -> bool:
        return bool(self.growing.any())

    def alive(self, mark: int) -> np.ndarray:
        return (self.birth < mark) & (self.death >= mark)

    def bytes_at(self, mark: int, items=True) -> float:
        return float(self.bytes[self.alive(mark) & items].sum())


@dataclasses.dataclass(frozen=True)
class Loop:
    """One loop of a kind: the same for the same kind, steps and seed."""

    kind: str
    seed: int
    steps: int
    grows: bool
    pattern: str
    onset: int  # the step growth begins in; the end of the warm-up at the earliest
    end: int | None
    findings: int  # how many a right report has
    events: np.ndarray
    sites: tuple[Site, ...]

    def rate(self, mark: int | None = None) -> float:
        """Bytes a step since the onset, as of a mark (the last one)."""
        mark = self.steps if mark is None else mark
        if not self.grows or mark <= self.onset:
            return 0.0
        risen = sum(s.bytes_at(mark, s.growing) - s.bytes_at(self.onset, s.growing) for s in self.sites)
        return risen / (mark - self.onset)

    def is_due(self, mark: int | None = None) -> bool:
        """True where a verdict is owed: growth that had time and births enough, turnover that has shown
        itself.
        """
        mark = self.steps if mark is None else mark
        if not self.grows:
            return all(s.bytes_at(mark) <= LIMIT * mark or has_turned_over(s, mark) for s in self.sites)
        events = self.events[(self.events >= self.onset) & (self.events < mark)]
        since = mark - self.onset
        return len(events) >= DUE_EVENTS and since >= max(DUE_STEPS, DUE_SHARE * self.onset)


def has_turned_over(site: Site, mark: int) -> bool:
    """True if births and deaths up to the mark say that it is no growth: as much was freed as was ever alive
    at once, or births fell off, the last half of the steps having at most half of the first half's kept
    births.
    """
    born = site.birth < mark
    dead = born & (site.death < mark)
    live = live_counts(site, mark)
    if dead.sum() >= live.max(initial=0):
        return True
    kept = site.birth[born & ~dead]
    return bool((kept >= mark / 2).sum() <= 0.5 * (kept < mark / 2).sum())


def live_counts(site: Site, mark: int) -> np.ndarray:
    """The live count at each mark from 0 to ``mark``."""
    births, deaths = events_by_step(site, mark)
    return np.concatenate([[0], np.cumsum(births - deaths)])


def events_by_step(site: Site, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Births and deaths in each of the first ``steps`` steps."""
    births = np.bincount(site.birth[site.birth < steps], minlength=steps)
    deaths = np.bincount(site.death[site.death < steps].astype(np.int64), minlength=steps)
    return births, deaths


def make_loop(kind: Kind, steps: int, seed: int) -> Loop:
    """The loop of this kind, length and seed."""
    rng = np.random.default_rng([zlib.crc32(kind.name.encode()), steps, seed])
    rate = float(np.exp(rng.uniform(np.log(LEAST_RATE), np.log(MOST_RATE))))
    draft = kind.make(steps, rng)
    names = dict.fromkeys(part.site for part in draft.parts)
    sites = tuple(site_of(name, [p for p in draft.parts if p.site == name], steps) for name in names)
    onset = max(draft.onset, WARMUP)
    loop = Loop(
        kind=kind.name,
        seed=seed,
        steps=steps,
        grows=kind.grows,
        pattern=kind.pattern,
        onset=onset,
        end=draft.end,
        findings=draft.findings if kind.grows else 0,
        events=draft.events if draft.events is not None else births_of_growth(sites),
        sites=sites,
    )
    return scaled(loop, draft.bytes_per_step or rate)


def site_of(name: str, parts: list[Part], steps: int) -> Site:
    """One site of several parts, without the items that are born behind the loop's end."""
    birth = np.concatenate([np.asarray(p.birth, np.int64) for p in parts])
    death = np.concatenate([whole(p, p.death, NEVER) for p in parts])
    sizes = np.concatenate([whole(p, p.sizes, 1.0) for p in parts])
    growing = np.concatenate([whole(p, p.growing, True) for p in parts]).astype(bool)
    order = np.argsort(birth, kind="stable")
    order = order[birth[order] < steps]
    death = np.where(death >= steps, NEVER, death)
    return Site(name, parts[0].holder, birth[order], death[order], sizes[order], growing[order])


def whole(part: Part, values, default: float) -> np.ndarray:
    """One number an item, from an array, a number for all, or the default."""
    return np.broadcast_to(np.asarray(default if values is None else values, float), np.shape(part.birth))


def births_of_growth(sites) -> np.ndarray:
    """The steps in which something that grows is born."""
    return functools.reduce(np.union1d, [s.birth[s.growing] for s in sites], np.zeros(0, np.int64))


def scaled(loop: Loop, rate: float) -> Loop:
    """The loop with whole bytes: growth at ``rate`` bytes a step since its onset; turnover that bears so many
    a step.
    """
    made = sum(float(s.bytes.sum()) for s in loop.sites) / loop.steps
    unit = rate / (loop.rate() or made or 1.0)
    sites = tuple(dataclasses.replace(s, bytes=np.maximum(1.0, np.round(s.bytes * unit))) for s in loop.sites)
    return dataclasses.replace(loop, sites=sites)
