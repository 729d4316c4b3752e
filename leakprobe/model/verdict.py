"""What the judge says of one entity."""

import dataclasses
import enum


class Verdict(str, enum.Enum):
    LEAK = "leak"
    BOUNDED = "bounded"
    FILLING = "filling"
    TURNOVER = "turnover"
    STOPPED = "stopped"
    WAITING = "waiting"
    WITHIN_EPOCH = "within_epoch"
    REPLACED = "replaced"
    TOO_EARLY = "too_early"


@dataclasses.dataclass(frozen=True, slots=True)
class Rate:
    """Growth a step, with the interval that holds it in 19 of 20 cases."""

    value: float
    low: float
    high: float


@dataclasses.dataclass(frozen=True, slots=True)
class Judgement:
    """One verdict and its reason in words; ``onset`` and the rates are None where nothing grows."""

    verdict: Verdict
    reason: str
    step: int
    onset: int | None = None
    bytes_per_step: Rate | None = None
    count_per_step: float | None = None
    peak: float | None = None
    foreseen: float | None = None
