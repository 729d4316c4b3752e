"""Copy-on-access: memory of the dataset that forked workers copy by reading it, seen from the parent.

A worker that reads an object writes its reference count, and the kernel copies the page.  Once a worker's
page faults rise, the parent walks its own dataset, whose objects lie at the same addresses in the worker, and
counts in the worker's pagemap which of these pages are no longer shared.  The workers are not touched.
"""

import contextlib
import dataclasses
import math
import os
import weakref
from typing import Any

from leakprobe import _core
from leakprobe.errors import LeakprobeError
from leakprobe.evidence.series import every_second
from leakprobe.model.bounds import (
    COPIES_ALLOWANCE_S,
    COPIES_SHARE,
    COPIES_STRETCH,
    MOST_POINTS,
    TRIES,
    WALK_FROM_FAULTS,
)
from leakprobe.model.budget import Budget
from leakprobe.model.facts import MINOR_FAULTS, PAGE_BYTES
from leakprobe.model.thresholds import (
    ACTIVE_SHARE,
    BATCHES_AT_REST,
    BY_COLLECTION,
    HALF,
    LEAST_PAGES,
    LEVEL,
)
from leakprobe.torch.board import Board, Collection
from leakprobe.torch.datasets import Attribute, DatasetWalk


@dataclasses.dataclass
class Sample:
    """The pages of one attribute in one worker, read while no collection was copying them."""

    step: int
    batches: int
    faults: int  # of the worker before the pages were read
    faults_after: int
    private: int
    tracked_private: int
    types: list[_core.Pages]  # by the bit of the type


class Followed:
    """One attribute of the dataset in the workers of one set."""

    def __init__(self, attribute: Attribute, walk: DatasetWalk):
        self.attribute, self.walk = attribute, walk
        self.samples: dict[int, list[Sample]] = {}  # worker -> samples
        self.collections: dict[int, Collection] = {}  # worker -> the one that copied most
        self.tracked_pages = 0

    def read(self, slot: int, pid: int, step: int, board: Board) -> bool:
        """Add a sample if the worker can be read; False where a collection was copying meanwhile."""
        most, posting, faults = board.read_collection(slot), board.read_counts(slot), page_faults(pid)
        found, faults_after = self.walk.reach.copied(self.attribute.region, pid), page_faults(pid)
        if found is None or not found["present"] or faults is None or faults_after is None:
            return True
        began = board.running_since(slot)
        is_copying = began is not None and faults_after - began >= LEAST_PAGES
        if is_copying or board.read_collection(slot) != most:
            return False
        self.collections[slot] = most
        self.tracked_pages = found["tracked_pages"]
        rows = self.samples.setdefault(slot, [])
        private, tracked = found["private"], found["tracked_private"]
        rows.append(Sample(step, posting.batches, faults, faults_after, private, tracked, found["types"]))
        if len(rows) > MOST_POINTS:
            self.samples[slot] = every_second(rows)
        return True

    def private_bytes(self, slot: int) -> int:
        return self.samples[slot][-1].private * PAGE_BYTES

    def touched_pages(self, slot: int) -> int:
        """Pages that hold a type of which a good part has been copied: those that reading goes on to copy."""
        rows = self.samples[slot][-1].types
        pages, private = max(rows, key=lambda row: row[1], default=(0, 0))
        if private == 0:
            return self.attribute.pages
        least = ACTIVE_SHARE * private / pages
        kinds = sum(1 << n for n, (pages, private) in enumerate(rows) if pages and private >= least * pages)
        return self.walk.reach.pages_with(self.attribute.region, kinds)

    def end_bytes(self, slot: int, batches_in_all: int | None, workers: int, persistent: bool) -> int:
        """What the worker will have copied of it in the end.

        Of a fraction x of the items read, in random order, 1 - (1 - x)^c of the pages are touched where a
        page has c items; read in order, x of them.  c is taken from what was measured so far, then x is set
        to what the worker will have read: its part of an epoch, or everything where it lives on and the order
        is random.
        """
        sample, pages = self.samples[slot][-1], self.touched_pages(slot)
        share = min(1.0, sample.private / pages) if pages else 0.0
        if not batches_in_all or share >= 1 - LEVEL or not sample.batches or workers <= 1:
            return pages * PAGE_BYTES
        part, read = 1 / workers, sample.batches / batches_in_all
        if read >= part and not persistent:
            return sample.private * PAGE_BYTES
        items_a_page = math.log(1 - share) / log_unread(part, read)
        if persistent and items_a_page > 1 + HALF:  # at random: in order it is 1
            return pages * PAGE_BYTES
        touched: float = pages * (1 - (1 - part) ** items_a_page)
        return max(sample.private, round(touched)) * PAGE_BYTES

    def rate(self, slot: int) -> float:
        """Bytes copied per batch of this worker, since it began; of one that has stopped, until it
        stopped.
        """
        rows = self.samples[slot]
        end = next(row for row in rows if row.private >= (1 - LEVEL) * rows[-1].private)
        return rows[-1].private * PAGE_BYTES / max(1, end.batches)

    def has_long_stopped(self, slot: int) -> bool:
        """True if nothing is left to copy, or nothing more was copied over more than half of the batches
        seen.
        """
        rows = self.samples[slot]
        if rows[-1].private >= (1 - LEVEL) * self.touched_pages(slot):
            return True
        end = next(row for row in rows if row.private >= (1 - LEVEL) * rows[-1].private)
        return HALF * (rows[-1].batches - BATCHES_AT_REST) > end.batches

    def by_collection(self, slot: int) -> bool:
        """True if one collection must have copied most of it.

        A collection writes to every page with containers on it.  So it copied all of these pages that reading
        had not, if it copied that many at all.
        """
        last, most = self.samples[slot][-1], self.collections[slot]
        least = BY_COLLECTION * max(LEAST_PAGES, self.tracked_pages)
        copied = self.tracked_pages - self.most_read_before(slot, most)
        return min(copied, most.copied, last.tracked_private) >= least and copied >= HALF * last.private

    def most_read_before(self, slot: int, most: Collection) -> float:
        """The most pages with containers that reading may have copied before a collection began.

        Since a sample each page was a fault; and reading copies no faster than it did before the sample: in
        order as fast, at random slower.
        """
        bounds: list[float] = [most.faults - most.first_faults]
        for row in self.samples[slot]:
            if row.faults_after <= most.faults:
                by_faults = most.faults - row.faults
                by_reading = row.tracked_private * max(0, most.batches - row.batches) / max(1, row.batches)
                bounds.append(row.tracked_private + min(by_faults, by_reading))
        return min(bounds)


