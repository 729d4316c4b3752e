"""What grows, found while the program runs: a census now and then, a trace of what it suspects.

A *look* takes a census and the ledger's groups, keeps those whose cohorts grow, asks for
whole stacks at their sites, and traces who keeps them.  Looks follow each other at growing
distances and within a budget of time, so that a clean loop pays next to nothing.
"""

import dataclasses
import gc

from leakprobe import _core
from leakprobe.analysis import growth, sites
from leakprobe.analysis.autograd_steps import AutogradSteps
from leakprobe.analysis.budget import CALM_SHARE, Budget, timed
from leakprobe.analysis.native_lines import NativeLines
from leakprobe.analysis.resources import Resources, climbs, steady_rise
from leakprobe.errors import LeakprobeError
from leakprobe.judge.suppressions import is_of_known_table
from leakprobe.model.entry import Entry, entries_of
from leakprobe.model.frames import FIRST_SITE, SELF_SITE
from leakprobe.model.media import family

#: Groups that grow more slowly than this, in bytes a step, are never traced.
MIN_RATE = 12.0
#: At most so many groups are traced, the fastest first.
MAX_GROUPS = 256
#: Totals of so many groups with most bytes are followed from look to look.
FOLLOWED_GROUPS = 192
#: After 0, 1, ... looks in a row that found nothing, one for blocks that rise no faster than then waits for
#: so many times the measured steps.
WATCHFUL = (0.0, 0.6, 1.0, 1.5, 2.0)
#: So many blocks of CPython's heap must a step add, steadily over the last so many counts, for looks at the
#: full budget.
URGENT_BLOCKS, CLIMB_POINTS = 0.9, 4
#: While blocks are being added as fast as before, every so-manieth look is a full census, within CALM_SHARE
#: of the run's time.
FULL_EVERY = 4
#: Blocks rise about as fast as before up to this factor.
HARMLESS_FACTOR = 1.5
#: Bytes of malloc that an object of torch in a known table may keep.
BEHIND_ENTRY = 256.0
#: Measured steps before malloc's bytes alone make a trace look for autograd nodes.
GRAPH_STEPS = 16
#: At most so many autograd nodes are read by a trace.
TORCH_BUDGET = 100_000
#: The number of blocks is level while it moves by no more than this, and this many a step.
LEVEL_BLOCKS, LEVEL_RATE = 2, 0.2
#: Blocks that are added count as explained by a census that meets this share of them.
MET_SHARE = 0.5
#: Of more points than these one jump is left out where a count is asked for being level.
LEAST_WITH_JUMP = 5
#: Points of the number of blocks that say whether it rises now.
RECENT_BLOCKS = 16
#: Frees are followed once so many full censuses in a row left more blocks unexplained, by this many a step.
RISING_LOOKS, LEAST_RISE = 3, 0.5
#: They are followed no more when so many looks found nothing that they explain.
IDLE_LOOKS = 8
#: A total smaller than this, in bytes, is not followed.
FOLLOWED_BYTES = 16 * 1024


@dataclasses.dataclass
class Group:
    """A (medium, type, site) whose survivors grow.  ``key`` is ("object", type_id, site) or ("block", medium,
    site).
    """

    key: tuple
    medium: str
    type: str | None
    site: int
    growth: growth.Growth
    live_bytes: int
    live_count: int
    series: list  # (step, count, bytes) of the survivors


@dataclasses.dataclass
class Look:
    """One look: what grew as of the mark that began ``step``."""

    step: int
    window: growth.Window
    groups: list
    merged: list  # (first, last) of steps known together only
    sites: list = dataclasses.field(default_factory=list)  # rows of sites.largest()


@dataclasses.dataclass
class Trace:
    """One trace: the holders found at the mark that began ``step``, for groups that grow by cohorts."""

    step: int
    window: growth.Window
    entries: tuple[Entry, ...]
    merged: list  # (first, last) of steps known together only
    frees_since: int | None = None  # the first step of which every live block is known


