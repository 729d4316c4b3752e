"""Whether the total of a site climbs all the time since an onset, by lowest and highest counts of spans."""

import math

import pytest

from leakprobe.evidence import shapes
from leakprobe.evidence.cohorts import climbs, climbs_on_the_whole
from leakprobe.evidence.readings import history_of_total
from leakprobe.model.history import History, Spans, Survivors

STEPS, WIDTH, NOISE = 1920, 30, 4


def history_of(level):
    marks = range(1, STEPS, WIDTH)
    lows = tuple(level(mark) - NOISE for mark in marks)
    highs = tuple(level(mark + WIDTH) for mark in marks)
    return History(STEPS, 5, level(STEPS), Spans(1, WIDTH, lows, highs), survivors=Survivors(STEPS, ()))


def teeth(height):
    """A rise of 300 in all, as a spool that is flushed each 200 steps by less than what came has it."""
    return lambda mark: mark / 6.4 + height * (mark % 200) / 200


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        (lambda mark: mark / 3, True),
        (lambda mark: mark * mark / 9000, True),  # faster and faster
        (lambda mark: min(mark, 0.7 * STEPS) / 3 + mark / 30, False),  # full, and wandering upwards
        (lambda mark: min(mark, 0.75 * STEPS) / 3 + mark / 30, False),
        (lambda mark: min(mark, 0.9 * STEPS) / 3, True),  # it can't be told yet
        (lambda mark: 300.0, False),
        (teeth(50), True),
        (teeth(300), False),  # as much as it rose was lost again and again
        (lambda mark: mark / 6.4 - (60 if mark > 1000 else 0), True),
        (lambda mark: mark / 6.4 - (140 if mark > 1000 else 0), False),
    ],
)
def test_what_climbs_to_its_end(level, expected):
    assert climbs(history_of(level), 5.0) is expected


def test_two_events_in_one_span_are_no_division_by_zero():
    assert not shapes.is_rhythm([1, 41, 42, 43], 20)
    assert not shapes.is_rhythm([0, 2, 2], 1)


def total_of(level, width=WIDTH):
    """Of a plain total, as descriptors are: one reading a span."""
    readings = tuple(level(mark) for mark in range(1, STEPS, width))
    return History(STEPS, 5, level(STEPS), Spans(1, width, readings, readings))


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        (lambda mark: mark // 3, True),
        (lambda mark: mark // 3 + (120 if 1140 < mark < 1370 else 0), True),  # an evaluation holds some
        (lambda mark: mark // 3 + (700 if 1140 < mark < 1370 else 0), True),
        (lambda mark: min(mark, 0.6 * STEPS) // 3, False),
        (lambda mark: 100 + (50 if mark % 240 < 60 else 0), False),
    ],
)
def test_a_total_that_climbs_on_the_whole(level, expected):
    assert climbs(total_of(level), 5.0) is expected


@pytest.mark.parametrize("part", range(7))
def test_a_part_without_a_reading_is_left_out(part):
    for level in (lambda i: float(i), lambda i: float(i % 2)):
        values = [level(i) for i in range(7)]
        without = [math.inf if i == part else value for i, value in enumerate(values)]
        assert climbs_on_the_whole(without) is climbs_on_the_whole(values) is (level(2) > 1)


def test_three_parts_with_readings_prove_nothing():
    assert not climbs_on_the_whole([0.0, math.inf, 2.0, math.inf, math.inf, math.inf, 6.0])


def test_spans_without_a_reading_are_no_level():
    """Readings of 9,000 bytes a step from step 300 on, and none between steps 484 and 600."""
    before = [(step, 4_000_000.0) for step in range(5, 300, 12)]
    after = [(step, 4_000_000.0 + 9_000 * (step - 300)) for step in (304, 328, 354, 383, 414, 448, 484, 600)]
    points = before + after
    assert climbs(history_of_total(points, 5, 64), 281.0)
