"""What the judge says of one entity."""

import dataclasses
import enum


class Verdict(str, enum.Enum):
    """DESIGN's growth contract: LEAK, REPLACED and WITHIN_EPOCH are findings, the others notes or nothing."""

    LEAK = "leak"
    BOUNDED = "bounded"
    FILLING = "filling"
    TURNOVER = "turnover"
    STOPPED = "stopped"
    WAITING = "waiting"
    WITHIN_EPOCH = "within_epoch"
    REPLACED = "replaced"
    TOO_EARLY = "too_early"


#: Verdicts that make a finding.
FINDINGS = frozenset({Verdict.LEAK, Verdict.REPLACED, Verdict.WITHIN_EPOCH})


@dataclasses.dataclass(frozen=True, slots=True)
class Rate:
    """Growth a step, and the interval that holds it in 19 of 20 cases."""

    value: float
    low: float
    high: float

    def times(self, factor: float) -> "Rate":
        return Rate(self.value * factor, self.low * factor, self.high * factor)

    def plus(self, more: float) -> "Rate":
        """With so much beside it, which is known."""
        return Rate(self.value + more, self.low + more, self.high + more)


@dataclasses.dataclass(frozen=True, slots=True)
class Judgement:
    """One verdict and its reason in words; ``onset`` and the rates are None where nothing grows.

    ``events``: steps, or spans of them, with something that is kept; ``age``: the most steps that something
    which was freed had lived.  ``peak``: the most items there were; ``peak_rises``: epochs get longer, and
    their peaks with them (both of WITHIN_EPOCH).  ``foreseen``: the most there will be, as far as can be seen
    (FILLING, BOUNDED).
    """

    verdict: Verdict
    reason: str
    step: int
    onset: int | None = None
    bytes_per_step: Rate | None = None
    count_per_step: float | None = None
    peak: float | None = None
    peak_rises: bool = False
    foreseen: float | None = None
    events: int = 0
    age: float = 0

    @property
    def rate(self) -> float:
        """Bytes a step; 0 where nothing grows."""
        return self.bytes_per_step.value if self.bytes_per_step is not None else 0.0

    @property
    def peak_bytes(self) -> float:
        """Bytes of the most items there were; 0 where that is not known."""
        if self.peak is None or not self.count_per_step:
            return 0.0
        return self.peak * self.rate / self.count_per_step

    @property
    def is_finding(self) -> bool:
        return self.verdict in FINDINGS
