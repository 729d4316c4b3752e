"""What is let go before it could be looked at again: whether it had grown on, by the counts of marks."""

import dataclasses

import histories as h
import pytest

from leakprobe.judge.looks import Suspect
from leakprobe.judge.verdicts import judge
from leakprobe.model.history import Spans
from leakprobe.watch import rested
from leakprobe.watch.rested import has_rested

LOOK = 170


def suspect_of(items) -> Suspect:
    history = h.history_of(items, LOOK)
    judgement = judge(history)
    assert judgement.is_finding
    return Suspect(("block", "cpu", 20), "cpu", None, history, judgement, 0, 0, ())


def later(items, step):
    """Live counts as of a later mark."""
    return h.history_of(items, step).spans


@pytest.mark.parametrize("step", [200, 260, 600])
def test_what_was_full_by_the_look_has_rested(step):
    items = h.leak(LOOK)
    assert has_rested(suspect_of(items), later(items, step), step)


@pytest.mark.parametrize("step", [172, 200, 260, 600])
@pytest.mark.parametrize("share", [1.0, 0.5, 0.2])
def test_what_grows_on_has_not(step, share):
    items = h.leak(step, share=share, seed=2)
    assert not has_rested(suspect_of(items), later(items, step), step)


@pytest.mark.parametrize(("step", "rested"), [(260, True), (350, True), (700, False)])
def test_what_was_emptied_has_until_it_is_filled_to_more(step, rested):
    """A second ramp is no growth before it is longer than what was given back."""
    items = [(birth, 199 if birth < 200 else h.NEVER, 100) for birth in range(step)]
    assert has_rested(suspect_of(items), later(items, step), step) == rested


def test_what_is_cut_to_half_now_and_then_has():
    items = [(birth, 200 + 100 * (birth // 100), 100) for birth in range(560)]
    assert has_rested(suspect_of(items), later(items, 560), 560)


def test_a_pause_that_chance_brings_is_no_rest():
    items = h.leak(LOOK, share=0.1, seed=4)
    suspect = suspect_of(items)
    assert not has_rested(suspect, later(items, LOOK + 20), LOOK + 20)
    assert has_rested(suspect, later(items, LOOK + 400), LOOK + 400)


def test_of_a_line_whose_counts_are_not_kept_nothing_is_known():
    suspect = suspect_of(h.leak(LOOK))
    assert not has_rested(suspect, None, 600)
    unknown = dataclasses.replace(suspect, judgement=dataclasses.replace(suspect.judgement, onset=None))
    assert not has_rested(unknown, suspect.history.spans, 600)


@pytest.mark.parametrize(
    ("width", "highs", "alive"), [(1, (80, 86, 4, 4, 4), 4), (2, (80, 86, 4, 4), 4), (8, (86, 4), 86)]
)
def test_the_last_steps_are_those_that_are_never_judged(monkeypatch, width, highs, alive):
    """What was given back before them was not let go with the loop."""
    spans = Spans(1, width, highs, highs)
    monkeypatch.setattr(rested, "spans_of_line", lambda key: spans)
    assert rested.live_in_last_steps(suspect_of(h.leak(LOOK))) == alive
