"""Totals that rise at each of their last readings and have no verdict yet, and those that bend."""

import random

import pytest

from leakprobe.judge.rises import early_rise, steady_rise

LIMIT = 1 / 32
#: A twelfth of the run apart, as a loop of short steps is read.
MARKS = [*range(5, 25), *(round(25 * 1.083**i) for i in range(41))]
END = MARKS[-1]


def readings(rate, onset, until=END, noise=0, seed=0):
    chance = random.Random(seed)
    grown = (rate * max(0, min(mark, until) - onset) for mark in MARKS)
    return [(mark, 40 + int(rise) + chance.randint(0, noise)) for mark, rise in zip(MARKS, grown)]


def test_one_a_step_since_seven_tenths_of_the_run_is_early():
    points = readings(1, 0.7 * END)
    early = early_rise(points, LIMIT)
    assert steady_rise(points, LIMIT) is None
    assert early.last == points[-1] and early.readings >= 4 and early.total > 0.25 * END


def test_what_has_a_verdict_is_not_early():
    points = readings(1, 0.3 * END)
    assert steady_rise(points, LIMIT) is not None and early_rise(points, LIMIT) is None
    assert early_rise(points, LIMIT, is_leak_open=True) is not None


@pytest.mark.parametrize(
    "points",
    [
        readings(1, 0.9 * END),  # three readings
        readings(1, 0.7 * END, until=0.8 * END),  # it has stopped
        readings(0, 0),
        [(mark, 40 + 90 * (mark > 0.9 * END)) for mark in MARKS],  # a library was loaded
    ],
)
def test_few_readings_and_jumps_are_none(points):
    assert early_rise(points, LIMIT) is None


def test_a_jump_and_a_little_each_time_is_no_more_than_the_little():
    after = [mark for mark in MARKS if mark > 0.6 * END]
    rest = [(mark, 40) for mark in MARKS[: -len(after)]]
    points = [*rest, *((mark, 90_000 + i) for i, mark in enumerate(after))]
    assert early_rise(points, 1.0) is None


@pytest.mark.parametrize("seed", range(40))
def test_noise_is_none(seed):
    assert early_rise(readings(0, 0, noise=60, seed=seed), LIMIT) is None


def test_late_growth_after_a_little_drift_has_its_own_rate_and_onset():
    """Small rises before it are growth too, by far less than counts."""
    points = [(mark, mark * 20 + 9_000 * max(0, mark - 200)) for mark in MARKS if mark <= 600]
    rise = steady_rise(points, 4_096.0)
    assert rise.slope == pytest.approx(9_020, rel=0.02) and 170 <= rise.first[0] <= 230


def test_the_same_rate_all_along_begins_at_the_beginning():
    points = [(mark, mark * 9_000 + random.Random(mark).randint(0, 20_000)) for mark in MARKS]
    rise = steady_rise(points, 4_096.0)
    assert rise.slope == pytest.approx(9_000, rel=0.02) and rise.first[0] < 30
