"""What is said of a part of a line: of what one holder keeps, and of what garbage pins."""

import dataclasses
import math
import random
import types

import histories as h
import pytest

from leakprobe.evidence import readings
from leakprobe.judge import holders, same_lines, verdicts
from leakprobe.judge.bounded import reading_of
from leakprobe.judge.entries import Seen
from leakprobe.judge.looks import HolderReading, Walk
from leakprobe.model.entry import Entry, Holder, Member
from leakprobe.model.history import Facts, judged_steps
from leakprobe.model.verdict import Verdict

STEPS, LIMIT = 300, 256.0


def part_since(onset, *, of):
    """The verdict on a holder that has what a line made from a step on."""
    whole, part = h.history_of(of, STEPS), h.scan_at([item for item in of if item[0] >= onset], STEPS)
    return verdicts.judge(readings.of_part(whole, STEPS, part, Facts())).verdict


@pytest.mark.parametrize(
    ("onset", "verdict"), [(0, Verdict.LEAK), (200, Verdict.LEAK), (268, Verdict.TOO_EARLY)]
)
def test_the_last_of_what_others_keep_may_be_a_window(onset, verdict):
    """A list of the last 32 of what a tree keeps."""
    assert part_since(onset, of=h.leak(STEPS)) is verdict


def test_what_began_late_and_has_no_elder_is_kept():
    assert part_since(268, of=h.leak(STEPS, since=268)) is Verdict.LEAK


def nodes_since(onset, *, met=()):
    """The verdict on autograd nodes, two of each step from ``onset`` on, in a holder that walks have ``met``
    before: (step, nodes).
    """
    series = tuple((step, 2, 1200) for step in range(onset, STEPS))
    kept = Member(None, 0, "native", 0, 0, 2 * len(series), 1200 * len(series), series)
    holder = Holder("best (dict, 20 items)", "dict", 20, None, 4096, 0, 20, 0, 0, 0)
    seen = Seen(Entry("held", (kept,), holder=holder), STEPS)
    walked = [HolderReading(4096, step, 20, nodes=nodes) for step, nodes in met]
    walk = Walk(STEPS, (seen,), (), {4096: [*walked, reading_of(seen.entry, STEPS)]}, 0, True)
    return holders.judged(seen, walk, h.WARMUP, LIMIT).judgement.verdict


@pytest.mark.parametrize(
    ("onset", "met", "verdict"),
    [
        (h.WARMUP, [], Verdict.LEAK),
        (h.WARMUP, [(100, 190), (200, 390)], Verdict.LEAK),
        (200, [], Verdict.LEAK),  # for half as long as what was before
        (200, [(150, 0)], Verdict.LEAK),
        (200, [(150, 200)], Verdict.TURNOVER),  # others that have died since
        (200, [(150, 30)], Verdict.LEAK),
        (268, [], Verdict.TOO_EARLY),  # they may always be the last 32 steps'
        (268, [(100, 64)], Verdict.TOO_EARLY),
    ],
)
def test_nodes_of_which_only_walks_know_grow_beyond_what_these_have_met(onset, met, verdict):
    assert nodes_since(onset, met=met) is verdict


@pytest.mark.parametrize("has_more", [False, True])
def test_nodes_go_with_the_buffers_that_they_came_with(has_more):
    """Results with their graphs in places at random: of these the line says that they are replaced, of nodes
    of other steps nothing does.
    """
    chance, places, ends = random.Random(1), {}, [h.NEVER] * STEPS
    for step in range(STEPS):
        place = chance.randrange(75)
        if place in places:
            ends[places[place]] = step
        places[place] = step
    kept = sorted(places.values())
    line = [(step, end, 4000) for step, end in enumerate(ends)]
    key = ("block", "cpu", 70)
    buffers = Member(None, 0, "cpu", 70, 0, len(kept), 4000 * len(kept), tuple((s, 1, 4000) for s in kept))
    series = tuple((step, 2, 1200) for step in range(h.WARMUP, STEPS) if step in kept or has_more)
    nodes = Member(None, 0, "native", 0, 0, 2 * len(series), 1200 * len(series), series)
    holder = Holder("best (dict, 150 items)", "dict", 150, None, 4096, 0, 20, 0, 0, 0)
    seen = Seen(Entry("held", (buffers, nodes), holder=holder), STEPS, {key: h.history_of(line, STEPS)})
    found = holders.judged(seen, Walk(STEPS, (seen,), (), {}, 0, True), h.WARMUP, LIMIT)
    assert (found.judgement.verdict is Verdict.LEAK) == has_more


