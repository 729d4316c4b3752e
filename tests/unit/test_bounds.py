"""Which holders bound themselves, and what the counts after the walk say of that."""

import collections
import dataclasses
import random

import histories as h
import pytest

from leakprobe.judge.bounded import believable, bound_of
from leakprobe.judge.entries import Seen
from leakprobe.judge.looks import HolderReading, Look, Suspect, Walk
from leakprobe.judge.verdicts import judge
from leakprobe.model.entry import Entry, Holder, Member, PathNode

KEY, ADDRESS = ("block", "cpu", 70), 4096


def walk_at(step, length):
    """A list whose length stays while its items are set, one in each step."""
    series = tuple((born, 1, 100) for born in range(step))
    member = Member(None, 0, "cpu", 70, 0, step, 100 * step, series)
    holder = Holder(f"rows (list, {length} items)", "list", length, None, ADDRESS, 0, 20, 0, 0, 0)
    seen = Seen(Entry("held", (member,), holder=holder), step, {KEY: h.history_of(h.leak(step), step)})
    return Walk(
        step,
        (seen,),
        (),
        {ADDRESS: [HolderReading(ADDRESS, n, length, count=n) for n in (step // 2, step)]},
        0,
        True,
    )


def look_at(step, until):
    """A look at which as many are alive as were made before ``until``."""
    items = h.leak(until)
    history = h.history_of(items, step)
    suspect = Suspect(KEY, "cpu", None, history, judge(history), min(step, until), 100 * until, ())
    return Look(step, (suspect,), (), ())


@pytest.mark.parametrize(("until", "is_believed"), [(110, True), (200, False)])
def test_a_list_that_seemed_full_is_not_once_its_line_has_gained_more_than_it_had_places(until, is_believed):
    walk = walk_at(100, 110)
    (seen,) = walk.seen
    assert bound_of(seen, walk.readings) == (100, 110)
    readings = believable(walk, look_at(200, until))
    assert (bound_of(seen, readings) is not None) == is_believed


def test_items_of_two_stamps_each_fill_as_many_places():
    """The line counts stamps, the list has places for objects."""
    walk, look = walk_at(100, 110), look_at(200, 200)
    (seen,), (suspect,) = walk.seen, look.suspects
    base, now = (h.history_of(sorted(2 * h.leak(steps)), steps) for steps in (100, 200))
    seen = dataclasses.replace(seen, bases={KEY: base})
    walk = dataclasses.replace(walk, seen=(seen,))
    look = dataclasses.replace(look, suspects=(dataclasses.replace(suspect, history=now),))
    assert bound_of(seen, believable(walk, look)) is None


def test_nothing_is_refuted_of_lines_that_are_suspected_no_more():
    walk = walk_at(100, 110)
    assert believable(walk, Look(200, (), (), ())) == walk.readings


LIST = ("object", 9, 50)


def list_of(items, step, grown_at, made=0):
    """What a walk at ``step`` says of a list of the items (birth, death, size), last enlarged at a step."""
    alive = collections.Counter(birth for birth, *_ in h.alive_at(items, step))
    series = tuple((birth, count, 100 * count) for birth, count in sorted(alive.items()))
    count = sum(alive.values())
    member = Member("Row", 9, "python", 50, 0, count, 100 * count, series)
    path = (PathNode("rows", "global", "list"), PathNode("[7] Row", "index", "Row"))
    holder = Holder("rows", "list", count, None, ADDRESS, 0, grown_at, 0, 0, made)
    seen = Seen(Entry("held", (member,), path, holder), step, {LIST: h.history_of(items, step)})
    return bound_of(seen, {ADDRESS: [HolderReading(ADDRESS, step, count, count=count)]})


def shuffled(step, born=16, popped=8):
    """A buffer that each step adds to, and takes fewer from, at random."""
    chance, items, buffer = random.Random(3), [], []
    for now in range(step):
        buffer += [now] * born
        for _ in range(popped):
            items.append((buffer.pop(chance.randrange(len(buffer))), now, 100))
    return [*items, *((birth, h.NEVER, 100) for birth in buffer)]


def appended_until_full(step, born=16, places=800):
    """A list that gets items until it has its places, then each in the place of the oldest."""
    births = [now for now in range(step) for _ in range(born)]
    return [
        (birth, births[i + places] if i + places < len(births) else h.NEVER, 100)
        for i, birth in enumerate(births)
    ]


@pytest.mark.parametrize("step", [110, 117, 125])
def test_a_list_that_is_appended_to_is_bounded_only_where_its_count_is_level(step):
    assert list_of(shuffled(step), step, grown_at=88) is None
    assert list_of(appended_until_full(step), step, grown_at=48) is not None


def test_a_list_that_was_made_with_its_places_fills_them():
    items = h.leak(60, since=20)
    assert list_of(items, 60, grown_at=20, made=20) is not None


@pytest.mark.parametrize(
    ("filled", "counts", "is_believed"),
    [((100, 200), (1000, 2000), True), ((100, 200), (1000, 3100), False), ((5, 200), (5, 3100), True)],
    ids=["ten in each place", "ever more in each", "too few to say"],
)
def test_places_that_get_ever_more_bound_nothing(filled, counts, is_believed):
    """Places of 400: the same list at two walks."""
    walk = walk_at(200, 400)
    readings = [HolderReading(ADDRESS, 100 * (i + 1), 400, filled[i], counts[i]) for i in range(2)]
    bound = bound_of(walk.seen[0], {ADDRESS: readings})
    assert bound == ((200, 400) if is_believed else None)


def test_chains_that_are_cut_lengthen_at_first_only():
    readings = [
        HolderReading(ADDRESS, step, 400, filled, filled * each)
        for step, filled, each in ((20, 100, 2), (80, 150, 4), (200, 200, 4))
    ]
    assert bound_of(walk_at(200, 400).seen[0], {ADDRESS: readings}) == (200, 400)


@pytest.mark.parametrize(("until", "is_believed"), [(190, True), (350, False)])
def test_a_place_has_room_for_as_many_as_the_others_have(until, is_believed):
    """Of 100 places 50 have two each, and 100 more have room."""
    walk = walk_at(100, 100)
    walk = dataclasses.replace(
        walk, readings={ADDRESS: [HolderReading(ADDRESS, n, 100, n // 2, n) for n in (50, 100)]}
    )
    assert (ADDRESS in believable(walk, look_at(400, until))) == is_believed
