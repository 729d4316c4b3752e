"""Which entries of an older walk a later look still vouches for."""

import dataclasses

import pytest

from leakprobe.judge.entries import AUTOGRAD_KEY, Seen
from leakprobe.judge.findings import is_alive, stopped
from leakprobe.judge.looks import Look
from leakprobe.model.entry import Entry, Holder, Member, PathNode
from leakprobe.model.verdict import Judgement, Verdict

LOSSES, BUFFERS, NODES = ("block", "cpu", 71), ("block", "numpy", 72), AUTOGRAD_KEY
ALWAYS = {AUTOGRAD_KEY}  # no look can count nodes


def member(key):
    _kind, medium, site = key
    return Member(None, 0, medium, site, 0, 12, 1200, [(step, 1, 100) for step in range(6, 18)])


def seen(*keys, kind="held", suspects=()):
    return Seen(Entry(kind, tuple(map(member, keys))), 19, dict.fromkeys(suspects))


@pytest.mark.parametrize(
    ("entry", "grows", "alive"),
    [
        (seen(LOSSES, NODES, suspects=[LOSSES]), [LOSSES], True),
        (seen(LOSSES, NODES, suspects=[LOSSES]), [], False),  # the nodes went with the losses
        (seen(LOSSES, NODES), [], True),  # what came with the nodes was never suspected: it tells nothing
        (seen(NODES), [], True),
        (seen(LOSSES, suspects=[LOSSES]), [], False),
        (seen(LOSSES, suspects=[LOSSES], kind="garbage"), [], True),
    ],
)
def test_what_a_later_look_says_of_an_entry(entry, grows, alive):
    assert is_alive(entry, {*ALWAYS, *grows}) is alive


HEADS = ("object", 9, 73)


@pytest.mark.parametrize(("rising", "alive"), [({73}, True), (set(), False)], ids=["few bytes", "emptied"])
def test_items_whose_line_makes_few_bytes_are_no_emptied_holder(rising, alive):
    """A list of small objects, each with a large buffer: the look suspects the line of the buffers only."""
    path = (PathNode(".heads (list, 9 items)", "attribute", "list"), PathNode("[3] Head", "index", "Head"))
    heads = Member("Head", 9, "python", 73, 0, 12, 720, ((6, 12, 720),))
    holder = Holder(path[0].text, "list", 9, None, 1, 0, 0, 0, 0, 0)
    entry = Entry("held", (heads, member(BUFFERS)), path, holder)
    assert is_alive(Seen(entry, 19, dict.fromkeys((HEADS, BUFFERS))), {BUFFERS}, rising) is alive


@pytest.mark.parametrize(
    ("known", "rested", "rests"),
    [
        (set(), (LOSSES,), True),
        (set(), (BUFFERS,), True),  # the rest had stopped by the look before
        ({BUFFERS}, (), False),
        ({LOSSES}, (BUFFERS,), True),  # what it is about
        ({BUFFERS}, (LOSSES,), False),
        (set(), (), False),  # of the walk's own mark
    ],
)
def test_what_has_rested_since_is_no_growth(known, rested, rests):
    growing = Judgement(Verdict.LEAK, "", 19, 6)
    entry = dataclasses.replace(seen(LOSSES, BUFFERS, suspects=[LOSSES, BUFFERS]), judgement=growing)
    found = stopped(entry, Look(19, (), (), rested=rested), {*ALWAYS, *known})
    assert (found.judgement.verdict is Verdict.STOPPED) is rests