def log_unread(part: float, read: float) -> float:
    """The logarithm of the fraction of the items that a worker has not read in ``read`` epochs' batches, of
    which it is sent a ``part`` of each epoch, at random: an epoch has each item once, the next one anew.
    """
    whole = math.floor(read / part)
    return whole * math.log(1 - part) + math.log(1 - (read - whole * part))


class _State:
    """How far a set has been followed."""

    def __init__(self) -> None:
        self.next_step, self.turn, self.unreadable = 0, 0, 0
        self.first: dict[int, int] = {}  # worker -> its page faults when first seen
        self.followed: list[Followed] | None = None


class Copies:
    """What the workers of one watch have copied; one object per watch."""

    def __init__(self) -> None:
        self._budget = Budget(COPIES_ALLOWANCE_S, COPIES_SHARE)
        self._walking = Budget(math.inf, 0.0)  # walks, which are paid for once, outside of it
        self._walks: list[tuple[weakref.ref[Any], DatasetWalk]] = []  # a dataset and its walk
        self.of_set: weakref.WeakKeyDictionary[Any, _State] = weakref.WeakKeyDictionary()
        self.why_not: str | None = None

    def visit(self, workers: Any, step: int) -> bool:
        """At a mark: look at one worker of a set, if it is due and there is time; True if pages were
        counted.
        """
        if workers.start_method != "fork" or not workers.pids or self.why_not:
            return False
        state = self.of_set.setdefault(workers, _State())
        if step < state.next_step or not self._budget.has():
            return False
        state.next_step = step + max(1, int((step - workers.first_step) * COPIES_STRETCH))
        try:
            with self._budget.charged(self._walking):
                self._look(workers, state, step)
        except (LeakprobeError, OSError) as error:
            self.why_not = str(error)
        return bool(state.followed)

    def _look(self, workers: Any, state: _State, step: int) -> None:
        slot = state.turn % workers.count
        state.turn += 1
        pid = workers.pids[slot]
        if state.followed is None:
            faults = page_faults(pid)
            if faults is None or (faults >= WALK_FROM_FAULTS and not _core.process_memory_of(pid)):
                self._note_unreadable(workers, state, pid)
                return
            if faults - state.first.setdefault(slot, faults) < WALK_FROM_FAULTS:
                return
            state.followed = self._follow(workers)
        if not all(followed.read(slot, pid, step, workers.board) for followed in state.followed):
            state.turn, state.next_step = state.turn - 1, step + 1

    def _note_unreadable(self, workers: Any, state: _State, pid: int) -> None:
        """A worker that has ended can't be read either."""
        try:
            os.kill(pid, 0)
        except OSError:
            return
        state.unreadable += 1
        if state.unreadable > TRIES * workers.count:
            self.why_not = "what the kernel says of the workers' memory (/proc) can't be read"

    def _follow(self, workers: Any) -> list[Followed]:
        """The attributes of the set's dataset that are worth following; it is walked once."""
        iterator = workers.iterator()
        dataset = getattr(iterator, "_dataset", None)
        if dataset is None:
            return []
        self._walks = [row for row in self._walks if row[0]() is not None]
        walk = next((w for ref, w in self._walks if ref() is dataset), None)
        if walk is None:
            with self._walking.charged():
                walk = DatasetWalk(dataset)
            with contextlib.suppress(TypeError):
                self._walks.append((weakref.ref(dataset), walk))
        return [Followed(a, walk) for a in walk.attributes if a.pages >= LEAST_PAGES]


def page_faults(pid: int) -> int | None:
    """Page faults of a process that needed no disk, so far; None where that can't be read.  Costs no walk of
    pages.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[-1].split()[MINOR_FAULTS])
    except (OSError, ValueError, IndexError):
        return None
