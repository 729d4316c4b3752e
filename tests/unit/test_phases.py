"""Which steps were training and which evaluation, and what grows in one of them only."""

import pytest

from leakprobe.evidence.phases import Births, Phases
from leakprobe.model.bounds import MOST_PHASES


def loop(rounds, training, evaluation, lump=7):
    """Phases of a loop whose evaluations have ``lump`` batches in their first step; (phases, steps)."""
    phases, step = Phases(), 0
    for _ in range(rounds):
        for _ in range(training):
            phases.add(step, None)
            step += 1
        for batch in range(evaluation - lump + 1):
            phases.add(step, 1 if batch else lump)
            step += 1
    return phases, step


def births(steps, merged=()):
    return Births([(step, 1, 100) for step in steps], merged)


def training_steps(rounds, training, evaluation, late=0):
    """Birth steps of what is made in training, after the step's mark by ``late``."""
    width = training + evaluation - 6
    return [first * width + at + late for first in range(rounds) for at in range(training)]


@pytest.mark.parametrize("late", [0, 1])
def test_growth_in_training_is_per_step_of_the_optimizer(late):
    phases, end = loop(10, 20, 60)
    own = phases.own(births(training_steps(10, 20, 60, late)), 0, end)
    assert not own.is_evaluation and own.events == 200 and own.steps == 10 * (20 + 54)


def test_growth_in_evaluations_is_per_batch():
    phases, end = loop(10, 20, 60)
    made = sorted(set(range(end)) - set(training_steps(10, 20, 60)))
    own = phases.own(births(made), 0, end)
    assert own.is_evaluation and own.events == 600
    assert len(made) / own.steps * own.factor == pytest.approx(540 / 600)


def test_growth_in_both_or_of_one_kind_of_steps_is_per_step():
    phases, end = loop(10, 20, 60)
    assert phases.own(births(range(end)), 0, end) is None
    only, end = loop(1, 50, 0, lump=1)
    assert only.own(births(range(end)), 0, end) is None


def test_only_the_steps_since_the_onset_count():
    phases, end = loop(10, 20, 60)
    late = [step for step in training_steps(10, 20, 60) if step >= 370]
    own = phases.own(births(late), 370, end)
    assert own.events == 100 and own.steps == end - 370


def test_steps_that_are_known_together_count_where_they_are_of_one_phase():
    phases, end = loop(10, 20, 60)
    made = [step for step in training_steps(10, 20, 60) if step % 4 == 3]
    assert phases.own(births(made, [(step - 3, step) for step in made]), 0, end).events == 200
    wide = [(step - 60, step) for step in made]
    assert phases.own(births(made, wide), 0, end) is None


def test_a_phase_of_one_step_is_known_as_neither():
    """What is made after a mark is of the step that the next phase begins with."""
    phases, end = loop(30, 1, 20)
    assert phases.own(births(training_steps(30, 1, 20)), 0, end) is None


def test_the_last_phases_are_kept():
    phases, end = loop(2 * MOST_PHASES, 10, 16)
    assert len(phases._until(end)) == MOST_PHASES
    own = phases.own(births(training_steps(2 * MOST_PHASES, 10, 16)), 0, end)
    assert own.factor == pytest.approx(2)


def test_what_is_made_where_phases_meet_is_of_neither():
    """A metric that is kept after each validation, and once in the middle of a training."""
    phases, end = loop(30, 20, 60)
    firsts = [first * 74 for first in range(1, 30)]
    assert phases.own(births([*firsts, 7]), 0, end) is None
