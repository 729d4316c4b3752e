"""What grows and who keeps it, found while the program runs: a mark reads, a look judges, a walk asks the
heap.

A *look* judges the live counts of each line and, where some rise, who survives of them by step of birth; it
reads tables of the probe only, in slices.  A *walk* of the heap confirms what a look found, and traces who
keeps it; a loop in which nothing grows pays for none.
"""

import dataclasses
import enum
import gc
from collections.abc import Sequence

from leakprobe import _core
from leakprobe.errors import LeakprobeError
from leakprobe.evidence.autograd_steps import AutogradSteps
from leakprobe.judge.bounded import reading_of
from leakprobe.judge.crowds import Crowd, crowds_among
from leakprobe.judge.entries import AUTOGRAD_KEY, Seen
from leakprobe.judge.looks import Look, Ranges, Readings, Suspect, Unsettled, Walk
from leakprobe.judge.overtaken import entry_without_holder
from leakprobe.judge.renewed import as_counted
from leakprobe.judge.verdicts import ASKED
from leakprobe.model.bounds import KEPT_LENGTHS, LEAST_RISEN, MALLOC_SPREAD, MOST_PHASES, TRACED_GROUPS
from leakprobe.model.entry import as_in_the_loop
from leakprobe.model.frames import FrameTuple
from leakprobe.model.history import judged_steps
from leakprobe.model.rows import SiteOfLook
from leakprobe.model.thresholds import HALF, LAG, LEAST_REST, LEAST_STEPS
from leakprobe.model.verdict import Verdict
from leakprobe.watch import sites
from leakprobe.watch.blocks import Blocks
from leakprobe.watch.cycles import Cycles
from leakprobe.watch.heap import Heap
from leakprobe.watch.holders import Holders
from leakprobe.watch.native_lines import NativeLines
from leakprobe.watch.native_samples import NativeSamples
from leakprobe.watch.objects import Growing, Objects
from leakprobe.watch.process_account import ProcessAccount
from leakprobe.watch.records import Records
from leakprobe.watch.resources import Resources
from leakprobe.watch.rested import LetGo, are_gone, as_of_this_end, part_let_go, without_rested
from leakprobe.watch.schedule import EPOCH_END, LOOK, WALK, Depth, Meter, Moment, Price
from leakprobe.watch.tables import Tables
from leakprobe.watch.walked import Walked, Wanted


class Stage(enum.Enum):
    """What the engine does between two marks."""

    RESTING = "resting"
    SCANNING = "scanning"  # a look has begun, whose scan goes on in slices


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """Of one watch.  ``in_flight``: so many steps may what was made still be on its way to who uses it."""

    warmup: int
    media: frozenset[str]
    limit: float
    walk: Price = WALK
    is_worker: bool = False
    in_flight: int = 0