class Suspects:
    """The suspects of one watch, look by look."""

    def __init__(self, warmup: int, media: frozenset, limit: float, heap_bytes: int):
        self._warmup, self._limit = warmup, limit
        self._heap_bytes = heap_bytes  # of CPython's heap, without what its arenas grew by since the start
        self._media = media
        self.looks_budget = Budget(allowance_s=2.5, share=0.02, stretch=0.2)
        self.traces_budget = Budget(allowance_s=2.0, share=0.03, stretch=0.3)
        self._grows = False  # as of the last look
        self._next_check = 0  # the step at which the cheap counts are asked again
        self._rise = 0.0  # blocks a step, as of the last look
        self._quiet_looks, self._quiet_rise = (
            0,
            None,
        )  # looks in a row that found nothing, and blocks a step as of the last of them
        self._harmless_rise: float | None = (
            None  # blocks a step as of the last full census, if it found too little growth
        )
        self._looks_since_full = 0
        self._fulls_compared = (
            3  # so many full censuses are compared, as of what the last one met of the blocks that were added
        )
        self._was_level = False  # the number of blocks, before the last look
        self._grew_in_full = False  # as of the last full census
        self._merged: list = []
        self._totals: dict[tuple, list] = {}
        self._traced_keys: set = set()
        self.last_look: Look | None = None
        self.last_trace: Trace | None = None
        self.last_replaced: Trace | None = None
        self.most_garbage: Trace | None = None  # the trace that met most bytes in unreachable cycles
        self.replaced: dict[tuple, growth.Growth] = {}
        self.lengths: dict[int, list] = {}  # address of a holder -> [(step, length)], as of the traces
        self.frees_since: int | None = None  # frees are followed from this step on
        self._looks_with_frees = 0
        self._unexplained: list = []  # (step, blocks of Python's allocator that no object in reach explains), as of the full censuses
        self.frozen = [
            gc.get_freeze_count()
        ] * 2  # objects that no collection looks at: at the start, at the last look
        self.look_error: str | None = None  # why the last look could not be taken
        self.trace_error: str | None = None  # why the last trace could not be taken
        self.resources = Resources(warmup, media, limit)
        self.native_lines = NativeLines()
        self.autograd_steps = AutogradSteps()
        self.graph_may_grow = False  # malloc's bytes rise, and torch is there to have nodes in them
        self._graph_may_have_grown = False  # the same as of the look before
        self._no_graph_until = (
            warmup + GRAPH_STEPS
        )  # malloc's bytes alone are no reason for a trace before that step

    def heap_bytes(self) -> int:
        """Bytes of CPython's heap: those of the last full census and what its arenas grew by since."""
        return max(0, self._heap_bytes + _core.python_bytes())

    def visit(self, step: int, *, end: bool = False) -> bool:
        """Look and trace if due at the mark that began ``step``; True if a look was taken.

        end: the loop ends here, so that a look is due if it can be afforded.
        """
        if end and self.last_look is not None and self.last_look.step == step:
            return False
        self.resources.mark(step)
        self.autograd_steps.mark(step)
        window = self._window(step)
        if window.steps < growth.MIN_STEPS - growth.LAG:
            return False
        measured = step - self._warmup
        urgent = self._is_urgent(step)
        if not self.looks_budget.due(step, measured=measured, at_once=end, urgent=urgent):
            return False
        with _core.QuietCollector():  # no collection between look and trace: both must see the same garbage
            return self._look_and_trace(step, window, measured, end, urgent)

    def _look_and_trace(
        self, step: int, window: growth.Window, measured: int, end: bool, urgent: bool
    ) -> bool:
        """False if no look could be taken: the loop that is watched goes on."""
        with timed(self.looks_budget):
            try:
                self.last_look = self._look(step, window)
            except (LeakprobeError, MemoryError) as error:
                self.look_error = f"at step {step}: {error or 'out of memory'}"
                return False
            self.look_error = None
        groups = self.last_look.groups
        grows = self._grows = (
            self._grows_enough(groups)
            or self._graph_may_grow_still()
            or self._graph_grew()
            or self._may_hold_graphs(groups)
        )
        self.looks_budget.calm(not grows and not urgent)
        is_quiet = not (grows or self._unexplained_rose() or self.frees_since is not None)
        self._quiet_looks = self._quiet_looks + 1 if is_quiet else 0
        self._quiet_rise = self._rise if is_quiet else None
        if (grows or (groups and self.resources.counts_rise())) and (
            self._much_is_new(groups) or self.traces_budget.due(step, measured=measured, at_once=end)
        ):
            with timed(self.traces_budget):
                try:
                    self.trace_error = None
                    self._trace(step, window, groups)
                    if self._graph_may_grow_still() and not self._graph_grew():
                        self._no_graph_until = step + measured
                except (LeakprobeError, MemoryError) as error:
                    self.trace_error = str(error) or "out of memory"
        return True

    def _graph_grew(self) -> bool:
        """True if the last trace met autograd nodes of past steps: the next one tells whether they are still
        there.
        """
        return self.last_trace is not None and any(
            m.medium == "native" for e in self.last_trace.entries for m in e.members
        )

    def _may_hold_graphs(self, groups) -> bool:
        """True if tensors grow that no trace has followed yet: small ones too may each keep the nodes of a
        graph, which no census sees.
        """
        return self.autograd_steps.is_known and any(
            is_of_torch(g.type) and g.key not in self._traced_keys and not is_of_known_table(g.site)
            for g in groups
        )

    def _is_urgent(self, step: int) -> bool:
        """True if something is known to grow, or seems to."""
        if self._grows or step < self._next_check or not self.looks_budget.is_near(step):
            return self._grows
        self._next_check = step + max(1, (step - self._warmup) // 8)
        if self.resources.rise_shows(self._since_look()):
            return True
        blocks = self.resources.blocks.since(self._since_look())[-CLIMB_POINTS:]
        if not climbs(blocks, URGENT_BLOCKS):
            return False
        stretch = WATCHFUL[min(self._quiet_looks, len(WATCHFUL) - 1)]
        return not self._is_harmless(growth.slope(blocks), self._quiet_rise) or self.looks_budget.is_near(
            step, stretch
        )

    @staticmethod
    def _is_harmless(rise: float, before: float | None) -> bool:
        """True if blocks rise about as fast as they did when nothing was found, or more slowly: of few counts
        a slope is not exact.
        """
        return before is not None and rise < HARMLESS_FACTOR * before + 0.5

    def _since_look(self) -> int:
        """The second measured step after the last look: a look itself frees blocks, which the step after it
        may take again.
        """
        return max(self._warmup, self.last_look.step + 2 if self.last_look is not None else 0)

    def _graph_may_grow_still(self) -> bool:
        """True if two looks in a row saw malloc's bytes rise, and not in the first steps, when pools and
        caches fill.
        """
        return (
            self.graph_may_grow and self._graph_may_have_grown and self.last_look.step >= self._no_graph_until
        )

    def _window(self, step: int) -> growth.Window:
        return growth.window_at(step, self._warmup)

    def _look(self, step: int, window: growth.Window) -> Look:
        groups, census = [], None
        self.resources.before_look(step)
        self.frozen[1] = gc.get_freeze_count()
        self._merged = _core.merged_epochs()
        if "python" in self._media:
            full = self._full_is_needed(step) or self.resources.wants_full()
            if full:
                _core.forget_looked_up_names()
            census = _core.census(full, window.first, window.last, 3, False, True)
            blocks = _core.allocated_blocks() if full else 0  # before the rows of groups make more of them
            groups += self._object_groups(census, window)
            if full:
                self._unexplained = [*self._unexplained[-16:], (step, blocks - census.blocks)]
                self._heap_bytes = census.total_bytes - _core.python_bytes()
                self._grew_in_full = self._grows_enough(groups)
                self._note_what_was_met(census.groups, MET_SHARE * self._rise * window.steps)
                self._harmless_rise = None if self._grew_in_full else self._rise
            self._follow_objects(census, step)
        self.resources.look(step, census)
        native = self.resources.native_rise()
        if native is not None and not self.resources.may_fill_a_cache(native):  # a note needs no line
            self.native_lines.want()
        if self.resources.rise_of("fd") is not None:
            self.native_lines.want("fd")
        self._graph_may_have_grown = self.graph_may_grow
        self.graph_may_grow = self.autograd_steps.is_known and self.resources.malloc_rises(
            beyond=bytes_behind_known_tables(groups)
        )
        groups += self._block_groups(window, step)
        self._follow_frees(step)
        groups.sort(key=lambda g: -g.growth.bytes_per_step)
        del groups[MAX_GROUPS:]
        for group in groups:
            _core.set_deep(group.site)
        self.replaced = self._find_replaced(window, {g.key for g in groups})
        largest = sites.largest(census, groups, step, self._merged, self._media)
        return Look(step, window, groups, self._merged, largest)

    def _note_what_was_met(self, rows, enough: float) -> None:
        """One full census is enough where objects of known tables are ``enough`` of the blocks added in the
        window, two where any objects are.
        """
        if 0 < enough <= sum(row[5] for row in rows if is_of_known_table(row[2])):
            self._fulls_compared = 1
        else:
            self._fulls_compared = 2 if sum(row[5] for row in rows) >= enough else 3

    def _full_is_needed(self, step: int) -> bool:
        """True unless the number of blocks in CPython's heap says that what the collector does not track
        can't grow.

        The tracked census costs a fraction of the full one.  It is enough while the number of blocks is level
        but for a jump, and mostly enough while it rises no faster than when a full one found too little
        growth for a finding; where it falls, or goes up and down, growth may hide in that.  What a full one
        found to grow may be of objects that only a full one sees: it is followed with full ones.
        """
        blocks = self.resources.blocks.since(
            max(self._warmup + 1, self._since_look())
        )  # the first counts make blocks themselves
        enough = 2 if self._was_level else 4
        if len(blocks) < enough and self.last_look is not None:  # soon after it
            blocks = self.resources.blocks.points[-enough:]
        self._rise = growth.slope(blocks[-RECENT_BLOCKS:]) if len(blocks) > 1 else 0.0
        if self._grew_in_full or self.frees_since is not None or self._unexplained_rose():
            return True
        self._was_level = len(blocks) >= enough and is_level(blocks, self._was_level)
        if self._was_level:
            return False
        # What a full census leaves unexplained is compared with what the one before did, whose own first
        # objects blur it.
        compared = len(self._unexplained) >= self._fulls_compared
        self._looks_since_full += 1
        if len(blocks) >= 3 and compared and self._is_harmless(self._rise, self._harmless_rise):
            if self._looks_since_full < FULL_EVERY or not self.looks_budget.is_within(CALM_SHARE):
                return False
        self._looks_since_full = 0
        return True

    def _follow_frees(self, step: int) -> None:
        """Escalate while blocks are added that no object in reach explains.

        Objects that nothing refers to and that the collector does not track, or no more, are in no census
        until frees are followed.
        """
        if "python" not in self._media:
            return
        if self.frees_since is None:
            wanted = (
                self._unexplained_rise() or self._may_lose_sight() or self.resources.native_rise() is not None
            )
            if wanted and _core.follow_frees(True):
                self.frees_since, self._looks_with_frees = step, 0
            return
        self._looks_with_frees += 1
        if self._looks_with_frees % IDLE_LOOKS == 0 and not self._memory_rises():
            _core.follow_frees(False)
            self.frees_since = None

    def _memory_rises(self) -> bool:
        """True while anything rises that may be what is known only because frees are followed: that explains
        malloc's bytes.
        """
        in_use = self.resources.in_use.points[-3 * RISING_LOOKS :]
        return (
            self._unexplained_rise()
            or self.resources.native_rise() is not None
            or steady_rise(in_use, self._limit) is not None
        )

    def _may_lose_sight(self) -> bool:
        """True if lost objects are of types that the collector stops to track when it meets them."""
        entries = self.last_trace.entries if self.last_trace is not None else ()
        return any(m.type in ("tuple", "dict") for e in entries if e.kind == "lost" for m in e.members)

    def _unexplained_rose(self) -> bool:
        """True if the last full census left more blocks unexplained than the one before."""
        points = self._unexplained[-2:]
        return len(points) == 2 and points[1][1] - points[0][1] > LEAST_RISE * (points[1][0] - points[0][0])

    def _unexplained_rise(self) -> bool:
        """True if each of the last full censuses left more blocks unexplained than the one before."""
        points = self._unexplained[-RISING_LOOKS:]
        return len(points) == RISING_LOOKS and all(
            b[1] - a[1] > LEAST_RISE * (b[0] - a[0]) for a, b in zip(points, points[1:])
        )

    def explains(self, found) -> bool:
        """True if unexplained blocks or malloc's bytes have kept rising of late by at least half of this
        growth.

        What is known since frees are followed may be a working set that is filled and emptied: then nothing
        rises.
        """
        blocks, in_use = self._unexplained[-RISING_LOOKS:], self.resources.in_use.points[-3 * RISING_LOOKS :]
        return (
            growth.slope(blocks) >= 0.5 * found.count_per_step
            or steady_rise(in_use, 0.5 * found.bytes_per_step) is not None
        )

    def _grows_enough(self, groups) -> bool:
        """True if all that grows adds up to more than the limit: less can't become a finding."""
        return (
            bool(self.replaced)
            or sum(g.growth.bytes_per_step for g in groups if not is_of_known_table(g.site)) > self._limit
        )

    def _much_is_new(self, groups) -> bool:
        """True if a good part of the growth is in groups that no trace has followed yet."""
        groups = [g for g in groups if not is_of_known_table(g.site)]
        total = sum(g.growth.bytes_per_step for g in groups)
        new = sum(g.growth.bytes_per_step for g in groups if g.key not in self._traced_keys)
        return new > 0.25 * total and self.traces_budget.affordable()

    def _object_groups(self, census, window):
        for name, type_id, site, count, size, _wc, window_bytes, *_ in census.groups:
            if site == SELF_SITE or window_bytes < MIN_RATE * window.steps:
                continue
            series = census.series(type_id, site)
            found = suspicion(series, window, self._merged)
            if found is not None:
                yield Group(("object", type_id, site), "python", name, site, found, size, count, series)

    def _block_groups(self, window, step):
        groups = []
        for medium, site, count, size, _wc, window_bytes, *_ in _core.ledger_groups(
            window.first, window.last, 0
        ):
            if family(medium) not in self._media or site == SELF_SITE:
                continue
            key = ("block", medium, site)
            if size >= FOLLOWED_BYTES:
                self._follow(key, step, size)
            if window_bytes < MIN_RATE * window.steps:
                continue
            series = _core.ledger_series(medium, site)
            found = suspicion(series, self._without_flight(window) if medium == "shared" else window)
            if found is not None:
                groups.append(Group(key, medium, None, site, found, size, count, series))
        return groups

    def _without_flight(self, window) -> growth.Window:
        """The window less the steps whose batches may still wait for their turn in this process."""
        return growth.Window(window.first, window.last - self.resources.in_flight)

    def _follow_objects(self, census, step: int) -> None:
        for _name, type_id, site, _count, size, *_ in census.top(FOLLOWED_GROUPS):
            if site >= FIRST_SITE and size >= FOLLOWED_BYTES:
                self._follow(("object", type_id, site), step, size)

    def _follow(self, key, step: int, size: int) -> None:
        points = self._totals.setdefault(key, [])
        points.append((step, size))
        if len(points) > 2 * growth.MAX_POINTS:
            self._totals[key] = growth.every_second(points)

    def _find_replaced(self, window, known) -> dict:
        """Groups with few survivors whose live total rises all the same: one block replaced by a larger
        one.
        """
        found = {}
        for key, points in self._totals.items():
            if key in known or points[-1][0] <= window.last:
                continue
            rising = growth.rising_total(points, window)
            if rising is not None and rising.bytes_per_step > MIN_RATE:
                found[key] = rising
                _core.set_deep(key[2])
        return found

    def _trace(self, step: int, window, groups) -> None:
        if groups or self.graph_may_grow or self._graph_grew():
            keys = [g.key for g in groups]
            result = run_trace(keys, window.first, window.last, self.autograd_steps.marks())
            self.last_trace = Trace(
                step, window, result, self._merged + self.autograd_steps.merged(), self.frees_since
            )
            self._traced_keys |= {g.key for g in groups}
            self._note_lengths(step)
            if garbage_bytes(self.last_trace) > garbage_bytes(self.most_garbage):
                self.most_garbage = self.last_trace
        if self.replaced:
            recent = growth.Window(window.first, step)
            result = run_trace(list(self.replaced), recent.first, recent.last)
            if not result:  # enlarged in place: as old as the loop
                result = run_trace(list(self.replaced), 0, recent.last)
            self.last_replaced = Trace(step, recent, result, self._merged)

    def _note_lengths(self, step: int) -> None:
        """Remember how long the holders are; an address that is no holder any more is forgotten."""
        kept = {}
        for entry in self.last_trace.entries:
            holder = entry.holder
            if holder is not None and holder.length is not None:
                kept[holder.address] = [*self.lengths.get(holder.address, [])[-8:], (step, holder.length)]
        self.lengths = kept


def is_level(points, was_level: bool = False) -> bool:
    """True if a count hardly moves but for one jump: less than what grows by the usual limit, in the largest
    blocks that are counted, would add.

    At one step much may be made or freed at once, as where a loop ends; what grows adds to it at others too.
    Of few points no jump is left out, but for a fall of what was level before.
    """
    jump = max(range(1, len(points)), key=lambda i: abs(points[i][1] - points[i - 1][1]))
    if len(points) <= LEAST_WITH_JUMP and not (was_level and points[jump][1] < points[jump - 1][1]):
        jump = 0
    counts = [[count for _step, count in part] for part in (points[:jump], points[jump:]) if part]
    return sum(max(part) - min(part) for part in counts) <= LEVEL_BLOCKS + LEVEL_RATE * (
        points[-1][0] - points[0][0]
    )


def is_of_torch(type_name) -> bool:
    """True for the name of a type of tensors or of autograd nodes; of blocks it is None."""
    return str(type_name).startswith("torch") or str(type_name).endswith("Backward0")


def bytes_behind_known_tables(groups) -> float:
    """Bytes a step that entries of known tables may hold outside of Python: what stands for a tensor's
    storage keeps the storage's own structure.
    """
    return BEHIND_ENTRY * sum(
        g.growth.count_per_step for g in groups if is_of_torch(g.type) and is_of_known_table(g.site)
    )


def suspicion(series, window, merged=()):
    """How a group may grow: who holds its members decides."""
    found = growth.classify(series, window, merged) or growth.since_a_point(series, window)
    return found or growth.regular_before_a_run(series, window)


def run_trace(keys, first: int, last: int, autograd_marks=()) -> tuple[Entry, ...]:
    """_core.trace over groups given by their keys, and over autograd nodes by their age."""
    objects = [(type_id, site) for kind, type_id, site in keys if kind == "object"]
    blocks = [(medium, site) for kind, medium, site in keys if kind == "block"]
    marks = list(autograd_marks)
    traced = _core.trace(objects, blocks, first, last, torch_budget=TORCH_BUDGET, autograd_marks=marks)
    return entries_of(traced)


def garbage_bytes(trace: Trace | None) -> int:
    """Bytes in unreachable cycles that a trace met."""
    return sum(e.bytes for e in (trace.entries if trace is not None else ()) if e.kind == "garbage")
