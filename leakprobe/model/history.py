"""What is known of one thing that could grow: live counts by spans of steps, and who is alive by birth step.

Steps count from 0; *mark* m lies after m of them, so that an item of birth step b may be alive at marks b + 1
and later.
"""

import dataclasses

from leakprobe.model.thresholds import LAG

#: Survivors of some birth steps: (first step, last step, count, bytes).  Steps are whole, counts may be
#: totals' shares.
Row = tuple[float, float, float, float]


def judged_steps(warmup: int, step: int) -> range:
    """The birth steps whose survivors count at the mark ``step``: the newest are still in use."""
    return range(warmup, step - LAG)


@dataclasses.dataclass(frozen=True, slots=True)
class Spans:
    """The live count (or another total) at each mark since ``first``, folded.

    Span i covers marks first + i * width and on, the last one in part.  ``unread``: the numbers of those in
    which nothing was read, which have the value of the one before.
    """

    first: int
    width: int
    lows: tuple[float, ...]
    highs: tuple[float, ...]
    unread: frozenset[int] = frozenset()

    def mark_of(self, number: int) -> int:
        """The first mark of a span."""
        return self.first + number * self.width

    def since(self, mark: int) -> "Spans":
        """Those that begin at a mark or later, and the last one."""
        number = min(len(self.lows) - 1, -(-(mark - self.first) // self.width))
        if number <= 0:
            return self
        unread = frozenset(n - number for n in self.unread if n >= number)
        return Spans(self.mark_of(number), self.width, self.lows[number:], self.highs[number:], unread)


@dataclasses.dataclass(frozen=True, slots=True)
class Survivors:
    """Who is alive at the mark ``step``: rows of rising birth steps, apart."""

    step: int
    rows: tuple[Row, ...]

    @property
    def count(self) -> float:
        return sum(count for _, _, count, _ in self.rows)

    @property
    def bytes(self) -> float:
        return sum(size for *_, size in self.rows)

    def since(self, step: float) -> "Survivors":
        """Those that were born since then."""
        return dataclasses.replace(self, rows=tuple(row for row in self.rows if row[0] >= step))


@dataclasses.dataclass(frozen=True, slots=True)
class Facts:
    """What the holder of the growth says; None or the default where it was not asked."""

    bound: int | None = None  # most items it can have
    length: int | None = None  # items it has
    is_garbage: bool = False  # within no one's reach
    is_collectable: bool = True  # the collector can free it
    pins: bool = False  # it keeps more than the limit alive, and no collection came in the window
    has_graph: bool = False  # it is kept with the autograd graph that it came from
    carries_over: bool | None = None  # the enlarged block took over what the one before it had
    line: "Survivors | None" = None  # of a part: what its whole line keeps
    is_counted: bool = True  # births and deaths are seen; of autograd nodes only who is alive at a walk


@dataclasses.dataclass(frozen=True, slots=True)
class History:
    """One entity as of the mark ``step``; ``deaths`` counts what was freed, the warm-up with it (0 for a
    plain total).

    ``survivors`` and ``earlier`` (scans before it, rising) are there once it is suspected; a plain total has
    none.  ``age``: the most steps that something of it is known to have lived before it died, beside what
    these scans say; ``flight``: the most that it may wait for its step.  ``sizes``: (step, count, bytes) of
    what was alive at marks where bytes were read.  ``epochs``: the marks at which epochs ended.
    """

    step: int
    warmup: int
    live: float
    spans: Spans
    deaths: int = 0
    survivors: Survivors | None = None
    earlier: tuple[Survivors, ...] = ()
    sizes: tuple[tuple[int, float, float], ...] = ()
    epochs: tuple[int, ...] = ()
    facts: Facts = Facts()
    age: float = 0
    flight: float = 0

    @property
    def kept_bytes(self) -> float:
        """Of the survivors since the warm-up; 0 where none are known."""
        return self.survivors.since(self.warmup).bytes if self.survivors is not None else 0.0

    @property
    def scans(self) -> tuple[Survivors, ...]:
        """All scans, the oldest first."""
        return self.earlier if self.survivors is None else (*self.earlier, self.survivors)