class Engine:
    """The looks and walks of one watch, of a process or of a worker."""

    def __init__(self, settings: Settings, heap_bytes: int):
        self._settings, self._warmup = settings, settings.warmup + settings.in_flight
        self._heap_bytes = heap_bytes  # of CPython's heap, without what its arenas grew by since the start
        self._stage = Stage.RESTING
        self._looks, self._walks, self._epoch_ends = Meter(LOOK), Meter(settings.walk), Meter(EPOCH_END)
        self._objects = Objects(self._warmup, settings.in_flight)
        self._blocks = Blocks(self._warmup, settings.media, self._objects.flight)
        self._heap, self._cycles = Heap(self._warmup), Cycles(self._warmup, settings.limit)
        self._records, self._tables = Records(self._warmup), Tables()
        self._epochs: list[int] = []
        self._is_short_epoch = False  # the last one begins soon after the one before it
        self._frozen_before = gc.get_freeze_count()
        self._walked = Walked()
        self._unsettled: list[Unsettled] = []
        #: Private bytes before the last walk of a worker, whose walks copy pages of its parent.
        self._private_before_walk: int | None = None
        self._let_go: LetGo | None = None  # the last time
        self.gone: LetGo | None = None  # with the loop, beside what is there still
        self._malloc_rose: int | None = None  # the look since which it does, in all looks
        self.step = 0  # the last mark that was followed
        self._ended_at = -1  # the last mark at which all was looked at
        self._readings: Readings = {}
        self.last_look: Look | None = None
        self.last_walk: Walk | None = None
        self.most_garbage: Walk | None = None  # the walk that met most bytes in unreachable cycles
        self.look_error: str | None = None
        self.walk_error: str | None = None
        self.resources = Resources(self._warmup, settings.media, settings.limit)
        self.resources.flight = self._objects.flight
        self.holders = Holders(self._warmup)
        self.native_lines = NativeLines()
        self.native_samples = NativeSamples()
        self.autograd_steps = AutogradSteps()
        # a worker's private memory rises too where it reads what it shares with its parent
        self.account = ProcessAccount(self._warmup, frozenset() if settings.is_worker else settings.media)

    def heap_bytes(self) -> int:
        """Bytes of CPython's heap: those of the last census and what its arenas grew by since."""
        return max(0, self._heap_bytes + _core.python_bytes())

    @property
    def warmup(self) -> int:
        return self._warmup

    def line_of_nodes(self, rate: float) -> Sequence[FrameTuple]:
        """The stack of the line that makes so many bytes of autograd nodes a step, if it was followed."""
        stack: Sequence[FrameTuple] = self.native_lines.verdict(rate)[0]
        return stack

    def epoch(self, step: int) -> None:
        """An epoch begins at the mark ``step``.  Of very many those too short to be judged are forgotten."""
        if self._is_short_epoch and len(self._epochs) > MOST_PHASES:
            self._epochs.pop()
        if not self._epochs or self._epochs[-1] != step:
            self._is_short_epoch = bool(self._epochs) and step - self._epochs[-1] < LEAST_REST
            self._epochs.append(step)

    def spent_s(self) -> float:
        """Processor time that looks and walks took so far."""
        return self._looks.spent_s + self._walks.spent_s

    def is_scanning(self) -> bool:
        """True while a look goes on over several marks."""
        return self._stage is Stage.SCANNING

    def put_off(self) -> list[tuple[str, str]]:
        """(what, why) of what was due and too dear at the last mark."""
        pairs = (("checks", self._looks.put_off()), ("walks", self._walks.put_off()))
        return [(what, why) for what, why in pairs if why is not None]

    # ---- at a mark ----

    def visit(self, step: int, moment: Moment = Moment.IN_LOOP) -> bool:
        """Read, and look if that is due; True if there is news: other suspects than before, or a walk."""
        if moment is not Moment.IN_LOOP and self._ended_at == step:
            return False
        self.step = step
        if moment is Moment.IN_LOOP:
            self.resources.go_on()
        self.resources.mark(step)
        self.native_samples.mark()
        self.autograd_steps.mark(step)
        self.account.mark(step, self.resources.account_at)
        measured = step - self._warmup
        if measured < LEAST_STEPS:
            return False
        if self._stage is Stage.SCANNING:
            if moment is Moment.IN_LOOP:
                return self._go_on(step, measured, moment)
            self._objects.give_up()
        if moment is Moment.IN_LOOP and not self._looks.is_due(step):
            return False
        return self._begin_look(step, measured, moment)

    def look_at_an_epochs_end(self, step: int) -> bool:
        """Look while what the epoch gathered is alive, unless that came dear of late, or it was let go (a
        generator that has ended).
        """
        if not self._epoch_ends.is_due(step):
            return False
        with self._epoch_ends.taken(step, step - self._warmup):
            return self._look_unless_let_go(step, Moment.EPOCH_END)

    def look_at_the_end(self, step: int) -> bool:
        """Look as of now, unless what grew was let go in the last steps, which are never judged, or is while
        this looks (threads that end): the report then is as of the look before.
        """
        self.resources.end_loop()
        self.gone = as_of_this_end(self.gone, step)
        if self._let_go is not None and step - self._let_go.step <= LAG:
            self.last_look, self.last_walk = self._let_go.look, self._let_go.walk
            return False
        return self._look_unless_let_go(step, Moment.END)

    def _look_unless_let_go(self, step: int, moment: Moment) -> bool:
        look, walk, most, grew = self.last_look, self.last_walk, self.most_garbage, self._what_grew()
        if self._was_let_go(grew, moment):
            self.last_look = without_rested(look, step)
            return False
        part = part_let_go(look, walk, step) if moment is Moment.END else None
        is_news = self.visit(step, moment)
        if is_news and (self._was_let_go(grew, moment) or self._holders_went(walk)):
            self.last_look, self.last_walk, self.most_garbage = without_rested(look, step), walk, most
            return False
        if part is not None and self.last_look is not None and self.last_look is not look:
            lines = part.lines.difference(s.key for s in self.last_look.suspects)
            self.gone = dataclasses.replace(part, lines=lines) if lines else None
        return is_news

    def _holders_went(self, before: Walk | None) -> bool:
        """True if what the walk before met as held is garbage: its holders have gone with the loop."""
        if not self.resources.loop_has_ended or before is None or self.last_walk is None:
            return False
        return self.last_walk.has_lost(before)

    def let_go(self) -> None:
        """Lines and native blocks are followed no more; in the thread that was followed."""
        self.native_lines.end()
        self.native_samples.end()
        self.resources.segments.end()
        self._records.end()

    def _what_grew(self) -> tuple[list[Suspect], int]:
        """Suspects as of the last look and walk, and bytes of autograd nodes."""
        if self.last_look is None:
            return [], 0
        seen = self.last_walk.seen if self.last_walk is not None else ()
        members = [member for one in seen for member in one.entry.members]
        nodes = sum(member.bytes for member in members if member.key == AUTOGRAD_KEY)
        replaced = self.last_walk.crowds if self.last_walk is not None else ()
        held = {m.key for one in replaced for m in one.entry.members}
        crowds = (s for s in self.last_look.crowds if s.key in held)
        return [*self.last_look.suspects, *crowds, *self._heap.enlarged], nodes

    def _was_let_go(self, grew: tuple[list[Suspect], int], moment: Moment) -> bool:
        """True if most of what grew is no more: since the last look, or since the last steps of the loop."""
        suspects, nodes = grew
        if suspects:
            return are_gone(suspects, in_loop=moment is Moment.IN_LOOP)
        return nodes > 0 and self.resources.malloc_fell_by() > HALF * nodes

    def _begin_look(self, step: int, measured: int, moment: Moment) -> bool:
        with self._looks.taken(step, measured):
            least = self._least_news() if moment is Moment.IN_LOOP else 0.0
            may_scan = "python" in self._settings.media and self._objects.is_exact()
            scans = may_scan and self._objects.begin(least, self.resources.in_use_rises())
        if not scans:
            self._stage = Stage.RESTING
            with self._looks.going_on(self._walks):
                return self._look(step, measured, [], moment)
        self._stage = Stage.SCANNING
        return self._go_on(step, measured, moment)

    def _least_news(self) -> float:
        """Bytes a step that objects must make together to exceed the limit, with the native blocks."""
        suspects = self.last_look.suspects if self.last_look is not None else ()
        return max(0.0, self._settings.limit - sum(s.rate for s in suspects if s.key[0] == "block"))

    def _go_on(self, step: int, measured: int, moment: Moment) -> bool:
        with self._looks.going_on(self._walks):
            return self._scan(step, measured, moment)

    def _scan(self, step: int, measured: int, moment: Moment) -> bool:
        """The next slice of the scan; with the last one the look that it is for."""
        try:
            at_end = moment is not Moment.IN_LOOP
            if not self._objects.go_on(whole=at_end or self._settings.is_worker):
                return False
            self._stage = Stage.RESTING
            growing = self._objects.finish(step, tuple(self._epochs), at_end=at_end)
        except (LeakprobeError, MemoryError) as error:
            self._stage = Stage.RESTING
            self.look_error = f"at step {step}: {error or 'out of memory'}"
            return False
        return self._look(step, measured, growing, moment)

    # ---- a look ----

    def _look(self, step: int, measured: int, growing: list[Growing], moment: Moment) -> bool:
        """What grows as of this mark; True if there is news."""
        before = self.last_look
        if moment is Moment.IN_LOOP and self._was_let_go(self._what_grew(), moment):
            self._let_go = LetGo(step, before, self.last_walk)
        with _core.QuietCollector():  # no collection between look and walk: both must see the same garbage
            self.resources.before_look(step)
            self.account.read(step, self.resources.account_at)
            blocks = self._blocks.look(step, tuple(self._epochs))
            if "python" in self._settings.media:
                self._records.look(step, self._settings.limit)
            asked = [g for g in growing if g.judgement.verdict in ASKED]
            self._unsettled = self._unsettled_at(moment, growing)
            suspects = self._of_objects(asked)
            self.look_error = None
            crowds = tuple(crowds_among(self._blocks.large, self._settings.limit))
            wanted = Wanted(tuple(asked), tuple(blocks), crowds)
            walks = (depth := self._walk_due(step, wanted, moment)) is not Depth.NONE
            if walks:
                self._read_private()
                with self._walks.taken(step, measured):
                    suspects = self._walk(step, wanted, depth)
            open_bytes = max(self._objects.open_bytes, self._records.open_bytes)
            self.resources.look(step, self._heap.census_at(step), open_bytes)
            if not self.resources.was_let_go():
                self.native_samples.look(step, tuple(self._epochs))
            self._want_stacks([*asked, *(g for g in growing if g.is_kept_so_far)], blocks)
            self._want_lines(step)
            merged = _core.merged_epochs()
            found = tuple(sorted([*suspects, *blocks], key=lambda s: -s.rate))
            rows = before.sites if before is not None else ()
            if walks or moment is Moment.END:
                rows = self._largest(step, found, merged, moment)
            fastest, records = tuple(c.fastest for c in crowds), tuple(self._records.growing)
            settled, rising = self._records.settled, self._objects.rising
            self.last_look = Look(step, found, merged, rows, records, fastest, (), settled, rising)
            if moment is Moment.END or (walks and moment is Moment.EPOCH_END):
                self._ended_at = step
        return walks or before is None or {s.key for s in found} != {s.key for s in before.suspects}

    def _largest(
        self, step: int, found: tuple[Suspect, ...], merged: Ranges, moment: Moment
    ) -> Sequence[SiteOfLook]:
        census = self._heap.census_at(step)
        may_scan = not self._settings.is_worker and not self._only_walks_count()
        alive = sites.Alive(census, self._heap.top, may_scan and moment is Moment.END)
        return sites.largest(alive, found, step, merged, self._settings.media)

    def _unsettled_at(self, moment: Moment, growing: list[Growing]) -> list[Unsettled]:
        """As of this look; at the end, as of the one before, what has been let go of since."""
        judged = {*(("python", g.site) for g in growing), *self._blocks.judged, *self._records.judged}
        gone = [u for u in self._unsettled if u.line not in judged] if moment is Moment.END else []
        return [*self._objects.unsettled, *self._blocks.unsettled, *self._records.unsettled, *gone]

    def unsettled(self, verdict: Verdict) -> list[Unsettled]:
        """What is kept of this verdict as of the last look, by more than the limit of bytes a step."""
        least = self._settings.limit * max(1, self.step - self._warmup)
        return [u for u in self._unsettled if u.judgement.verdict is verdict and u.bytes > least]

    def _of_objects(self, asked: list[Growing]) -> list[Suspect]:
        """Sites by type as the last walk met them, and as many as there are now."""
        now = {g.site: g for g in asked}
        return [
            as_counted(s, now[s.site].history, now[s.site].judgement)
            for s in self._heap.suspects
            if s.site in now
        ]

    def _want_stacks(self, objects: list[Growing], blocks: list[Suspect]) -> None:
        """Ask for whole stacks of what grows, from now on: of objects before a walk, which may be late, and
        of those that may turn out to, as the next look may be the last.
        """
        suspects = (*blocks, *self._heap.suspects)
        lines = {site for record in self._records.growing for site in record.lines}
        for site in {*(g.site for g in objects), *(s.site for s in suspects), *lines}:
            _core.set_deep(site)

    def _want_lines(self, step: int) -> None:
        """Ask which line native memory and descriptors come from, once these rise."""
        native, pool = self.resources.native_rise(), self.resources.pool_rise()
        # before it is known how much of it is Python's: samples take a while
        rates = [rise.slope for rise in (native or self.resources.malloc_rise(), pool) if rise is not None]
        self.native_samples.want(step, sum(rates) if rates else None)
        if native is not None and not self.resources.may_fill_a_cache(native):  # a note needs no line
            self.native_lines.want("native", native.slope, native.first[0])
        for what, rise in (("fd", self.resources.rise_of("fd")), ("pool", pool)):
            if rise is not None:
                self.native_lines.want(what, rise.slope, rise.first[0])
        if "shared" in self._settings.media:
            self.resources.segments.follow()
        for what, rate in self.resources.segments_come_by().items():
            self.native_lines.want(what, rate)

    # ---- a walk ----

    def _read_private(self) -> None:
        """In a worker, before a walk: the kernel goes through all pages for it, so not at every mark."""
        if self._settings.is_worker:
            self._private_before_walk = _core.process_memory().get("private", 0)

    def take_private_before_walk(self) -> int | None:
        """Private bytes of a worker before the walk taken since the last call, or None if none was."""
        found, self._private_before_walk = self._private_before_walk, None
        return found

    def _walk_due(self, step: int, wanted: Wanted, moment: Moment) -> Depth:
        """Who keeps it, if something grows that only the heap can say more of; at the end if any rose."""
        for_malloc = self._malloc_may_hold_it(step, moment)
        reasons = (
            self._grows_enough(wanted),
            bool(self._records.growing),
            for_malloc,
            self._only_walks_count(),
            self._cycles_may_keep_it(step),
        )
        if moment is Moment.END and not any(reasons):  # a worker's copies pages, which only growth is worth
            had_any = bool(wanted) or self._malloc_rose is not None or self.last_walk is not None
            is_due = had_any and not self._settings.is_worker and self._walks.has_room()
            return Depth.CENSUS if is_due else Depth.NONE
        is_due = any(reasons)
        if is_due and moment is Moment.EPOCH_END:
            is_due = self._walks.can_spare(step)
        if is_due and moment is Moment.IN_LOOP:  # at the end once more, whatever was spent
            is_new = self._walked.is_new(wanted)
            is_wanted = self._walks.is_due_again(step) or not self._walked.is_met(wanted)
            is_wanted |= for_malloc and self.resources.wants_second(wanted.rate())
            is_due = (is_wanted and self._walks.is_due(step)) or (is_new and self._walks.can_spare(step))
        return Depth.HOLDERS if is_due else Depth.NONE

    def _grows_enough(self, wanted: Wanted) -> bool:
        """True if all that grows may add up to more than the limit, or what malloc holds does."""
        if wanted.rate() > self._settings.limit:
            return True
        if wanted.native and self.resources.counts_rise():
            return True
        return any(not g.is_size_known for g in wanted.objects) and self.resources.in_use_rises()

    def _malloc_may_hold_it(self, step: int, moment: Moment) -> bool:
        """True if malloc's bytes rise, as of looks far enough apart: of large objects that give way to larger
        ones, or of autograd nodes.
        """
        before, rises = self._malloc_rose, self._does_malloc_rise()
        self._malloc_rose = (step if before is None else before) if rises else None
        self._records.want(rises or self.resources.rises_on_average())
        if not rises or before is None:
            return False
        is_worth_it = self.resources.counts_rise() or self.resources.risen() >= LEAST_RISEN
        is_long = step - before >= MALLOC_SPREAD * (step - self._warmup)
        return moment is Moment.END or (is_worth_it and (is_long or moment is Moment.EPOCH_END))

    def _does_malloc_rise(self) -> bool:
        """True if a walk would tell more of it: which part is Python's, also where that is not watched."""
        if "python" not in self._settings.media:
            return self.resources.wants_full()
        return self.resources.wants_full() or self.resources.counts_rise() or self._graph_may_grow()

    def _cycles_may_keep_it(self, step: int) -> bool:
        """True if a first walk may meet garbage that keeps blocks; a worker's would copy pages for it."""
        return not self._settings.is_worker and self._cycles.keep(self._blocks.large, step)

    def _only_walks_count(self) -> bool:
        """True where deaths are not seen: what is alive is counted by walks, as often as their price
        allows.
        """
        return "python" in self._settings.media and not self._objects.is_exact()

    def _graph_may_grow(self) -> bool:
        return self.autograd_steps.is_known and self.resources.malloc_rises()

    def _walk(self, step: int, wanted: Wanted, depth: Depth) -> list[Suspect]:
        """The suspects by type, as the heap has them; who keeps them is remembered."""
        asked, blocks, crowds = list(wanted.objects), wanted.blocks, wanted.crowds
        suspects = self._of_objects(asked)
        try:
            if self._objects.is_exact():
                suspects = self._heap.confirm(step, asked, self._objects.followed, self._records)
            else:
                suspects = self._heap.count_all(step, tuple(self._epochs), self._records)
            if not self._settings.is_worker:
                self._heap_bytes = self._heap.heap_bytes()
            is_whole = depth is Depth.HOLDERS
            self._trace(step, [*suspects, *blocks] if is_whole else [], crowds if is_whole else ())
            self._walked.note(wanted, self.last_walk)
            self._cycles.walked(self.last_walk.garbage_bytes() if self.last_walk is not None else 0)
            self.walk_error = None
        except (LeakprobeError, MemoryError) as error:
            self.walk_error = str(error) or "out of memory"
            seen = tuple(map(without_holder, [*suspects, *blocks]))
            self.last_walk = Walk(step, seen, (), {}, 0, _core.QuietCollector.is_on_outside())
        return suspects

    def _trace(self, step: int, suspects: list[Suspect], crowds: Sequence[Crowd]) -> None:
        suspects = sorted(suspects, key=lambda s: -s.rate)[:TRACED_GROUPS]
        kept = [s for s in suspects if s.judgement.verdict is not Verdict.REPLACED]
        single = self._heap.enlarged if "python" in self._settings.media else []
        larger = [s for s in [*suspects, *single] if s.judgement.verdict is Verdict.REPLACED]
        merged = [*_core.merged_epochs(), *self.autograd_steps.merged()]
        known = {s.key for s in suspects}
        within = judged_steps(self._warmup, step)
        kept += [s for s in self._blocks.large if s.key not in known and s.has_survivors(within)]
        seen = self._seen(step, kept, merged) if kept or self._graph_may_grow() else ()
        enlarged = self.holders.enlarged(step, larger, merged) if larger else ()
        enlarged = tuple(s for s in enlarged if not self._tables.is_filled(s.entry, known))
        crowded = self.holders.crowded(step, crowds, merged) if crowds else ()
        self._tables.note(seen, known)
        self._note_holders(step, seen)
        frozen = gc.get_freeze_count() - self._frozen_before
        is_on = _core.QuietCollector.is_on_outside()
        self.last_walk = Walk(step, seen, enlarged, self._readings, frozen, is_on, crowded)
        most = self.most_garbage.garbage_bytes() if self.most_garbage is not None else 0
        if self.last_walk.garbage_bytes() > most:
            self.most_garbage = self.last_walk

    def _seen(self, step: int, suspects: list[Suspect], merged: Ranges) -> tuple[Seen, ...]:
        bases = {s.key: s.history for s in suspects}
        marks = self.autograd_steps.marks()
        grew_by = self.resources.grew_by()
        entries = self.holders.of(suspects, judged_steps(self._warmup, step), marks, grew_by)
        entries = tuple(map(as_in_the_loop, entries)) if self.resources.loop_has_ended else entries
        return tuple(Seen(entry, step, bases, tuple(merged)) for entry in entries)

    def _note_holders(self, step: int, seen: tuple[Seen, ...]) -> None:
        """Remember how long the holders are; an address that is no holder any more is forgotten."""
        kept: Readings = {}
        for now in filter(None, (reading_of(one.entry, step) for one in seen)):
            kept[now.address] = [*self._readings.get(now.address, [])[1 - KEPT_LENGTHS :], now]
        self._readings = kept


def without_holder(suspect: Suspect) -> Seen:
    """A suspect as an entry, where no walk could tell who keeps it."""
    return Seen(entry_without_holder(suspect), suspect.history.step, {suspect.key: suspect.history})
