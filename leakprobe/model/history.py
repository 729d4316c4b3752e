"""What is known of one thing that could grow: live counts by spans of steps, and who is alive by birth step.

Steps count from 0; *mark* m lies after m of them, so that an item of birth step b may be alive at marks b + 1 and later.
"""

import dataclasses

#: The newest so many birth steps are never judged: a batch and the one fetched ahead of it are still in use.
LAG = 2


@dataclasses.dataclass(frozen=True, slots=True)
class Spans:
    """The live count at each mark since ``first``, folded: span i covers marks first + i * width and on, the last one in part.

    ``births`` may be empty where births are not counted (totals of the process).
    """

    first: int
    width: int
    lows: tuple[float, ...]
    highs: tuple[float, ...]
    births: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Survivors:
    """Who is alive at the mark ``step``: rows (first birth step, last birth step, count, bytes), rising."""

    step: int
    rows: tuple[tuple[int, int, int, float], ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Facts:
    """What the holder of the growth says about it; None where it was not asked."""

    bound: int | None = None  # most items it can have
    length: int | None = None  # items it has
    is_garbage: bool = False  # in no reach: waits for the collector
    is_collectable: bool = True  # the collector may free it
    was_collected: bool = False  # a collection came in the window
    carries_over: bool | None = None  # the enlarged block took over what the one before it had


@dataclasses.dataclass(frozen=True, slots=True)
class History:
    """One entity as of the mark ``step``.

    ``survivors`` and ``earlier`` (rising steps, from the scans taken before) are there once it is suspected.  ``sizes``: (step, count,
    bytes) of what was alive at marks where bytes were read.  ``epochs``: the marks at which epochs ended.
    """

    step: int
    warmup: int
    live: float
    spans: Spans
    survivors: Survivors | None = None
    earlier: tuple[Survivors, ...] = ()
    sizes: tuple[tuple[int, int, float], ...] = ()
    epochs: tuple[int, ...] = ()
    facts: Facts = Facts()
