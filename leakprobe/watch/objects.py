"""Which allocation sites of Python objects grow, from their live counts and from scans of who survives."""

import collections
import dataclasses
import math
from collections.abc import Iterable

from leakprobe import _core
from leakprobe.evidence.cohorts import rise_of_last_half
from leakprobe.evidence.readings import history_of, spans_of, survivors_of_scan
from leakprobe.judge.looks import OPEN, Unsettled, unsettled
from leakprobe.judge.same_lines import group_by, judged_together, line_of_site, unsettled_together
from leakprobe.judge.suppressions import is_of_known_table
from leakprobe.judge.verdicts import ASKED, judge
from leakprobe.model.bounds import FOLLOWED_SITES, MOST_SITES, SLICE_NS, WHOLE_NS
from leakprobe.model.facts import SMALL_BYTES
from leakprobe.model.frames import FIRST_SITE
from leakprobe.model.history import History
from leakprobe.model.thresholds import HALF, LEAST_RATE, LEAST_RISES
from leakprobe.model.verdict import Judgement
from leakprobe.watch.followed import Followed
from leakprobe.watch.in_flight import InFlight


@dataclasses.dataclass(frozen=True, slots=True)
class Growing:
    """A site, its history and the verdict on its counts; bytes are a guess where ``is_size_known`` is
    False.  ``sites``: those that it was judged together with, as they are of one line.
    """

    site: int
    history: History
    judgement: Judgement
    is_size_known: bool
    sites: tuple[int, ...] = ()

    @property
    def rate(self) -> float:
        return self.judgement.rate

    @property
    def is_kept_so_far(self) -> bool:
        """True where what came in several steps is mostly there still: a line that makes little else, so that
        whole stacks of it cost little.
        """
        survivors = self.history.survivors
        kept = survivors.since(self.history.warmup).count if survivors is not None else 0
        return self.judgement.events >= LEAST_RISES and kept >= self.history.deaths


