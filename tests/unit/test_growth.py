"""The verdict's arithmetic on hand-written cohorts."""

import random

from leakprobe.analysis import growth
from leakprobe.analysis.growth import Window, classify, rising_total, slope

WINDOW = Window(10, 67)


def line(steps, count=3, size=300):
    return [(s, count, size) for s in steps]


def test_survivors_of_every_step_are_per_step_growth():
    found = classify(line(range(70)), WINDOW)
    assert found.pattern == "per_step"
    assert found.bytes_per_step == 300 and found.count_per_step == 3
    assert "58 of 58" in found.evidence


def test_only_the_last_steps_are_a_working_set():
    assert classify(line(range(60, 70)), WINDOW) is None


def test_a_ring_has_lost_its_old_cohorts():
    assert classify(line(range(40, 70)), WINDOW) is None


def test_growth_that_stopped_is_no_growth():
    assert classify(line(range(10, 40)), WINDOW) is None


def test_warm_up_survivors_are_not_judged():
    assert classify(line(range(10)), WINDOW) is None


def test_every_tenth_step_is_per_epoch_growth():
    found = classify(line(range(14, 68, 10)), WINDOW)
    assert found.pattern == "per_epoch"
    assert abs(found.bytes_per_step - 6 * 300 / WINDOW.steps) < 1e-9


def test_two_intervals_are_too_few():
    assert classify(line([20, 40]), WINDOW) is None


def test_irregular_survivors_are_no_pattern():
    assert classify(line([11, 13, 29, 31, 58]), WINDOW) is None


def test_a_cache_that_forgets_slowly_decays():
    rng = random.Random(1)
    series = [(s, max(1, int(100 * 0.93 ** (67 - s) + rng.random())), 100) for s in range(10, 68)]
    assert classify(series, WINDOW) is None


def test_births_that_grow_are_no_decay():
    series = [(s, s, 100 * s) for s in range(10, 68)]
    assert classify(series, WINDOW).pattern == "per_step"


def test_few_steps_need_every_one_of_them():
    short = Window(2, 6)
    assert classify(line(range(2, 7)), short) is not None
    assert classify(line([2, 3, 5, 6]), short) is None


def test_a_window_of_two_steps_judges_nothing():
    assert classify(line(range(9)), Window(5, 6)) is None


def test_slope_does_not_mind_outliers():
    points = [(x, 10.0 * x) for x in range(50)]
    points[7] = (7, 1e9)
    assert abs(slope(points) - 10.0) < 1e-6
    assert slope([(1, 1)]) == 0.0


def test_thin_keeps_the_ends():
    points = [(x, x) for x in range(1000)]
    kept = growth.thin(points)
    assert len(kept) == growth.MAX_POINTS and kept[0] == points[0] and kept[-1] == points[-1]


def test_a_total_that_rises_at_every_mark_is_replaced_growth():
    points = [(s, 1000 * s) for s in range(12, 70, 4)]
    found = rising_total(points, WINDOW)
    assert found.pattern == "replaced" and abs(found.bytes_per_step - 1000) < 1


def test_a_total_that_falls_back_is_not():
    points = [(s, 1000 * (s % 30)) for s in range(12, 70, 4)]
    assert rising_total(points, WINDOW) is None


def test_a_total_that_levels_off_is_not():
    points = [(s, min(s, 40) * 1000 + s) for s in range(12, 70, 3)]
    assert rising_total(points, WINDOW) is None


def test_sums_by_step():
    assert growth.sum_series([[(1, 1, 10), (2, 1, 10)], [(2, 2, 5)]]) == [(1, 1, 10), (2, 3, 15)]


def test_what_is_kept_of_a_buffer_that_is_emptied_is_suspected():
    kept = [(step, 1, 800) for step in range(6, 54, 6)]
    in_use = [(step, 1, 800) for step in range(54, 58)]
    window = growth.Window(5, 57)
    assert growth.classify(kept + in_use, window) is None
    found = growth.regular_before_a_run(kept + in_use, window)
    assert found.pattern == "per_epoch" and 100 < found.bytes_per_step < 200
    assert growth.regular_before_a_run(in_use, window) is None