def garbage(objects, buffers, *, every):
    """Cycles that a step makes now and then, of so many bytes each."""
    births = range(10, STEPS, every)
    sizes = (("Node", "python", objects), ("numpy.ndarray", "numpy", buffers))
    members = [
        Member(name, 1, medium, 70, 0, len(births), size * len(births), tuple((b, 1, size) for b in births))
        for name, medium, size in sizes
    ]
    return Seen(Entry("garbage", tuple(members)), STEPS, {})


@pytest.mark.parametrize(
    ("objects", "buffers", "every", "is_on", "pins"),
    [
        (500, 2000, 1, True, True),
        (500, 2000, 30, True, False),  # some 66 bytes a step
        (5000, 2000, 1, True, False),  # collections come by the number of objects
        (5000, 2000, 1, False, True),
        (5000, 0, 30, False, False),
    ],
)
def test_garbage_pins_what_is_more_than_its_objects_and_than_the_limit(objects, buffers, every, is_on, pins):
    walk = Walk(STEPS, (), (), {}, 0, is_on)
    assert holders.facts_of(garbage(objects, buffers, every=every), walk, LIMIT).pins is pins


def test_garbage_of_a_line_that_rests_pins_nothing():
    walk = Walk(STEPS, (), (), {}, 0, True)
    seen = garbage(500, 2000, every=1)
    seen = Seen(seen.entry, seen.step, {}, has_rested=True)
    assert not holders.facts_of(seen, walk, LIMIT).pins


def test_a_line_of_several_callers_has_the_survivors_of_all_of_them():
    """Each caller's part stands before the whole line."""
    whole = [h.history_of(h.leak(STEPS, share=0.5, seed=seed), STEPS) for seed in (1, 2)]
    parts = [readings.of_part(one, STEPS, one.survivors.since(200), Facts()) for one in whole]
    line = same_lines.summed(parts).facts.line
    assert line.count == sum(one.survivors.count for one in whole)


@pytest.mark.parametrize(("every", "steps"), [(2, 303), (1.5, 300), (1.2, 300)])
def test_the_rate_of_a_backlog_has_all_that_comes_with_an_item(every, steps, monkeypatch):
    """A queue, whose items are all younger than those that were taken of late: 100 bytes, and 90 beside."""
    monkeypatch.setattr(holders, "line_of_site", lambda site: site)
    taken = ((birth, math.ceil(every * birth + 12)) for birth in range(steps))
    items = [(birth, end if end < steps else h.NEVER, 100) for birth, end in taken]
    base = h.history_of(items, steps)
    base = dataclasses.replace(base, earlier=(*base.earlier[:-1], h.scan_at(items, steps - 1)))
    born = judged_steps(h.WARMUP, steps)
    series = [(birth, 1, 100) for birth, *_ in h.scan_at(items, steps).rows if birth in born]
    members = [
        Member(
            None, 0, "cpu", site, 0, len(series), size * len(series), tuple((b, 1, size) for b, *_ in series)
        )
        for site, size in ((70, 100), (80, 90))
    ]
    seen = Seen(Entry("held", tuple(members)), steps, {member.key: base for member in members})
    found = holders.judged_whole(seen, Walk(steps, (seen,), (), {}, 0, True), h.WARMUP, LIMIT)
    assert found.judgement.rate == pytest.approx(190 * (1 - 1 / every), rel=0.15)


def test_the_history_of_a_line_begins_behind_the_warm_up():
    """The core counts from its start on: what the warm-up made and kept is no rise of the floor."""
    state, lows = types.SimpleNamespace(first_step=0, width=2), tuple(range(40))
    series = types.SimpleNamespace(live=40, births=90, low=lows, high=lows)
    spans = readings.history_of(80, h.WARMUP, state, series).spans
    assert (spans.first, spans.width, spans.lows) == (7, 2, lows[3:])
    assert spans.since(7) is spans and spans.since(500).lows == lows[-1:]