class Objects:
    """The sites of one watch.  A scan may go on over several marks."""

    def __init__(self, warmup: int, in_flight: int):
        self._warmup, self.flight = warmup, InFlight(in_flight)
        _core.series_begin_at(warmup)
        self.followed: dict[int, Followed] = {}
        self.unsettled: list[Unsettled] = []  # as of the last scan
        #: Bytes that came since the warm-up, at most, to sites that are not known to stay level.
        self.open_bytes = math.inf
        self.rising: frozenset[int] = frozenset()  # sites whose floor rises, as of the last look
        self._scanned: list[int] = []

    @staticmethod
    def is_exact() -> bool:
        """True where deaths are seen, so that live counts are exact."""
        return _core.series_state().sees_deaths

    def begin(self, least: float, may_be_large: bool) -> bool:
        """Ask who survives of the sites whose floor rises; False if there are none, or if all are known to
        make less than a quarter of ``least`` bytes a step over the last half of the run: growth that began at
        four fifths of it, which is due by now, has gone on for two fifths of that half.

        ``may_be_large``: malloc's bytes rise, so that few items of a size that is not known may be much.
        """
        rising = _core.series_rising(self._warmup, LEAST_RISES)
        if rising:
            _core.forget_looked_up_names()  # a cache that keeps new names reads as growth
            rising = _core.series_rising(self._warmup, LEAST_RISES)
        state = _core.series_state()
        rates = {s.site: self._most_bytes(state, s) for s in rising if s.site >= FIRST_SITE}
        self.rising = frozenset(rates)
        large = {s for s in rates if may_be_large and self._item_bytes(s) is None}
        asked = (s for s, rate in rates.items() if rate >= LEAST_RATE or s in large)
        sites = with_others_of_their_lines(sorted(asked, key=lambda s: -rates[s]), rates)
        self._scanned = [site for site in sites[:MOST_SITES] if not is_of_known_table(site)]
        if (
            all(self._item_bytes(site) is not None for site in sites)
            and sum(rates.values()) < HALF * HALF * least
        ):
            self._scanned = []
        self.open_bytes = math.inf if rates else 0.0
        if self._scanned:
            _core.scan_begin(self._scanned)
        else:  # what the last scan left open is level by now, or no more
            self.unsettled = []
        return bool(self._scanned)

    def _most_bytes(self, state: _core.SeriesState, series: _core.SiteSeries) -> float:
        """Bytes a step of late, at most: an item whose size no walk has met yet counts as the largest small
        one.
        """
        size = self._item_bytes(series.site)
        size = SMALL_BYTES if size is None else size
        return rise_of_last_half(spans_of(state, series), series.live) * size

    def _item_bytes(self, site: int) -> float | None:
        known = self.followed.get(site)
        return known.item_bytes if known is not None else None

    def go_on(self, *, whole: bool) -> bool:
        """Another slice; True once all was scanned."""
        return _core.scan_slice(WHOLE_NS if whole else SLICE_NS)

    @staticmethod
    def give_up() -> None:
        """At an end a scan that began some marks ago says too little: it knows no birth since."""
        _core.scan_end()

    def finish(self, step: int, epochs: tuple[int, ...], *, at_end: bool) -> list[Growing]:
        """The verdicts on what was scanned, of the sites that may grow."""
        rows: dict[int, list[_core.Survivors]] = {site: [] for site in self._scanned}
        scan = _core.scan_result()
        for row in scan.rows:
            rows[row.site].append(row)
        self._note_leaves()
        if at_end:
            self._note_types()
        _core.scan_end()
        state = _core.series_state()
        at = step, scan.begun_step
        found = [self._judged(at, epochs, state, site, rows[site]) for site in self._scanned]
        self._forget_others()
        lines = group_by((g for g in found if g is not None), lambda g: line_of_site(g.site))
        growing = [one for parts in lines for one in together(parts)]
        self.unsettled = unsettled_of(growing)
        self.open_bytes = sum(map(bytes_if_open, growing))
        return growing

    def _note_leaves(self) -> None:
        """Sizes that no walk is needed for; what a walk has met stays, and what only a walk can say is not
        asked for again.
        """
        scanned = {site: self.followed.setdefault(site, Followed()) for site in self._scanned}
        unmet = {site: known for site, known in scanned.items() if not known.is_settled}
        leaves = _core.scan_leaf_bytes(self._warmup) if unmet else {}
        for site, known in unmet.items():
            known.item_bytes = leaves.get(site)
            known.is_settled = site in leaves and known.item_bytes is None

    def _note_types(self) -> None:
        """Sizes of what no walk has met, by a sample of each site's survivors: bytes of the objects for each
        stamp, as the memory of an object may have one of its own.
        """
        unmet = {site for site in self._scanned if self.followed[site].item_bytes is None}
        stamps, size = collections.Counter[int](), collections.Counter[int]()
        for row in _core.scan_types() if unmet else ():
            stamps[row.site] += row.count
            size[row.site] += row.bytes if row.type is not None else 0
        for site in unmet & stamps.keys():
            self.followed[site].item_bytes = size[site] / stamps[site]

    def _judged(
        self,
        at: tuple[int, int],
        epochs: tuple[int, ...],
        state: _core.SeriesState,
        site: int,
        rows: list[_core.Survivors],
    ) -> Growing | None:
        """``at``: the present mark, and the one before which all births are in the rows."""
        step, begun = at
        series = _core.site_series(site)
        if series is None:
            return None
        known = self.followed[site]
        size = known.item_bytes
        known.add(survivors_of_scan(begun, rows, SMALL_BYTES if size is None else size, self._warmup))
        history = history_of(step, self._warmup, state, series, known.scans, epochs=epochs)
        age = self.flight.age_of(site)
        history = dataclasses.replace(history, age=age, flight=age)
        return Growing(site, history, judge(history), size is not None)

    def _forget_others(self) -> None:
        """Sites that have not risen for long are followed no more; a size is kept."""
        if len(self.followed) > FOLLOWED_SITES:
            kept = set(self._scanned)
            self.followed = {s: f for s, f in self.followed.items() if s in kept or f.item_bytes is not None}


def with_others_of_their_lines(sites: list[int], rising: Iterable[int]) -> list[int]:
    """Beside these the sites of the same lines that have rested of late: it was another caller's turn.

    Nothing is remembered of the lines: a table of all sites would be malloc's, and grow.
    """
    asked = set(sites)
    others = [site for site in rising if site not in asked][:MOST_SITES]
    lines = set(map(line_of_site, sites)) if others else set()
    return [*sites, *(site for site in others if line_of_site(site) in lines)]


def together(parts: list[Growing]) -> list[Growing]:
    """The sites of one line, with their shares of its verdict where that is that it leaks."""
    shares = judged_together([g.history for g in parts]) if len(parts) > 1 else None
    if shares is None:
        return parts
    sites = tuple(g.site for g in parts)
    return [dataclasses.replace(g, judgement=share, sites=sites) for g, share in zip(parts, shares)]


def bytes_if_open(growing: Growing) -> float:
    """What the site may have grown by since the warm-up; infinite where nobody knows how large an item is."""
    if growing.judgement.verdict not in ASKED | OPEN:
        return 0.0
    return growing.history.kept_bytes if growing.is_size_known else math.inf


def unsettled_of(growing: Iterable[Growing]) -> list[Unsettled]:
    """Sites whose items' size is known, and of which what is kept may be growth and may be none: alone, or
    all together.
    """
    known = [g for g in growing if g.is_size_known]
    alone = [unsettled("python", g.site, g.history, g.judgement) for g in known]
    together = unsettled_together("python", [(g.site, g.history, g.judgement) for g in known])
    return [one for one in (*alone, together) if one is not None]
