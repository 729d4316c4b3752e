"""The slopes between all pairs of points, beside Python's own sorting of them."""

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakprobe import _core

numbers = st.floats(-1e9, 1e9, allow_subnormal=False)
points = st.lists(st.tuples(st.integers(0, 50).map(float), numbers), max_size=70)


def by_sorting(points, spread):
    slopes = sorted(
        (b[1] - a[1]) / (b[0] - a[0]) for i, a in enumerate(points) for b in points[i + 1 :] if b[0] != a[0]
    )
    count = len(slopes)
    if count <= 1:
        return None
    low, high = math.floor((count - spread) / 2), math.ceil((count + spread) / 2)
    return (
        statistics.median(slopes),
        slopes[low] if low >= 0 else -math.inf,
        slopes[high] if high < count else math.inf,
    )


@given(points, st.floats(0, 3000))
def test_it_is_what_sorting_gives(points, spread):
    assert _core.theil_sen(points, spread) == pytest.approx(by_sorting(points, spread))


@pytest.mark.parametrize("wrong", [[1], [(1,)], [("a", 1.0)], [(1.0, 2.0, 3.0)], ((1.0, 2.0),)])
def test_what_are_no_points_is_refused(wrong):
    with pytest.raises(TypeError):
        _core.theil_sen(wrong, 0.0)
