"""Blocks that seem to give way to larger ones, where too few readings met them for a verdict."""

from leakprobe.judge.enlargement import carries_over
from leakprobe.judge.entries import stack_of
from leakprobe.judge.looks import Unsettled
from leakprobe.judge.verdicts import rise_of_few
from leakprobe.model.history import History
from leakprobe.model.verdict import Judgement, Verdict


def unsettled_enlargement(medium: str, site: int, history: History) -> Unsettled | None:
    """What the line has added since the warm-up, if each reading met more, and it makes its blocks of those
    that they replace.
    """
    rate = rise_of_few(history)
    if rate is None or not (history.facts.carries_over or carries_over(stack_of(site))):
        return None
    size = round(rate * (history.step - history.warmup))
    early = Judgement(Verdict.TOO_EARLY, "", history.step)
    return Unsettled(medium, site, history.step, size, early, readings=len(history.sizes))
