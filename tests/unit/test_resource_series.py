"""Which series of counts and of malloc's bytes are growth, on hand-written series."""

import array
import random

import pytest

from leakprobe.evidence.series import Series, between, comes_with_new_sizes, minus, usual_slope
from leakprobe.judge.rises import steady_rise
from leakprobe.watch.native_lines import NativeLines
from leakprobe.watch.resources import Resources

MEDIA = frozenset({"python", "native", "fd", "thread", "process", "shared"})


def line(steps, slope, start=0.0):
    return [(s, start + slope * s) for s in steps]


def test_a_straight_line_rises():
    rise = steady_rise(line(range(10, 60), 1, start=5), 0.5)
    assert rise.slope == 1 and rise.total == 49
    assert (rise.rises, rise.of) == (49, 49) and rise.confidence > 0.9


@pytest.mark.parametrize(
    "points",
    [
        [],
        line(range(4), 1),  # too few steps
        line(range(4), 1000),
        [(s, 7) for s in range(50)],
        [(s, s % 10) for s in range(60)],  # sawtooth
        [(s, min(s, 25)) for s in range(60)],  # full at half time
        [(s, min(s, 45)) for s in range(60)],  # full at three quarters
        [(s, 60 - s) for s in range(60)],
        [(s, 50 * (1 - 0.9**s)) for s in range(60)],  # a cache that fills ever more slowly
        line(range(60), 0.3),  # slower than asked for
    ],
    ids=range(10),
)
def test_what_does_not_rise_all_along_is_no_growth(points):
    assert steady_rise(points, 0.5) is None


def test_growth_that_drowns_in_noise_is_no_growth():
    random.seed(3)
    points = [(s, 5000 * s + random.gauss(0, 200_000)) for s in range(60)]
    assert steady_rise(points, 4096) is None
    points = [(s, 50_000 * s + random.gauss(0, 20_000)) for s in range(60)]
    assert steady_rise(points, 4096).slope == pytest.approx(50_000, rel=0.05)


def test_growth_after_a_library_has_freed_what_it_had_from_its_start():
    """What falls by far more than had come to be is no ramp that was lost, and growth is as of the lowest
    point: the ends alone would say that next to nothing rose.
    """
    before = [(step, 5_000_000 + 5_000 * step) for step in range(2, 22)]
    after = [(step, 3_600_000 + 5_000 * step) for step in range(22, 290)]
    rise = steady_rise(before + after, 256)
    assert rise is not None
    assert rise.slope == pytest.approx(5_000, rel=0.02)
    assert rise.first[0] >= 21


def test_a_sawtooth_is_none_after_a_large_block_was_freed():
    teeth = [(step, (9_000_000 if step < 20 else 3_000_000) + 5_000 * (step % 50)) for step in range(2, 290)]
    assert steady_rise(teeth, 256) is None


@pytest.mark.parametrize("every", [1, 3, 6])
@pytest.mark.parametrize("peaks", [lambda s: s == 60, lambda s: s == 204, lambda s: s % 50 <= 1])
def test_growth_below_passing_peaks_is_growth(peaks, every):
    points = [(s, 4e6 + 65_536 * max(0, s - 80) + 200e6 * peaks(s)) for s in range(6, 400, every)]
    assert steady_rise(points, 1024).slope == pytest.approx(65_536, rel=0.01)
    still = [(s, 4e6 + 200e6 * peaks(s)) for s in range(6, 400, every)]
    assert steady_rise(still, 1024) is None


@pytest.mark.parametrize("period", [150, 180, 198, 260])
def test_a_long_tooth_is_none_though_it_lasts_for_most_of_the_run(period):
    assert steady_rise([(s, 65_536 * (s % period)) for s in range(5, 400)], 1024) is None


def test_a_step_up_is_no_growth():
    assert steady_rise([(s, 0 if s < 30 else 10**6) for s in range(60)], 4096) is None


