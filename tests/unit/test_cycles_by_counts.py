"""Whether blocks come and go as those do that cycles keep, by their live counts alone."""

import pytest

from leakprobe.evidence.cohorts import fell_by_half
from leakprobe.model.history import Spans


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
