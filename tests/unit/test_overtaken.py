"""Which verdicts of a walk a later look overtakes."""

import types

import histories as h
import pytest

from leakprobe.judge.entries import Seen
from leakprobe.judge.overtaken import is_open
from leakprobe.model.entry import Entry, Member
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
    assert is_open(seen_with(Judgement(verdict, "", 100, events=events))) == is_overtaken


@pytest.mark.parametrize(
    "line, is_overtaken",
    [
        ([(step, step + 8, 100) for step in range(1, 41)], True),
        (h.leak(40), False),  # others had kept it then
    ],
    ids=["all of it turned over", "only this holder's"],
)
def test_turnover_is_overtaken_where_it_was_that_of_the_whole_line(line, is_overtaken):
    turnover = Judgement(Verdict.TURNOVER, "", 40, events=LEAST_EVENTS)
    assert is_open(seen_with(turnover, h.history_of(line, 40))) == is_overtaken


def seen_with(judgement, line=None):
    """What a holder kept of a line, whose history is known or not."""
    member = Member(None, 0, "cpu", 70, 0, 8, 800, ((36, 8, 800),))
    bases = {member.key: line} if line is not None else {}
    return Seen(Entry("held", (member,)), 40, bases, judgement=judgement)


def test_what_was_not_judged_is_not_overtaken():
    assert not is_open(types.SimpleNamespace(judgement=None))
