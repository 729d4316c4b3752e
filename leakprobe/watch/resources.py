"""What nothing else accounts for, followed mark by mark: descriptors, threads, child processes, segments of
shared memory, and what malloc has handed out to neither Python nor numpy nor torch.

A *series* is a list of (step, value).  C measures; here is only when to measure, and which series rise.
"""

import array
import itertools
import math
import sys
import threading
from collections.abc import Callable, Iterable
from typing import TypeAlias

from leakprobe import _core
from leakprobe.errors import LeakprobeError
from leakprobe.evidence.series import Points, Series, comes_with_new_sizes, minus, since_release
from leakprobe.evidence.trends import slope
from leakprobe.judge.rises import (
    EarlyRise,
    Rise,
    early_rise,
    rise_since,
    rises_on_average,
    shows_between,
    steady_rise,
)
from leakprobe.model import inert
from leakprobe.model.bounds import (
    FULL_CENSUSES,
    FULL_STRETCH,
    LEAST_ENLARGED,
    MALLOC_ALLOWANCE_S,
    MALLOC_STRETCH,
    MOST_POINTS,
    READING_SHARE,
    SMALL_PRICE_S,
    TABLES_ALLOWANCE_S,
    TABLES_SHARE,
    TABLES_STRETCH,
)
from leakprobe.model.budget import Budget
from leakprobe.model.facts import CACHED_SHAPES, MAPPED_BLOCK_BYTES, PAGE_TABLE_RATE, SMALL_BYTES
from leakprobe.model.frames import FIRST_SITE
from leakprobe.model.media import MALLOC
from leakprobe.model.rows import MemoryRow
from leakprobe.model.thresholds import (
    FLIGHTS,
    HALF,
    KNOWN_SHARE,
    LARGE_ROUNDING,
    LEAST_COUNT,
    LEAST_NATIVE,
    LEAST_STEPS,
    LEVEL,
    LITTLE,
    NEARLY_ALL,
    PER_BLOCK,
    PER_DESCRIPTOR,
    PER_MAPPED_BLOCK,
    PER_THREAD,
)
from leakprobe.watch.children import Children, alive_processes
from leakprobe.watch.in_flight import InFlight
from leakprobe.watch.segments import Segments

#: A column of more numbers than these is in malloc's memory, not in pymalloc's.
EMPTY_COLUMN_BYTES = sys.getsizeof(array.array("q"))

#: Keeps numbers.
Column: TypeAlias = "array.array[int] | array.array[float]"
#: {(type, site): live ones} of Python objects that stand for something.
Makers = dict[tuple[str | None, int], int]


