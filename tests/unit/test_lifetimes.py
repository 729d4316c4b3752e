"""Which references of a path are meant to be: the first that is not is underlined."""

import pytest

from leakprobe.judge.lifetimes import lifetimes, with_lifetimes
from leakprobe.model.entry import Entry, Holder, PathNode, rows_of
from leakprobe.model.finding import first_wrong

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
    assert first_wrong(rows_of(entry.path)) is None
    assert with_lifetimes(None, entry) is None
