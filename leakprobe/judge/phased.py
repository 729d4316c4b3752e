"""Findings of what grows in training, or in evaluations, only: their rates, and a sentence that says so."""

import dataclasses
from collections.abc import Iterable, Mapping

from leakprobe.evidence.phases import Births, Own, Phases
from leakprobe.judge.looks import Look, Suspect
from leakprobe.model.finding import Finding
from leakprobe.model.thresholds import LITTLE
from leakprobe.model.units import COUNT_DIGITS


def in_own_steps(
    findings: Iterable[Finding], births: Mapping[str, Births], phases: Phases | None, step: int
) -> list[Finding]:
    """The findings, the fastest first, with rates per step of training, or per batch of evaluations, where
    they grow in these alone; ``births``: by fingerprint; ``step``: that of the report.
    """
    told = [per_own_step(f, births.get(f.fingerprint), phases, step) for f in findings]
    return sorted(told, key=lambda f: (-f.bytes_per_step, f.fingerprint))


def per_own_step(finding: Finding, births: Births | None, phases: Phases | None, step: int) -> Finding:
    own = own_of(births, finding.onset_step, phases, step)
    if own is None:
        return finding
    return dataclasses.replace(
        finding,
        bytes_per_step=round(finding.bytes_per_step * own.factor, 1),
        count_per_step=round(finding.count_per_step * own.factor, COUNT_DIGITS),
        evidence=f"{finding.evidence}; {words_of(own)}",
    )


def own_rate(suspect: Suspect, look: Look, phases: Phases | None) -> float:
    """Bytes per step of training, or per batch of evaluations, where a line's grows in these alone, else a
    step.
    """
    own = own_of(
        Births(suspect.series, (*look.merged, *suspect.folded)), suspect.judgement.onset, phases, look.step
    )
    return suspect.rate * (own.factor if own is not None else 1)


def own_of(births: Births | None, onset: int | None, phases: Phases | None, step: int) -> Own | None:
    """None too where that changes little."""
    own = phases.own(births, onset, step) if births and phases and onset is not None else None
    return own if own is not None and abs(own.factor - 1) > LITTLE else None


def words_of(own: Own) -> str:
    if own.is_evaluation:
        return (
            "it grows in evaluations only, and the rate is per batch of these, of which "
            f"{own.events:,} came since"
        )
    return (
        f"it grows in training only, and the rate is per step of the optimizer, of which {own.events:,} came "
        f"since: the others of {own.steps:,} steps were batches of evaluations"
    )
