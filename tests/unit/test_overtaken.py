"""Which verdicts of a walk a later look overtakes."""

import types

import pytest

from leakprobe.judge.overtaken import is_open
from leakprobe.model.thresholds import LEAST_EVENTS
from leakprobe.model.verdict import Judgement, Verdict


@pytest.mark.parametrize(
    "verdict, events, is_overtaken",
    [
        (Verdict.TOO_EARLY, 3, True),
        (Verdict.STOPPED, 40, True),
        (Verdict.TURNOVER, LEAST_EVENTS - 1, True),  # a few births, while others of the line died
        (Verdict.TURNOVER, LEAST_EVENTS, False),
        (Verdict.BOUNDED, 3, False),
    ],
)
def test_turnover_of_a_few_births_is_overtaken_by_growth(verdict, events, is_overtaken):
    judgement = Judgement(verdict, "", 100, events=events)
    assert is_open(types.SimpleNamespace(judgement=judgement)) == is_overtaken


def test_what_was_not_judged_is_not_overtaken():
    assert not is_open(types.SimpleNamespace(judgement=None))
