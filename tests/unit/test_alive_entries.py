"""Which entries of an older walk a later look still vouches for."""

import pytest

from leakprobe.judge.entries import AUTOGRAD_KEY, Seen
from leakprobe.judge.findings import is_alive
from leakprobe.model.entry import Entry, Member

LOSSES, NODES = ("block", "cpu", 71), AUTOGRAD_KEY
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
