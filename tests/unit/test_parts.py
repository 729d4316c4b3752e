"""What is said of a part of a line: of what one holder keeps, and of what garbage pins."""

import histories as h
import pytest

from leakprobe.evidence import readings
from leakprobe.judge import holders, verdicts
from leakprobe.judge.entries import Seen
from leakprobe.judge.looks import Walk
from leakprobe.model.entry import Entry, Member
from leakprobe.model.history import Facts
from leakprobe.model.verdict import Verdict

STEPS, LIMIT = 300, 256.0


def part_since(onset, *, of):
    """The verdict on a holder that has what a line made from a step on."""
    whole, part = h.history_of(of, STEPS), h.scan_at([item for item in of if item[0] >= onset], STEPS)
    return verdicts.judge(readings.of_part(whole, STEPS, h.WARMUP, part, Facts())).verdict


@pytest.mark.parametrize(
    ("onset", "verdict"), [(0, Verdict.LEAK), (200, Verdict.LEAK), (268, Verdict.TOO_EARLY)]
)
def test_the_last_of_what_others_keep_may_be_a_window(onset, verdict):
    """A list of the last 32 of what a tree keeps."""
    assert part_since(onset, of=h.leak(STEPS)) is verdict


def test_what_began_late_and_has_no_elder_is_kept():
    assert part_since(268, of=h.leak(STEPS, since=268)) is Verdict.LEAK


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
