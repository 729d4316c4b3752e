"""What a decider says of one site, and what it must look like to be measured."""

import dataclasses
import enum
from collections.abc import Callable

from benchmarks.rhythms.history import History


class Answer(enum.Enum):
    """The verdicts of the growth contract; the first two are findings."""

    LEAK = "leak"
    REPLACED = "replaced"
    BOUNDED = "bounded"
    FILLING = "filling"
    TURNOVER = "turnover"
    STOPPED = "stopped"
    WITHIN_EPOCH = "within an epoch"
    TOO_EARLY = "too early"


FOUND = frozenset({Answer.LEAK, Answer.REPLACED})


@dataclasses.dataclass(frozen=True)
class Verdict:
    """``kind`` and, of a finding, the step it began in, its rate since then, and how many findings it makes.

    ``statistics``: what the verdict rests on, for the curves; those of Decider.statistics that could be
    computed.
    """

    kind: Answer
    onset: int | None = None
    bytes_per_step: float = 0.0
    findings: int = 1
    statistics: dict[str, float] = dataclasses.field(default_factory=dict)


Decide = Callable[[History], Verdict]


@dataclasses.dataclass(frozen=True)
class Decider:
    """A way to tell growth from turnover.

    ``begin`` makes the function that is called with a site's history at rising marks; it may keep what it
    learns of this site.
    ``statistics``: name => 1 where growth has larger values, -1 where it has smaller ones.
    """

    name: str
    begin: Callable[[], Decide]
    statistics: dict[str, int] = dataclasses.field(default_factory=dict)