class Resources:
    """The series of one watch."""

    def __init__(self, warmup: int, media: frozenset[str], limit: float):
        self._warmup, self._media, self._limit = warmup, media, limit
        #: Of readings of malloc, and of /proc's tables.
        self._mallocs = Budget(MALLOC_ALLOWANCE_S, READING_SHARE)
        self._tables = Budget(TABLES_ALLOWANCE_S, TABLES_SHARE)
        #: Gives the arrays in which others keep what each mark adds.
        self.other_columns: Callable[[], Iterable[Column]] | None = None
        self._next_count, self._next_tables, self._next_native = 0, 0, 0
        self._counts_at_tables = (-1, -1)  # descriptors and threads
        self._full_steps: list[int] = []
        self._open_bytes = math.inf  # of Python's blocks that may grow
        self.descriptors, self.threads = Series(), Series()
        self.processes, self.segments = Series(), Segments(warmup)
        self.children = Children(warmup)
        self.kinds: dict[str, Series] = {}  # descriptors by kind, as of the looks
        self.beyond_ledger = Series()  # malloc's live bytes without the ledger's and the probe's
        self.python_large = Series()  # Python's blocks that malloc serves, as of the full censuses
        #: The last reading of what is beyond the ledger, and the rise as of it.
        self._judged: tuple[tuple[int, int] | None, Rise | None] = (None, None)
        self.in_use, self.free = Series(), Series()
        self.ledger_count, self.ledger_bytes = Series(), Series()
        self.anonymous, self.mapped = Series(), Series()  # beyond malloc: pages, all that is mapped
        self.loop_has_ended = False
        self._first_rss = 0
        self.sizes = Series()  # how many different sizes the ledger's blocks have had
        self.makers: dict[str, Makers] = {}  # medium -> those born since the warm-up
        self.why_not = _core.malloc_why_not()
        self.python_is_in_malloc = _core.allocated_blocks() == 0  # PYTHONMALLOC=malloc
        self.account: _core.MemoryAccount | None = None  # as of the last reading of malloc
        info = _core.malloc_info()
        self._rounding = info["rounding"] if info is not None else 0.0
        self.flight = InFlight(0)

    # ---- at every mark ----

    def mark(self, step: int) -> None:
        """Take the cheap counts; malloc's numbers where the budget allows."""
        if step < self._warmup:
            return
        self._first_rss = self._first_rss or _core.rss_bytes() or 0
        if step >= self._next_count:
            self._next_count = step + max(1, (step - self._warmup) // MOST_POINTS)
            counts = _core.resource_counts()
            if counts is not None:
                self.descriptors.add(step, counts.descriptors)
                self.threads.add(step, counts.threads)
        if step >= self._next_tables:
            self._next_tables = step + max(1, int(TABLES_STRETCH * (step - self._warmup)))
            if self._tables.has():
                self._read_tables(step, is_due=True)
        if self.why_not is None and step >= self._next_native and self._mallocs.has():
            self._next_native = step + max(1, int(MALLOC_STRETCH * (step - self._warmup)))
            self._read_malloc(step)

    def grew_by(self) -> int:
        """Bytes in memory more than at the first mark after the warm-up."""
        return max(0, (_core.rss_bytes() or 0) - self._first_rss)

    def _pages_are_affordable(self) -> bool:
        """True if the kernel may go through the page tables now."""
        price = (_core.rss_bytes() or 0) / PAGE_TABLE_RATE
        return price <= SMALL_PRICE_S or self._tables.has(price)

    def _read_tables(self, step: int, is_due: bool) -> None:
        """Segments and processes; kinds of descriptors where that is due, or what is counted has changed: a
        look of a clean loop took half as long again for them.
        """
        counts = (self.descriptors.last, self.threads.last)
        with self._tables.charged(self.segments.listings):
            if is_due or self.loop_has_ended or counts != self._counts_at_tables:
                self._counts_at_tables = counts
                self._read_kinds(step)
            children = _core.child_processes()
            if children >= 0:
                self.processes.add(step, children)
            if not self.loop_has_ended:
                self.segments.read(step, self.descriptors.last)
                self.children.read(step)

    def _read_kinds(self, step: int) -> None:
        for kind, count in _core.resources().get("descriptors_by_kind", {}).items():
            self.kinds.setdefault(kind, Series()).add(step, count)

    def end_loop(self) -> None:
        """What is read until another mark may have been let go after the last one: counts stay as of then."""
        self.loop_has_ended = True

    def go_on(self) -> None:
        """Another mark: a report in the middle of the loop was not its end."""
        self.loop_has_ended = False

    def _own_bytes(self) -> int:
        """Bytes of malloc in which the probe's own Python keeps its series."""
        serieses = [s for s in vars(self).values() if isinstance(s, Series)] + list(self.kinds.values())
        columns: list[Column] = [c for s in serieses + self.segments.serieses() for c in s.columns()]
        columns += (c for s in self.children.serieses() for c in s.columns())
        columns += self.other_columns() if self.other_columns else ()
        sizes = (sys.getsizeof(c) - EMPTY_COLUMN_BYTES for c in columns)
        return sum(size for size in sizes if size > SMALL_BYTES)

    def _read_malloc(self, step: int) -> None:
        with self._mallocs.charged():
            self._note_malloc(step)

    def _note_malloc(self, step: int) -> None:
        totals = _core.ledger_totals()
        rows = [totals[m] for m in MALLOC if m in totals]
        account = _core.memory_account()
        in_use = account.in_use - self._own_bytes()
        ledger_bytes = sum(r["live_bytes"] for r in rows) + _core.cuda_memory()["malloc_bytes"]
        if self.loop_has_ended and in_use < self.in_use.last:  # let go after the last mark
            return
        self.account = account
        self.in_use.add(step, in_use)
        self.free.add(step, account.free)
        self.beyond_ledger.add(step, in_use - ledger_bytes)
        self.ledger_bytes.add(step, ledger_bytes)
        self.ledger_count.add(step, sum(r["live_count"] for r in rows))
        self.sizes.add(step, _core.ledger_sizes())
        self.anonymous.add(step, account.pool_touched)
        self.mapped.add(step, account.pool_mapped)

    # ---- at a look ----

    def wants_full(self) -> bool:
        """True if malloc's bytes rise in a way that Python's large blocks may explain: a full census knows
        them.
        """
        if "native" not in self._media or self._rise_beyond_ledger(max(self._limit, LEAST_ENLARGED)) is None:
            return False
        steps = self._full_steps
        return len(steps) < FULL_CENSUSES or self.beyond_ledger.points[-1][0] - steps[-1] >= FULL_STRETCH * (
            steps[-1] - self._warmup
        )

    def wants_second(self, known: float) -> bool:
        """True if malloc's bytes rise by far more than what is ``known`` to, in bytes a step, and one full
        census was taken: which part of the rise is Python's takes two.
        """
        rise = self.malloc_rise()
        return len(self._full_steps) <= 1 and rise is not None and HALF * rise.slope > known

    def rises_on_average(self) -> bool:
        """True if malloc's bytes went up at all, as one object's do that is enlarged by leaps."""
        points = since_release(self.beyond_ledger.since(self._warmup))
        if "native" not in self._media or len(points) < LEAST_STEPS:
            return False
        return went_up(points, max(self._limit, LEAST_ENLARGED))

    def in_use_rises(self) -> bool:
        """True if malloc's bytes went up by more than the limit on average: large objects may be kept, as
        they may where its figures can't be had.
        """
        points = since_release(self.in_use.since(self._warmup))
        return self.why_not is not None or went_up(points, self._limit)

    def was_let_go(self) -> bool:
        """True if a part of what malloc's bytes rose by in the loop was freed once that had ended."""
        return self.loop_has_ended and self.malloc_fell_by() > LITTLE * self.risen()

    def malloc_fell_by(self) -> int:
        """Bytes that malloc has in use less than when it was last read."""
        return self.in_use.last - _core.memory_account().in_use if self.why_not is None else 0

    def malloc_rises(self) -> bool:
        """True if malloc's bytes beyond the ledger's rise by more than the limit, whoever holds them."""
        return self._rise_beyond_ledger(self._limit) is not None

    def risen(self) -> float:
        """Bytes that malloc has beyond the ledger's, over the least since the warm-up."""
        ends = self.beyond_ledger.lowest_and_last_since(self._warmup)
        return ends[1][1] - ends[0][1] if ends is not None else 0

    def malloc_rise(self) -> Rise | None:
        """The steady rise of malloc's bytes beyond the ledger's, Python's among them."""
        if "native" not in self._media:
            return None
        return self._rise_beyond_ledger(max(self._limit, LEAST_NATIVE))

    def _rise_beyond_ledger(self, least: float) -> Rise | None:
        """By more than ``least`` a step, which is no less than the limit.  A look asks several times: each
        reading is judged once.
        """
        ends = self.beyond_ledger.lowest_and_last_since(self._warmup)
        if ends is None or not rises_on_average(*ends, least):
            return None
        end = self.beyond_ledger.end
        if self._judged[0] != end:
            self._judged = end, rise_since(self.beyond_ledger, self._warmup, self._limit)
        rise = self._judged[1]
        return rise if rise is not None and rise.slope >= least else None

    def account_at(self, step: int) -> "_core.MemoryAccount":
        """What was read at this mark, or is now."""
        known = self.account if self.in_use.is_at(step) else None
        return known if known is not None else _core.memory_account()

    def before_look(self, step: int) -> None:
        """Take the counts that the look's own objects would change."""
        if self.why_not is None and not self.in_use.is_at(step):
            self._read_malloc(step)

    def look(self, step: int, census: _core.Census | None, open_bytes: float) -> None:
        """Take what costs more: a look pays for it from its own budget.  ``open_bytes``: Python has grown by
        no more since the warm-up, which may be infinite.
        """
        self._open_bytes = open_bytes
        self._read_tables(step, is_due=False)
        if census is not None and census.full:
            size = census.total_bytes if self.python_is_in_malloc else census.large_bytes
            self.python_large.add(step, size)
            self._full_steps.append(step)
        self._note_makers()

    def memory_row(self) -> MemoryRow:
        """What a look adds to Report.memory, measured now; private and shared only if time allows."""
        known = self.why_not is None
        row: MemoryRow = {
            "malloc_in_use": int(self.in_use.last) if known else "not available",
            "malloc_free": int(self.free.last) if known else "not available",
        }
        if self._pages_are_affordable():
            with self._tables.charged():
                memory = _core.process_memory()
            row |= {name: memory.get(name, "not available") for name in ("private", "shared")}
        return row

    def _note_makers(self) -> None:
        """Where the threads and processes that are alive were made, if their number rises."""
        for medium, alive in (("thread", alive_threads), ("process", alive_processes)):
            born = born_since(alive(), self._warmup) if self.rise_of(medium) is not None else {}
            if born:  # all may have ended after the last mark
                self.makers[medium] = born
            for _type, site in born:
                _core.set_deep(site)

    # ---- verdicts ----

    def rise_of(self, medium: str) -> Rise | None:
        """The steady rise of a count: of descriptors ("fd"), threads, processes or segments ("shared")."""
        return self._rise_in(medium, self._counts()[medium])

    def _counts(self) -> dict[str, Series]:
        counts = {"fd": self.descriptors, "thread": self.threads, "process": self.processes}
        return {**counts, "shared": self.segments.count}

    def _rise_in(self, medium: str, series: Series) -> Rise | None:
        rise = rise_since(series, self._warmup, LEAST_COUNT) if medium in self._media else None
        return self._if_it_outlasts_flight(rise)

    def _if_it_outlasts_flight(self, rise: Rise | None) -> Rise | None:
        return rise if rise is not None and self._outlasts_flight(rise) else None

    def _outlasts_flight(self, rise: Rise | EarlyRise) -> bool:
        """True of a rise that is too long for batches in flight: between none and all of them hold memory and
        descriptors.
        """
        return rise.last[0] - rise.first[0] >= FLIGHTS * self.flight.batches

    def early_rises(self) -> dict[str, EarlyRise]:
        """Of media whose totals rise, too late or in too few readings for a verdict."""
        early = {m: early_rise(s.since(self._warmup), LEAST_COUNT) for m, s in self._counts().items()}
        early["native"] = self._early_native_rise()
        return {m: r for m, r in early.items() if r and m in self._media and self._outlasts_flight(r)}

    def _early_native_rise(self) -> EarlyRise | None:
        """Also that of malloc's bytes which has its verdict, where it is not known which part is Python's."""
        if self.python_is_in_malloc or self.always_new_sizes():
            return None
        known, least = self._beyond_python(), self._least_native(0.0)
        if comes_with_new_sizes(known, self.sizes.points):
            return None
        return early_rise(known or self.beyond_ledger.since(self._warmup), least, is_leak_open=not known)

    def counts_rise(self) -> bool:
        """True if descriptors, threads, processes or segments that this process holds rise: who keeps the
        objects that stand for them is asked for.
        """
        is_held = self._rise_in("shared", self.segments.held) is not None
        return is_held or any(self.rise_of(medium) is not None for medium in ("fd", "thread", "process"))

    def fastest_kind(self) -> str | None:
        """The kind of descriptors that rises fastest, as of the looks."""
        slopes = {kind: slope(s.points) for kind, s in self.kinds.items() if len(s.points) > 1}
        return max(slopes, key=lambda kind: slopes[kind]) if slopes else None

    def native_rise(self, bookkeeping: float = 0.0) -> Rise | None:
        """The steady rise of malloc's live bytes that neither Python nor numpy nor torch account for.

        ``bookkeeping``: bytes a step that belong to other things that grow, as far as the caller knows them.
        """
        if self.malloc_rise() is None:
            return None
        points = self._beyond_python()
        if comes_with_new_sizes(points, self.sizes.points):
            return None
        rise = steady_rise(points, self._least_native(bookkeeping))
        is_sure = rise is not None and shows_between(rise, self._beyond_python_at_censuses())
        return self._if_it_outlasts_flight(rise) if is_sure else None

    def pool_rise(self) -> Rise | None:
        """The steady rise of memory that libraries have mapped beside malloc, and touched.

        Pages alone are no sign of it: a buffer may be filled long after it was mapped.
        """
        if "native" not in self._media:
            return None
        rise = rise_since(self.mapped, self._warmup, self._least_native(0.0))
        if rise is None or slope(self.anonymous.since(rise.first[0])) < HALF * rise.slope:
            return None
        return self._if_it_outlasts_flight(rise)

    def segment_bytes_rise(self) -> Rise | None:
        """The steady rise of the bytes of shared memory, without torch's storages."""
        if "shared" not in self._media:
            return None
        return self._if_it_outlasts_flight(rise_since(self.segments.bytes, self._warmup, self._limit))

    def segments_come_by(self) -> dict[str, float]:
        """How fast what may stand for a segment rises: NativeLines' name => a step, the most exact first."""
        count, size = self.rise_of("shared"), self.segment_bytes_rise()
        if (count is None and size is None) or self.segments.line() is not None:
            return {}
        slopes = {"shared": slope(self.segments.count.since(self._warmup))}
        slopes["shared bytes"] = size.slope if size is not None else 0.0
        slopes["fd"] = slope(self.descriptors.since(self._warmup))
        return {what: rate for what, rate in slopes.items() if rate > 0}

    def rise_by_size(self) -> Rise | None:
        """The steady rise of those bytes that comes with new sizes of blocks: a library keeps something for
        each shape.
        """
        if self.malloc_rise() is None:
            return None
        points = self._beyond_python()
        is_by_size = comes_with_new_sizes(points, self.sizes.points)
        return steady_rise(points, self._least_native(0.0)) if is_by_size else None

    def always_new_sizes(self) -> bool:
        """True if between nearly all marks read each step, on average, brought a size of blocks that none
        before it had.
        """
        counts = self.sizes.since(self._warmup)
        always = sum(b[1] - a[1] >= b[0] - a[0] for a, b in itertools.pairwise(counts))
        return len(counts) > LEAST_STEPS and always >= NEARLY_ALL * (len(counts) - 1)

    def may_fill_a_cache(self, rise: Rise) -> bool:
        """True if a native rise may be a library's cache by shape that is not full yet: no step has shown
        what repeated shapes bring.
        """
        return self.always_new_sizes() and rise.last[0] - rise.first[0] <= CACHED_SHAPES

    def _beyond_python(self) -> Points:
        """malloc's bytes beyond the ledger's and Python's, taken as 0 where all of its lines are level; empty
        where that is not known, and too few full censuses tell them.
        """
        points, large = self.beyond_ledger.since(self._warmup), self.python_large.points
        unless_told = points if self._open_bytes <= LEVEL * self.risen() else []
        if len(large) <= 1 or not points:
            return unless_told
        grown = abs(slope(points))
        least = max(self._limit, LEAST_NATIVE, HALF * grown)  # jumps that growth hides are none
        if abs(slope(large)) < LEVEL * grown:
            return minus(points, [(0, large[0][1]), *large], least)
        inside = minus(points, large, least)
        enough = inside and inside[-1][0] - inside[0][0] >= KNOWN_SHARE * (points[-1][0] - points[0][0])
        return inside if enough else unless_told

    def _beyond_python_at_censuses(self) -> list[tuple[int, int]]:
        """The same where Python's were counted, and not told from those before and after."""
        beyond = dict(self.beyond_ledger.points)
        return [(step, beyond[step] - size) for step, size in self.python_large.points if step in beyond]

    def _least_native(self, bookkeeping: float) -> float:
        """Bytes a step from which on native memory counts as growing."""
        return max(self._limit, LEAST_NATIVE) + self.bookkeeping(bookkeeping)

    def bookkeeping(self, known: float) -> float:
        """Bytes a step that the bookkeeping of what grows besides may take; ``known``: of it, as the caller
        knows.
        """
        blocks = max(0.0, slope(self.ledger_count.points))
        size = max(0.0, slope(self.ledger_bytes.points))
        per_block = PER_MAPPED_BLOCK if blocks and size / blocks >= MAPPED_BLOCK_BYTES else PER_BLOCK
        least = known + blocks * per_block + self._rounding * size
        least += max(LARGE_ROUNDING, self._rounding) * max(0.0, slope(self.python_large.points))
        for series, each in ((self.descriptors, PER_DESCRIPTOR), (self.threads, PER_THREAD)):
            least += each * max(0.0, slope(series.since(self._warmup)))
        return least

    def retained_rise(self) -> Rise | None:
        """The steady rise of what malloc keeps although it was freed, while what is in use is level."""
        rise = rise_since(self.free, self._warmup, max(self._limit, LEAST_NATIVE))
        if rise is None or abs(slope(self.in_use.since(self._warmup))) > (1 - NEARLY_ALL) * rise.slope:
            return None
        return self._if_it_outlasts_flight(rise)


def alive_threads() -> list[object]:
    return list(vars(threading)["_active"].values())


def born_since(objects: Iterable[object], step: int) -> Makers:
    """Those of the objects that were born in ``step`` or later, where their line is known."""
    found: Makers = {}
    for item in objects:
        try:
            birth = _core.site_of(item)
        except LeakprobeError:
            continue
        if birth is None or birth.site < FIRST_SITE or birth.last_step < step:
            continue
        kind = type(item)
        key = (inert.class_name(kind), _core.site_base(birth.site))
        found[key] = found.get(key, 0) + 1
    return found


def went_up(points: Points, least: float) -> bool:
    """True if the last point is higher than the first by more than ``least`` a step."""
    return len(points) > 1 and points[-1][1] - points[0][1] > least * (points[-1][0] - points[0][0])
