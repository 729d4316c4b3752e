"""Lists of fixed length whose places are filled one after another: each gets its item, which is no leak, or
more and more below it, which is one.
"""

import random

import pytest

import leakprobe

STEPS = 300


def run(fill):
    with leakprobe.watch() as probe:
        fill(probe.steps(range(STEPS)), random.Random(1))
    return probe.report()


def chains(steps, chance):
    cells = [None] * 500
    for _ in steps:
        for _ in range(10):
            place = chance.randrange(500)
            cells[place] = (bytearray(1600), cells[place])


def grids(steps, chance):
    cells = [None] * 500
    for step in steps:
        cells[step] = [[0.5 + step] * 30 for _ in range(10)]


def uneven_grids(steps, chance):
    cells = [None] * 1000
    for step in steps:
        cells[chance.randrange(1000)] = [[0.5 + step] * 30 for _ in range(chance.randrange(1, 20))]


def records(steps, chance):
    cells = [None] * 1500
    for step in steps:
        for _ in range(4):
            cells[chance.randrange(1500)] = [{"at": 0.5 + step} for _ in range(chance.randrange(1, 6))]


def states(steps, chance, cut=10**9):
    """Hidden states of many streams, of which some get a step each time; detached each ``cut`` steps."""
    import torch

    layer = torch.nn.Linear(8, 8)
    state, count = [torch.zeros(1, 8) for _ in range(400)], [0] * 400
    for _ in steps:
        for _ in range(8):
            stream = chance.randrange(400)
            state[stream] = torch.tanh(layer(state[stream]))
            count[stream] += 1
            if count[stream] % cut == 0:
                state[stream] = state[stream].detach()


def test_a_chain_in_each_place_is_a_leak():
    (finding,) = run(chains).findings
    assert finding.bytes_per_step == pytest.approx(10 * 1740, rel=0.1)
    assert finding.holder["text"].startswith("cells (list, 500 items)")


def test_states_that_keep_their_graphs_are_a_leak():
    pytest.importorskip("torch")
    (finding,) = run(states).findings
    assert finding.cause == "graph_kept"


@pytest.mark.parametrize("fill", [grids, uneven_grids, records])
def test_places_that_are_set_once_are_none(fill):
    report = run(fill)
    assert report.verdict == "steady"
    assert any("filling, " in note.text for note in report.notes if note.kind == "bounded")


def test_how_many_places_are_filled_is_told():
    (text,) = (note.text for note in run(grids).notes if note.kind == "bounded")
    assert 10 <= int(text.split("filling, ")[1].split(" of 500")[0]) <= STEPS  # as of the last walk


def test_states_that_are_detached_now_and_then_are_none():
    pytest.importorskip("torch")
    assert run(lambda steps, chance: states(steps, chance, cut=4)).findings == []
