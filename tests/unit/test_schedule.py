"""What looks and walks are charged with, by a clock that is set."""

import types

import pytest

from leakprobe.model import budget
from leakprobe.watch import schedule
from leakprobe.watch.schedule import Meter, Price


@pytest.fixture
def clock(monkeypatch):
    now = types.SimpleNamespace(s=0.0)
    clocks = types.SimpleNamespace(monotonic=lambda: 0.0, thread_time=lambda: now.s)
    monkeypatch.setattr(budget, "time", clocks)
    return now


def test_a_look_is_charged_with_all_of_its_slices(clock):
    """A look goes on over several marks; its walk is charged by itself."""
    looks, walks = Meter(Price(1.0, 0.0, 0.0)), Meter(Price(1.0, 0.0, 0.0))
    with looks.taken(10, 10):
        clock.s += 0.125
    for _ in range(2):
        with looks.going_on(walks):
            clock.s += 0.125
    with looks.going_on(walks):
        clock.s += 0.0625
        with walks.taken(12, 12):
            clock.s += 0.5
    assert (looks.spent_s, walks.spent_s) == (0.4375, 0.5)
    assert looks.is_affordable(13)  # another of 0.4375 s
    with looks.taken(20, 20):
        clock.s += 0.25
    assert looks.is_affordable(21)
    with looks.going_on(walks):
        clock.s += 0.125
    assert not looks.is_affordable(22), "at the price of the whole last one"


def test_a_look_that_goes_on_puts_the_next_one_further_off(clock):
    looks, walks = Meter(Price(1.0, 0.0, 0.0)), Meter(Price(1.0, 0.0, 0.0))
    with looks.taken(100, 100):
        pass
    assert looks.is_due(101)
    with looks.going_on(walks):
        clock.s += 0.25
    assert not looks.is_due(200)
    assert looks.is_due(100 + int((schedule.REACH**0.25 - 1) * 100))


def test_what_is_new_is_walked_for_only_if_the_walk_that_will_be_due_can_be_afforded(clock):
    walks = Meter(Price(2.0, 0.0, 0.0))
    with walks.taken(20, 20):
        clock.s += 0.75
    assert walks.is_affordable(21) and not walks.can_spare(21)
    cheap = Meter(Price(2.0, 0.0, 0.0))
    with cheap.taken(20, 20):
        clock.s += 0.5
    assert cheap.can_spare(21)


def test_what_nothing_asks_for_is_not_put_off(clock):
    walks = Meter(Price(1.0, 0.0, 0.0))
    with walks.taken(10, 10):
        clock.s += 0.75
    assert not walks.has_room() and walks.put_off() is None
    assert not walks.is_affordable(20) and "put off since step 20" in (walks.put_off() or "")