def test_every_second_step_counts():
    assert steady_rise([(s, s // 2) for s in range(60)], 0.4).slope == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize("readings", [1, 2])
def test_a_jump_among_small_rises_is_no_rise(readings):
    """What the first walk of the heap loads comes at the first epoch's end, between two or three marks."""
    jump = lambda s: min(readings, max(0, s - 28)) * 170_000 / readings
    assert steady_rise([(s, 700 * s + jump(s)) for s in range(5, 58)], 4096) is None
    assert steady_rise([(s, 5000 * s + jump(s)) for s in range(5, 58)], 4096).slope > 4096


@pytest.mark.parametrize("seed", range(5))
def test_a_rise_below_large_swings_is_a_rise(seed):
    chance = random.Random(seed)
    points = [(s, 8_000 * s + chance.choice((0, 0, 800_000))) for s in range(5, 150)]
    assert steady_rise(points, 4096).slope == pytest.approx(8_000, rel=0.3)


@pytest.mark.parametrize("every", [4, 7])
def test_leaps_that_come_again_are_a_rise(every):
    assert steady_rise([(s, s // every * 50_000) for s in range(60)], 4096).slope > 4096


def test_a_series_keeps_its_ends_when_it_is_thinned():
    series = Series()
    for step in range(5000):
        series.add(step, step * 2)
    assert series.points[0] == (0, 0) and series.points[-1] == (4999, 9998)
    assert len(series.points) <= 130 and series.last == 9998
    series.add(4999, 1)
    assert series.points[-1] == (4999, 1) and series.since(4999) == [(4999, 1)]


def test_one_series_less_another():
    assert between([(0, 0), (10, 100)], 4) == 40
    assert minus([(0, 5), (4, 50), (12, 7)], [(0, 0), (10, 100)]) == [(0, 5), (4, 10)]
    assert minus([(0, 5)], []) == [(0, 5)]


def test_what_falls_between_two_readings_of_the_other_series_is_read_at_these_only():
    other = [(0, 100), (10, 100), (20, 40), (30, 40)]  # when between 10 and 20 it fell is not known
    points = [(x, 1000 + (100 if x < 12 else 40)) for x in range(0, 31, 2)]
    rest = minus(points, other, 3)
    assert {y for _, y in rest} == {1000}
    assert [x for x, _ in rest] == [0, 2, 4, 6, 8, 10, 20, 22, 24, 26, 28, 30]
    even = [(0, 0), (10, 500), (20, 1000)]
    assert len(minus([(x, 60 * x) for x in range(21)], even, 1)) == 21


def test_a_fall_before_few_readings_makes_no_others_jumps():
    other = [(0, 52e6), (15, 52e6), (31, 49e6), (58, 49e6), (119, 49e6), (300, 49e6)]
    points = [(x, 70e6 + 5000 * x + (3e6 if x < 16 else 0)) for x in range(0, 301, 5)]
    rest = minus(points, other, 4096)
    assert [x for x, _ in rest if x >= 31] == list(range(35, 301, 5))
    assert not any(15 < x < 31 for x, _ in rest)
    late = [(0, 52e6), (15, 52e6), (31, 52e6), (58, 52e6), (119, 52e6), (300, 49e6)]
    assert [x for x, _ in minus(points, late, 4096)] == [*range(0, 120, 5), 300]
    assert usual_slope([(0, 52e6), (150, 52e6), (300, 49e6)]) == usual_slope([(0, 0), (9, 0), (18, 9)]) == 0
    assert usual_slope(other) == 0 and usual_slope([(0, 1)]) == 0 and usual_slope([(0, 0), (4, 8)]) == 2


def resources(unknown, *, large=(), count=(), ledger=(), media=MEDIA, limit=256.0, threads=()):
    """Resources with series of their own: malloc's bytes beyond the ledger, Python's large blocks, ledger,
    threads.
    """
    made = Resources(5, media, limit)
    for name, points in (
        ("beyond_ledger", unknown),
        ("python_large", large or [(s, 10**6) for s in (8, 20, 60)]),
        ("ledger_count", count),
        ("ledger_bytes", ledger),
        ("threads", threads),
    ):
        setattr(made, name, Series(points))
    return made


def test_the_columns_of_the_probe_are_no_memory_of_the_program():
    made = Resources(5, MEDIA, 256.0)
    small, large = array.array("q", [0] * 64), array.array("q", [0] * 1000)
    made.other_columns = lambda: [small, large]
    assert made._own_bytes() == 8000  # the small one is in a block of pymalloc
    made.in_use = Series([(s, s) for s in range(100)])
    assert made._own_bytes() >= 8000 + 2 * 800


STEPS = range(5, 61)


def test_native_growth_is_the_slope():
    assert resources(line(STEPS, 100_000)).native_rise().slope == pytest.approx(100_000)


def test_native_growth_below_the_limit_is_not_told():
    assert resources(line(STEPS, 4000)).native_rise() is None
    assert resources(line(STEPS, 100_000), limit=200_000.0).native_rise() is None
    assert resources(line(STEPS, 100_000), media=frozenset({"python"})).native_rise() is None


def test_large_blocks_of_python_are_taken_off():
    large = line(range(8, 61, 4), 99_000)
    assert resources(line(STEPS, 100_000), large=large).native_rise() is None
    both = resources(line(STEPS, 200_000), large=large).native_rise()
    assert both.slope == pytest.approx(101_000, rel=0.01)


def freed_after_a_census(each):
    """1.4 MB of Python's that go between step 15 and 16, of which the censuses of 15 and 24 tell."""
    unknown = [(s, 147_000_000 + each * s - (1_400_000 if s > 15 else 0)) for s in range(5, 25)]
    return {"unknown": unknown, "large": [(15, 45_000_000), (24, 43_600_000)]}


def test_what_python_freed_between_two_censuses_is_no_native_growth():
    assert resources(**freed_after_a_census(5_000)).native_rise() is None
    assert resources(**freed_after_a_census(1_000_000)).native_rise() is not None


def test_native_growth_that_begins_after_a_census_is_measured_from_there():
    unknown = [(s, 200_000.0 * max(0, s - 200)) for s in range(5, 301)]
    large = [(15, 45_000_000), (300, 40_000_000)]
    assert resources(unknown, large=large).native_rise() is not None


def test_without_a_full_census_nothing_is_said():
    assert resources(line(STEPS, 100_000), large=[(8, 5)]).native_rise() is None


def test_the_bookkeeping_of_other_growth_is_no_native_growth():
    tensors = {"count": line(STEPS, 40), "ledger": line(STEPS, 40 * 1000)}
    assert resources(line(STEPS, 40 * 1500), **tensors).native_rise() is None
    assert resources(line(STEPS, 40 * 5000), **tensors).native_rise() is not None
    assert resources(line(STEPS, 50_000), threads=line(STEPS, 1)).native_rise() is None
    assert resources(line(STEPS, 50_000)).native_rise(bookkeeping=60_000.0) is None


def test_memory_that_malloc_keeps_is_retained_only_while_use_is_level():
    made = resources([])
    made.free, made.in_use = Series(line(STEPS, 50_000)), Series(line(STEPS, 10))
    assert made.retained_rise().slope == pytest.approx(50_000)
    made.in_use = Series(line(STEPS, 50_000))
    assert made.retained_rise() is None


def staircase(jumps, size=4_000_000):
    """A level series that jumps by ``size`` at some steps."""
    return [(s, float(size * sum(j <= s for j in jumps))) for s in STEPS]


def test_a_few_jumps_at_odd_steps_are_buffers_for_larger_inputs():
    odd = [1, 9, 16, 30, 47]
    assert resources(staircase([STEPS[0] + j for j in odd])).native_rise() is None


def test_jumps_at_a_pace_are_growth():
    paced = [STEPS[0] + j for j in range(3, len(STEPS), 6)]
    assert resources(staircase(paced)).native_rise() is not None


def test_growth_begins_behind_what_was_kept_now_and_then():
    """A library keeps 400 bytes each third step; from step 90 on a leak keeps 40,000 a step."""
    points = [(s, 400.0 * (s // 3) + 40_000.0 * max(0, s - 90)) for s in range(5, 180)]
    rise = steady_rise(points, 4096.0)
    assert 88 <= rise.first[0] <= 93 and rise.slope == pytest.approx(40_133, rel=0.02)


def lines(*steps):
    """NativeLines that measured these steps, after the first, which is never used."""
    made = NativeLines()
    made._steps["native"] = [{}, *steps]
    made._stacks = {key: [("a.py", key, "f")] for step in steps for key in step}
    return made


def test_a_line_is_named_if_it_alone_gains_in_every_step():
    stack, text = lines({1: 100, 2: 3}, {1: 98}, {1: 101, 3: -2}).verdict(100)
    assert stack == [("a.py", 1, "f")] and "3 traced steps" in text


def test_a_line_is_named_by_the_steps_that_grew():
    followed = lines({}, {1: 210, 2: 1}, {2: -1}, {1: 190}, {}, {1: 200})
    stack, text = followed.verdict(70)
    assert stack == [("a.py", 1, "f")] and "200 bytes" in text and "3 traced steps that grew" in text
    followed.want("native", 70)
    assert followed._is_enough("native") and not lines_wanted(70, {1: 210}, {}, {1: 190})._is_enough("native")


def lines_wanted(rate, *steps):
    made = lines(*steps)
    made.want("native", rate)
    return made


@pytest.mark.parametrize(
    "steps",
    [
        [{1: 100}],  # one step is not enough
        [{1: 50, 2: 50}, {1: 50, 2: 50}],
        [{1: 100, 2: -90}, {1: 100, 2: -90}],  # another line frees it
        [{1: 100}, {2: 100}],
        [{1: 100}, {1: 0}],
        [{}, {}],
    ],
    ids=range(6),
)
def test_a_line_is_not_guessed(steps):
    assert lines(*steps).verdict(100)[0] == []


def by_size(new_at, each=1000, per_step=0):
    """A series that rises by ``each`` where a size is new, and by ``per_step`` at every step; and the count
    of sizes.
    """
    steps = range(10, 70)
    counts = [sum(n <= s for n in new_at) for s in steps]
    return [(s, each * c + per_step * s) for s, c in zip(steps, counts)], list(zip(steps, counts))


RANDOM_STEPS = sorted(random.Random(5).sample(range(11, 70), 45))


@pytest.mark.parametrize(
    "points, sizes, answer",
    [
        (*by_size(RANDOM_STEPS), True),
        (*by_size(RANDOM_STEPS, per_step=40), True),  # noise
        (*by_size(RANDOM_STEPS, per_step=300), False),  # the calls leave something behind too
        (*by_size(range(11, 70)), False),  # sizes never come again
        (*by_size([], per_step=1000), False),
        (*by_size([11, 12, 13], each=50_000, per_step=1000), False),  # of the rise most comes without
        (*by_size(RANDOM_STEPS, each=0), False),
        ([], [], False),
        (by_size(RANDOM_STEPS)[0], [], False),  # not counted
    ],
    ids=[
        "cache",
        "noisy cache",
        "leak in each call",
        "always new",
        "never new",
        "few",
        "level",
        "empty",
        "unknown",
    ],
)
def test_growth_that_new_sizes_bring_is_told_from_a_leak(points, sizes, answer):
    assert comes_with_new_sizes(points, sizes) is answer


@pytest.mark.parametrize(
    "sizes, answer",
    [
        ([(s, s) for s in range(10, 70)], True),
        ([(s, 3 * s) for s in range(10, 1000, 25)], True),
        ([(s, s // 5) for s in range(10, 1000, 25)], False),  # one in five steps: the others rest
        ([(s, 40) for s in range(10, 70)], False),
        ([(s, s) for s in range(10, 14)], False),
    ],
    ids=["each step", "marks apart", "some steps", "no step", "too few"],
)
def test_sizes_are_always_new_where_each_step_brings_one(sizes, answer):
    made = resources([])
    made.sizes = Series(sizes)
    assert made.always_new_sizes() is answer


def test_a_long_time_without_a_reading_leaves_the_slope_as_it_is():
    """Where readings are put off, as on a busy machine, the rise is told at the last one, all at once."""
    marks = [*range(31, 60, 3), *range(60, 153, 12), 223]
    rise = steady_rise([(mark, mark // 3 * 100.0) for mark in marks], 1)
    assert rise is not None and rise.slope == pytest.approx(100 / 3, rel=0.03)
