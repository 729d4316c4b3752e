"""What one look and one walk of the heap found, as the judge is given it."""

import dataclasses
from collections.abc import Sequence

from leakprobe.judge.entries import Seen
from leakprobe.model.entry import Series
from leakprobe.model.history import History, Survivors
from leakprobe.model.rows import SiteOfLook
from leakprobe.model.thresholds import HALF, LEAST_RISES
from leakprobe.model.verdict import Judgement, Verdict

#: ("object", type_id, site) or ("block", medium, site).
Key = tuple[str, int | str, int]
#: Steps that are known together only, as if of the last.
Ranges = Sequence[tuple[int, int]]


@dataclasses.dataclass(frozen=True, slots=True)
class Suspect:
    """What one line made of one type, or of one medium, and the verdict on it.  ``live_*``: all that is
    alive.
    """

    key: Key
    medium: str
    type: str | None
    history: History
    judgement: Judgement
    live_count: int
    live_bytes: int
    series: Series
    grown_sites: tuple[int, ...] = ()  # the lines that may enlarge it in place, where these are known
    older_count: int = 0  # of those alive: born before the watch, and enlarged by this line
    folded: Ranges = ()  # (first, last) of birth steps that are known together, at the last

    @property
    def site(self) -> int:
        _kind, _of, site = self.key
        return site

    @property
    def rate(self) -> float:
        """Bytes a step; 0 where nothing grows."""
        return self.judgement.rate

    def has_survivors(self, within: range) -> bool:
        """True if something born in one of these steps is alive."""
        return any(step in within and count > 0 for step, count, _ in self.series)

    @property
    def count_rate(self) -> float:
        return self.judgement.count_per_step or 0.0


@dataclasses.dataclass(frozen=True, slots=True)
class Record:
    """The largest block that one line made or grew, in bytes, how it came to be, and the verdict on it; or
    that several ``lines`` did in turn, with ``site`` as the last of them.
    """

    site: int
    bytes: int
    history: History
    judgement: Judgement
    lines: tuple[int, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Look:
    """What grows as of the mark ``step``; ``sites``: rows of sites.largest(); ``records``: of single blocks
    that get ever larger; ``crowds``: of what is replaced all the time the line that climbs fastest;
    ``rested``: what had grown by the look before and has not since; ``settled``: lines whose record had grown
    and stands for longer than its growth allows; ``rising``: lines of objects whose live counts rise, by too
    few bytes to be suspected or not.
    """

    step: int
    suspects: tuple[Suspect, ...]
    merged: Ranges
    sites: Sequence[SiteOfLook] = ()
    records: tuple[Record, ...] = ()
    crowds: tuple[Suspect, ...] = ()
    rested: tuple[Key, ...] = ()
    settled: frozenset[int] = frozenset()
    rising: frozenset[int] = frozenset()


@dataclasses.dataclass(frozen=True, slots=True)
class HolderReading:
    """What a walk met in one holder: its length, how many of its places, of a list, have got their items in
    the watch, the most that one line has made below it, and how many autograd nodes are.
    """

    address: int
    step: int
    length: int
    filled: int | None = None
    count: int = 0
    nodes: int = 0

    @property
    def each(self) -> float:
        """So many of that line's for each place."""
        return max(1.0, self.count / self.filled) if self.filled else 1.0


#: Of each holder by its address, at the last walks.
Readings = dict[int, list[HolderReading]]


@dataclasses.dataclass(frozen=True, slots=True)
class Walk:
    """Who keeps what grows as of the mark ``step``, holder by holder; not judged yet.

    ``enlarged``: holders of single blocks that give way to ever larger ones, with the verdicts on these;
    ``crowds``: those of what is replaced in ever more places.
    ``frozen``: objects that gc.freeze() took out of the collector's sight in the watch.
    """

    step: int
    seen: tuple[Seen, ...]
    enlarged: tuple[Seen, ...]
    readings: Readings
    frozen: int
    collector_is_on: bool
    crowds: tuple[Seen, ...] = ()

    def garbage_bytes(self) -> int:
        """Bytes in unreachable cycles that it met."""
        return sum(s.entry.bytes for s in self.seen if s.entry.kind == "garbage")

    def bytes(self) -> int:
        return sum(s.entry.bytes for s in self.seen)

    def has_lost(self, before: "Walk") -> bool:
        """True if most of what it met is garbage, or memory that is cached by now, and is of what the walk
        before met as held.
        """
        held = {m.key for s in before.seen if not s.entry.was_let_go for m in s.entry.members}
        gone = (m for s in self.seen if s.entry.was_let_go for m in s.entry.members)
        lost = sum(m.bytes for m in gone if m.key in held)
        then = sum(s.entry.bytes for s in before.seen if s.entry.was_let_go)
        return then <= HALF * before.bytes() and lost > HALF * self.bytes()


@dataclasses.dataclass(frozen=True, slots=True)
class Unsettled:
    """The bytes since the warm-up that one line keeps as of the mark ``step``, which may be growth and may be
    none: of too few births for a verdict, or fewer and fewer.  ``lines``: of so many together.
    ``readings``: blocks that gave way to larger ones were met so often; 0 of all else.  ``survivors``: what
    is kept by birth step, of one line.
    """

    medium: str
    site: int
    step: int
    bytes: int
    judgement: Judgement
    lines: int = 1
    readings: int = 0
    survivors: Survivors | None = None

    @property
    def line(self) -> tuple[str, int]:
        return self.medium, self.site

    def kept_since(self, step: int) -> float:
        """Bytes of births from a step on."""
        return self.survivors.since(step).bytes if self.survivors is not None else 0.0


#: What has one of these may become growth.
OPEN = frozenset({Verdict.TOO_EARLY, Verdict.FILLING})


def unsettled(medium: str, site: int, history: History, judgement: Judgement) -> Unsettled | None:
    """The survivors since the warm-up, where they came in several steps and the verdict is open, without what
    may be in flight.
    """
    if judgement.verdict not in OPEN or judgement.events < LEAST_RISES or history.survivors is None:
        return None
    kept = history.kept_bytes
    if history.flight:
        kept -= history.survivors.since(max(history.warmup, history.step - history.flight)).bytes
    return Unsettled(medium, site, history.step, round(kept), judgement, survivors=history.survivors)
