"""The budget of looks and traces says what it put off; what is level needs no costly look."""

import pytest

from leakprobe.analysis.budget import Budget
from leakprobe.analysis.suspects import is_level


def test_nothing_is_put_off_while_it_can_be_afforded():
    budget = Budget(allowance_s=1e9, share=0.0, stretch=0.2)
    assert budget.due(5, measured=5)
    budget.spend(3.0)
    assert budget.due(50, measured=50) and budget.put_off() is None


def test_what_was_too_dear_is_told_with_its_price_and_first_step():
    budget = Budget(allowance_s=4.0, share=0.0, stretch=0.2)
    assert budget.due(5, measured=5)
    budget.spend(3.0)
    assert not budget.due(50, measured=50) and not budget.due(60, measured=60)
    assert "since step 50" in budget.put_off() and "3 s" in budget.put_off() and "4 s" in budget.put_off()


def test_what_was_done_later_is_told_no_more():
    budget = Budget(allowance_s=4.0, share=0.0, stretch=0.2)
    budget.spend(3.0)
    assert not budget.due(50, measured=50)
    assert (
        budget.due(60, measured=60, at_once=True) is False
    )  # 6 s are more than 4 and 1 at the end of a loop
    budget.spend(0.5)
    assert budget.due(70, measured=70) and budget.put_off() is None


def test_while_nothing_grows_two_looks_and_one_at_the_end_are_free():
    budget = Budget(allowance_s=1e9, share=0.0, stretch=0.2)
    taken = []
    for step in range(5, 2000):
        if budget.due(step, measured=step, urgent=False):
            taken.append(step)
            budget.spend(1e6)
    assert taken == [5, 20]
    assert budget.due(2000, measured=2000, at_once=True, urgent=False)
    assert not budget.due(2001, measured=2001, at_once=True, urgent=False)
    assert budget.put_off() is None
    assert budget.due(5000, measured=5000, urgent=True)  # something grows: the whole budget


def test_looks_go_on_within_a_share_of_the_time(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("leakprobe.analysis.budget.time.monotonic", lambda: clock[0])
    budget = Budget(allowance_s=0.0, share=0.0, stretch=0.2)
    for step in (10, 100):
        assert budget.due(step, measured=step, urgent=False)
        budget.spend(0.5)
    assert not budget.due(1000, measured=1000, urgent=False)
    clock[0] = 200.0  # 1 % of it is 2 s: 1 s is spent, and a look takes 0.5 s
    assert budget.due(1001, measured=1001, urgent=False)


def looks_of(cost, allowance=2.5, steps=400):
    budget, taken = Budget(allowance_s=allowance, share=0.0, stretch=0.2), []
    for step in range(5, steps):
        if budget.due(step, measured=step):
            taken.append(step)
            budget.spend(cost)
    return taken


def test_costly_looks_are_spread_so_that_the_allowance_lasts():
    assert looks_of(0.001, steps=40) == [5, 7, 9, 11, 13, 15, 18, 21, 25, 30, 36]
    dear = looks_of(0.28)
    assert len(dear) == 8 and dear[-1] > 35  # at the distances of cheap ones the last would be at step 21
    assert looks_of(0.7) == [5, 10, 20]


STEPS = [12, 13, 15, 17, 20, 25, 31, 38]


@pytest.mark.parametrize(
    "moves",
    [
        [0] * 7,
        [1, -1, 2, -2, 1, 0, 0],
        [0, 0, 0, 0, 500, 0, 0],  # made at one step
        [0, 0, -500, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 0, -500],  # the loop has ended
    ],
    ids=range(5),
)
def test_a_count_is_level_that_hardly_moves_but_for_one_jump(moves):
    assert is_level(points_of(moves))


@pytest.mark.parametrize(
    "moves",
    [
        [1, 2, 2, 3, 5, 6, 7],
        [0, 100, 0, 0, 100, 0, 0],  # every so many steps
        [50, -50, 50, -50, 50, -50, 50],
        [30, 0, 0, 0, -500, 0, 0],
    ],
    ids=range(4),
)
def test_what_rises_or_goes_up_and_down_is_not_level(moves):
    assert not is_level(points_of(moves))


def test_of_few_counts_no_jump_is_left_out_but_a_fall_of_what_was_level():
    assert not is_level(points_of([0, 0, 40])) and not is_level(points_of([40]), True)
    assert is_level(points_of([-40]), True) and not is_level(points_of([-40]))


def points_of(moves):
    return [(step, 1000 + sum(moves[:i])) for i, step in enumerate(STEPS[: len(moves) + 1])]
