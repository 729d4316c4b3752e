"""When a look must be a full census: not again and again for blocks that a known table adds at the same rate."""

import time
import types

import pytest

from leakprobe.analysis import growth, suspects
from leakprobe.analysis.resources import Series

TABLE, OTHER = 7, 8  # sites


@pytest.fixture
def looked(monkeypatch):
    """The suspects of a watch that looked once, at step 10, while each step added ten blocks; ``clock[0]`` is the time."""
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(suspects, "is_of_known_table", lambda site: site == TABLE)
    made = suspects.Suspects(5, frozenset({"python"}), 256.0, 0)
    made.last_look = suspects.Look(10, growth.window_at(10, 5), [], [])
    made._unexplained, made._harmless_rise, made.clock = [(10, 500)], 10.0, clock
    set_rise(made, 10)
    return made


def set_rise(made, each):
    made.resources.blocks = Series([(step, each * step) for step in range(12, 20)])


def row(site, count):
    return ("tuple", 1, site, count, 0, count)


def test_one_full_look_is_enough_where_a_known_table_makes_most_of_the_rise(looked):
    looked._note_what_was_met([row(TABLE, 6), row(OTHER, 3)], enough=5.0)
    assert not looked._full_is_needed(20)
    looked._note_what_was_met([row(TABLE, 3), row(OTHER, 6)], enough=5.0)
    assert looked._full_is_needed(20)


def test_where_objects_make_the_rise_two_full_looks_are_compared_else_three(looked):
    for met, compared in ((9, 2), (1, 3)):
        looked._unexplained = []
        looked._note_what_was_met([row(OTHER, met)], enough=5.0)
        needed = []
        for number in range(4):
            needed.append(looked._full_is_needed(20))
            looked._unexplained.append((10 + number, 500))
        assert needed == [number < compared for number in range(4)]


@pytest.mark.parametrize("each, is_needed", [(5, False), (10, False), (14, False), (18, True)])
def test_a_faster_rise_is_looked_into_in_full(looked, each, is_needed):
    looked._note_what_was_met([row(TABLE, 9)], enough=5.0)
    set_rise(looked, each)
    assert looked._full_is_needed(20) is is_needed


def test_every_fourth_look_is_full_within_its_share_of_the_time(looked):
    looked._note_what_was_met([row(TABLE, 9)], enough=5.0)
    looked.looks_budget.spend(0.1)
    looked.clock[0] = 9.0
    assert [looked._full_is_needed(20) for _ in range(6)] == [False] * 6  # 0.1 s are more than 1 % of 9 s
    looked.clock[0] = 11.0
    assert [looked._full_is_needed(20) for _ in range(5)] == [True, False, False, False, True]


def test_objects_of_torch_in_a_known_table_keep_bytes_of_malloc(looked):
    def group(type_name, site, count):
        return types.SimpleNamespace(
            type=type_name, site=site, growth=types.SimpleNamespace(count_per_step=count)
        )

    groups = [
        group("torch.Tensor", OTHER, 5.0),
        group("torch.multiprocessing.reductions.StorageWeakRef", TABLE, 2.0),
        group("tuple", TABLE, 9.0),
    ]
    assert suspects.bytes_behind_known_tables(groups) == 2 * suspects.BEHIND_ENTRY
