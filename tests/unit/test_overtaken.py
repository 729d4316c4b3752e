"""Which verdicts of a walk a later look overtakes."""

import types

import histories as h
import pytest

from leakprobe.judge.entries import Seen
from leakprobe.judge.looks import Look, Suspect, Walk
from leakprobe.judge.overtaken import is_open, overtaken
from leakprobe.judge.verdicts import judge
from leakprobe.model.entry import Entry, Holder, Member
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


def holder_of(address, *counts, verdict=Verdict.TOO_EARLY):
    """A holder with so many blocks of the lines 70, 71..., as a walk met it at step 40."""
    members = tuple(
        Member(None, 0, "cpu", 70 + i, 0, count, 100 * count, ((20, count, 100 * count),))
        for i, count in enumerate(counts)
    )
    return Seen(
        Entry("held", members, holder=Holder("", "list", 9, None, address, 0, 0, 0, 0, 0)),
        40,
        judgement=Judgement(verdict, "", 40),
    )


def suspect_of(site):
    history = h.history_of(h.leak(200), 200)
    return Suspect(("block", "cpu", site), "cpu", None, history, judge(history), 200, 20_000, ())


@pytest.mark.parametrize(
    ("every", "holders"),
    [
        ([holder_of(1, 30, 10)], [1, 1]),
        ([holder_of(1, 30, 10), holder_of(1, 30, 10)], [1, 1]),  # met together with a part of it
        ([holder_of(1, 30, 10), holder_of(2, 1)], [1, 1]),
        ([holder_of(1, 10, 10), holder_of(2, 10)], [None, 1]),  # nobody has most of the first line
        ([holder_of(1, 30), holder_of(2, 0, 10)], [1, 2]),
        ([holder_of(1, 30, 10, verdict=Verdict.BOUNDED)], []),
        ([holder_of(1, 30)], [1]),  # the second line was not met
    ],
)
def test_each_line_has_the_holder_of_most_of_it(every, holders):
    walk = Walk(40, tuple(every), (), {}, 0, True)
    look = Look(200, (suspect_of(70), suspect_of(71)), ())
    found = overtaken(look, walk, every)
    assert [seen.entry.holder and seen.entry.holder.address for seen in found] == holders
    assert all(len(seen.entry.members) == 1 and seen.step == 200 for seen in found)
