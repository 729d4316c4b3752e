"""Whether blocks come and go as those do that cycles keep, by their live counts alone."""

import gc
import types

import pytest

from leakprobe.evidence.cohorts import fell_by_half
from leakprobe.model.history import Spans
from leakprobe.watch.cycles import Cycles


@pytest.mark.parametrize(
    ("lows", "highs", "fell"),
    [
        ((0, 2, 1), (8, 9, 9), True),  # freed many at a time
        ((0, 9, 18), (8, 17, 26), False),  # kept
        ((0, 8, 8), (8, 9, 9), False),  # a ring that has filled
        ((0, 5, 5), (8, 9, 9), False),  # less than half of it is freed
        ((0, 1, 5), (9, 5, 6), True),
        ((1,), (9,), False),  # what came before the highest is how it got there
        ((), (), False),
        ((0, 0), (0, 0), False),
    ],
)
def test_a_fall_by_half_comes_after_the_highest(lows, highs, fell):
    assert fell_by_half(Spans(6, 4, lows, highs)) == fell


@pytest.mark.parametrize(
    ("seen_before", "garbage_bytes", "again"),
    [
        (True, 0, False),  # the walk was for them
        (False, 1000, False),  # it met all garbage that there was
        (False, 0, True),  # it was for another reason, and came when there was none
    ],
)
def test_cycles_are_worth_one_walk(monkeypatch, seen_before, garbage_bytes, again):
    collected = iter(range(0, 10_000, 1000))
    monkeypatch.setattr(gc, "get_stats", lambda: [{"collected": next(collected)}])
    history = types.SimpleNamespace(spans=Spans(6, 4, (0, 2, 1), (8, 9, 9)))
    block = types.SimpleNamespace(live_bytes=10**6, has_survivors=lambda within: True, history=history)
    cycles = Cycles(warmup=5, limit=256)
    assert not cycles.keep([block], 20), "nothing is known to have been freed yet"
    if seen_before:
        assert cycles.keep([block], 30)
    cycles.walked(garbage_bytes)
    assert cycles.keep([block], 40) is again
