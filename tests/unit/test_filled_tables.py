"""A container's own table gets larger by its items: where these grow no more, it is only laid out anew."""

from leakprobe.judge.entries import Seen
from leakprobe.model.entry import Entry, Holder, Member
from leakprobe.watch.tables import Tables

ITEMS, OTHERS = ("object", 7, 40), ("object", 7, 41)


def member(key):
    _, type_id, site = key
    return Member("tuple", type_id, "python", site, 0, 3, 300, ((1, 1, 100), (2, 1, 100), (3, 1, 100)))


def holder(address):
    return Holder("known (dict, 3 items)", "dict", 3, None, address, 0, 0, 0, 0, 0)


def kept_in(address, *keys):
    return Seen(Entry("held", tuple(map(member, keys)), holder=holder(address)), 10, {})


def table(address):
    return Entry("held", (member(("object", 9, 50)),), address=address)


def test_a_table_whose_items_grow_no_more_is_filled():
    tables = Tables()
    tables.note([kept_in(0x1000, ITEMS)], {ITEMS})
    assert not tables.is_filled(table(0x1000), {ITEMS})
    assert tables.is_filled(table(0x1000), {OTHERS})
    tables.note([], set())
    assert tables.is_filled(table(0x1000), set())


def test_of_a_table_whose_items_were_never_met_growing_nothing_is_said():
    tables = Tables()
    tables.note([kept_in(0x1000, ITEMS)], {OTHERS})
    assert not tables.is_filled(table(0x1000), set())
    assert not tables.is_filled(table(0x2000), set())


def test_one_line_of_several_that_still_grows_is_enough():
    tables = Tables()
    tables.note([kept_in(0x1000, ITEMS, OTHERS)], {ITEMS, OTHERS})
    assert not tables.is_filled(table(0x1000), {OTHERS})
