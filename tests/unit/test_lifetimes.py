"""Which references of a path are meant to be: the first that is not is underlined."""

import dataclasses

import pytest

from leakprobe.judge.entries import Seen
from leakprobe.judge.findings import words_left, words_of_rhythm
from leakprobe.judge.lifetimes import lifetimes, with_lifetimes
from leakprobe.model.entry import Entry, Holder, Member, PathNode, rows_of
from leakprobe.model.finding import first_wrong
from leakprobe.model.verdict import Judgement, Verdict

MODULE = ("torch.nn.modules.module.Module",)
ROOT = PathNode("__main__", "module", "module")
TENSOR = PathNode("[0] Tensor", "index", "torch.Tensor", ("torch.Tensor",))
LIST = PathNode(".seen (list, 60 items)", "attribute", "list", ("list",))
NET = PathNode("net Net", "global", "__main__.Net", ("__main__.Net", *MODULE))
PARTS = PathNode("._modules (dict, 2 items)", "attribute", "dict", ("dict",))
LAYER = PathNode(
    "['fc'] Linear", "item", "torch.nn.modules.linear.Linear", ("torch.nn.modules.linear.Linear", *MODULE)
)
BAG = PathNode("bag Bag", "global", "__main__.Bag", ("__main__.Bag",))
OUTSIDE = PathNode("held outside Python", "outside", None)

#: path, place of the holder (None: none), kind, what each element is
PATHS = [
    ([ROOT, NET, PARTS, LAYER, LIST, TENSOR], 4, "held", "yes yes yes yes unknown no"),
    ([ROOT, BAG, LIST, TENSOR], 2, "held", "yes unknown unknown no"),
    (
        [ROOT, BAG, LIST, TENSOR, PathNode("buffer", "buffer", "buffer")],
        2,
        "held",
        "yes unknown unknown no no",
    ),
    ([ROOT, BAG, NET, LIST, TENSOR], 3, "held", "yes yes yes unknown no"),
    ([OUTSIDE, TENSOR], None, "lost", "unknown no"),
    ([PathNode("callbacks of atexit", "atexit", None), TENSOR], None, "outside", "yes no"),
    ([PathNode("handlers of signals", "signal", None), TENSOR], None, "outside", "yes no"),
    ([ROOT, BAG, TENSOR], None, "held", "yes unknown unknown"),
]


def entry_of(path, place, kind):
    holder = None if place is None else Holder(path[place].text, path[place].type, 60, None, 1, 0, 0, 0, 0, 0)
    return Entry(kind, (), path=tuple(path), holder=holder)


@pytest.mark.parametrize("path, place, kind, states", PATHS)
def test_what_is_meant_to_live(path, place, kind, states):
    found = lifetimes(entry_of(path, place, kind))
    assert " ".join(lives for lives, _ in found) == states
    assert all(why for _, why in found)


def test_rows_say_which_reference_should_not_be():
    entry = entry_of(PATHS[0][0], PATHS[0][1], "held")
    rows = with_lifetimes(rows_of(entry.path), entry)
    assert first_wrong(rows) == 5 and rows[5]["why"] == "each step leaves one more"
    rows = with_lifetimes(rows_of(entry.path), entry, "some steps leave one more")
    assert rows[5]["why"] == "some steps leave one more"
    assert first_wrong(rows_of(entry.path)) is None
    assert with_lifetimes(None, entry) is None


RHYTHMS = [
    (range(9, 80), "each step leaves one more"),
    ([step for step in range(9, 80) if step % 4], "each step leaves one more"),
    (range(9, 80, 17), "every 17 steps leave one more"),
    ([9, 12, 20, 21, 33, 35, 50], "some steps leave one more"),
    ([9], "each step leaves one more"),  # nothing is known of a rhythm
]


def seen_of(series):
    count = sum(count for _, count, _ in series)
    return Seen(Entry("held", (Member("list", 1, "python", 20, 0, count, 320 * count, series),)), 81)


@pytest.mark.parametrize("steps, words", RHYTHMS)
def test_how_often_one_more_is_left(steps, words):
    assert words_of_rhythm(seen_of([(step, 2, 640) for step in steps])) == words


def test_steps_that_are_known_together_tell_no_rhythm():
    seen = dataclasses.replace(seen_of([(step, 3, 300) for step in (20, 40, 60)]), merged=[(1, 20)])
    assert words_of_rhythm(seen) == "each step leaves one more"


def test_what_is_replaced_or_chained_is_not_one_more():
    seen = seen_of([(step, 1, 320) for step in range(9, 80)])
    assert words_left(seen, "graph_chain") == words_left(seen, "growing_chain")
    assert "link" in words_left(seen, "growing_chain")
    assert words_left(seen, "growing_container") == words_of_rhythm(seen)
    larger = Seen(seen.entry, 81, judgement=Judgement(Verdict.REPLACED, "", 81))
    assert words_left(larger, "growing_buffer") == "each step leaves a larger one"
