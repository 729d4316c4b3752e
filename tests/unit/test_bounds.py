"""Which holders bound themselves, and what the counts after the walk say of that."""

import histories as h
import pytest

from leakprobe.judge.entries import Seen
from leakprobe.judge.holders import believable, bound_of
from leakprobe.judge.looks import Look, Suspect, Walk
from leakprobe.judge.verdicts import judge
from leakprobe.model.entry import Entry, Holder, Member

KEY, ADDRESS = ("block", "cpu", 70), 4096


def walk_at(step, length):
    """A list whose length stays while its items are set, one in each step."""
    series = tuple((born, 1, 100) for born in range(step))
    member = Member(None, 0, "cpu", 70, 0, step, 100 * step, series)
    holder = Holder(f"rows (list, {length} items)", "list", length, None, ADDRESS, 0, 20, 0, 0, 0)
    seen = Seen(Entry("held", (member,), holder=holder), step, {KEY: h.history_of(h.leak(step), step)})
    return Walk(step, (seen,), (), {ADDRESS: [(step // 2, length), (step, length)]}, 0, True)


def look_at(step, until):
    """A look at which as many are alive as were made before ``until``."""
    items = h.leak(until)
    history = h.history_of(items, step)
    suspect = Suspect(KEY, "cpu", None, history, judge(history), min(step, until), 100 * until, ())
    return Look(step, (suspect,), (), ())


@pytest.mark.parametrize(("until", "is_believed"), [(110, True), (200, False)])
def test_a_list_that_seemed_full_is_not_once_its_line_has_gained_more_than_it_had_places(until, is_believed):
    walk = walk_at(100, 110)
    entry = walk.seen[0].entry
    assert bound_of(entry, walk.lengths) == (100, 110)
    lengths = believable(walk, look_at(200, until))
    assert (bound_of(entry, lengths) is not None) == is_believed


def test_nothing_is_refuted_of_lines_that_are_suspected_no_more():
    walk = walk_at(100, 110)
    assert believable(walk, Look(200, (), (), ())) == walk.lengths
