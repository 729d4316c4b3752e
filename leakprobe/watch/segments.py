"""Segments of shared memory, as far as they are this process's: those that it maps or has open, and files of
/dev/shm that it was seen to make.

A file in /dev/shm does not say who made it, and other processes of the same user make some too.  Once such
files come, whoever makes them, those made here are noted as they are made, with their lines.
"""

import time

from leakprobe import _core
from leakprobe.evidence.series import Series
from leakprobe.judge.rises import Rise, rise_since
from leakprobe.model.bounds import LISTING_ALLOWANCE_S, LOOK_STEPS, PATIENCE, TABLES_SHARE, TABLES_STRETCH
from leakprobe.model.budget import Budget
from leakprobe.model.frames import FIRST_SITE
from leakprobe.model.thresholds import HALF, LEAST_COUNT


class Segments:
    """The series of one watch, read where the tables of the process are."""

    def __init__(self, warmup: int) -> None:
        self._warmup = warmup
        self._wall_began = int(time.time())
        self.listings, self._next = Budget(LISTING_ALLOWANCE_S, TABLES_SHARE), 0
        self._changes_with: tuple[int, ...] = ()  # as of the last listing
        self._listed: _core.Segments | None = None
        self._follows, self._has_followed, self._idle_looks = False, False, 0
        self._is_current = False  # what was listed last is so still
        self._bytes_before: int | None = None  # as of the first listing
        self._files: int | None = None  # of /dev/shm, whoever made them, as of the last look
        #: All of this process's, without those in which torch keeps storages: these are blocks.
        self.count, self.bytes = Series(), Series()
        self.held = Series()  # of these, what it maps or has open
        self.named, self.closed = Series(), Series()  # made here: with a name alone, without a handle
        self.others = Series()  # files that it was not seen to make
        self.on_machine = Series()  # files and segments of the machine, by the kernel's totals

    def serieses(self) -> list[Series]:
        return [value for value in vars(self).values() if isinstance(value, Series)]

    def read(self, step: int, descriptors: int) -> None:
        """Take the counts; files are listed again only where the kernel's totals or the descriptors have
        changed, at growing distances, and where that is affordable.
        """
        totals = _core.shared_memory()
        now = (*totals, descriptors)
        self.on_machine.add(step, totals[0])
        is_known = now == self._changes_with
        self._is_current = is_known or (step >= self._next and self.listings.has())
        if not self._is_current:
            return
        if not is_known:
            self._next = step + max(LOOK_STEPS, int(TABLES_STRETCH * (step - self._warmup)))
            with self.listings.charged():
                self._changes_with, self._listed = now, _core.segments(self._wall_began)
        found = self._listed
        if found is None:
            return
        torch = _core.ledger_totals().get("shared", {"live_count": 0, "live_bytes": 0})
        self.count.add(step, max(0, found["own"] + found["named"] - torch["live_count"]))
        size = max(0, found["own_bytes"] + found["named_bytes"] - torch["live_bytes"])
        self.bytes.add(step, size)
        self._bytes_before = size if self._bytes_before is None else self._bytes_before
        self.held.add(step, max(0, found["own"] - torch["live_count"]))
        self.named.add(step, found["named"])
        self.closed.add(step, found["closed"])
        self.others.add(step, found["others"])

    def follow(self) -> None:
        """At a look: note who makes files of /dev/shm once some have come since the look before; no more some
        looks after that at which there were as many as before.  One whose listing was put off tells nothing.
        """
        files, before = self.others.last + self.named.last, self._files
        self._files = files
        if files != before:
            self._idle_looks = 0
        elif self._is_current:
            self._idle_looks += 1
        if before is not None and files > before:
            self._begin()
        elif self._follows and self._idle_looks > PATIENCE:
            self.end()

    def _begin(self) -> None:
        """Note what is made from now on; count from now on too, as files were missing so far, unless held
        memory grows.
        """
        is_first, self._follows = not self._has_followed, _core.follow_names(True)
        self._has_followed = self._has_followed or self._follows
        if is_first and rise_since(self.held, self._warmup, LEAST_COUNT) is None:
            self.count, self.bytes = Series(), Series()

    def end(self) -> None:
        """Put the slots back; what was noted stays."""
        if self._follows:
            self._follows = _core.follow_names(False)

    def others_rise(self) -> Rise | None:
        """The steady rise of files of this user that this process was not seen to make."""
        return rise_since(self.others, self._warmup, LEAST_COUNT)

    def bytes_since(self) -> int:
        """Bytes that are there now beyond those before the watch."""
        return max(0, self.bytes.last - (self._bytes_before or 0))

    def unlisted_rise(self) -> Rise | None:
        """The steady rise of the machine's files and segments, where they could not be listed of late."""
        return None if self._is_current else rise_since(self.on_machine, self._warmup, LEAST_COUNT)

    def line(self) -> tuple[int, int] | None:
        """(site, files) of the line that made most of this process's segments, where it was seen; or None."""
        lines = self._listed["lines"] if self._listed is not None else {}
        site = max(lines, key=lambda site: lines[site], default=0)
        if site < FIRST_SITE or lines[site] <= HALF * gained(self.count):
            return None
        _core.set_deep(site)
        return site, lines[site]

    def have_outlived_handles(self) -> bool:
        """True if most of the segments that came have neither a mapping nor a descriptor any more."""
        return gained(self.closed) > HALF * gained(self.count)


def gained(series: Series) -> int:
    """The last value without the first."""
    return series.last - series.points[0][1] if series.points else 0
