"""What a walk met, with the numbers of a later look: only of what its holder alone keeps."""

import dataclasses

import histories as h
import pytest

from leakprobe.judge.entries import Seen
from leakprobe.judge.looks import Look, Suspect, Walk
from leakprobe.judge.renewed import renewed
from leakprobe.judge.verdicts import judge
from leakprobe.model.entry import Entry, Member
from leakprobe.model.verdict import Verdict

WALKED, LOOKED = 40, 200


def key_of(site):
    return ("block", "cpu", site)


def seen_with(**counts):
    """A leak of lines (s70=40: site 70, 40 blocks of 100 bytes), the first of which has most."""
    members = tuple(
        Member(None, 0, "cpu", int(name[1:]), 0, count, 100 * count, ((10, count, 100 * count),))
        for name, count in counts.items()
    )
    judgement = judge(h.history_of(h.leak(WALKED), WALKED))
    return Seen(Entry("held", members), WALKED, {}, judgement=judgement)


def suspect_of(site, verdict=Verdict.LEAK):
    history = h.history_of(h.leak(LOOKED), LOOKED)
    judgement = dataclasses.replace(judge(history), verdict=verdict)
    return Suspect(key_of(site), "cpu", None, history, judgement, LOOKED, 100 * LOOKED, ())


def as_of_look(every, *suspects):
    walk = Walk(WALKED, tuple(every), (), {}, 0, True)
    return renewed(Look(LOOKED, suspects, (), ()), walk, every)


@pytest.mark.parametrize("verdict", [Verdict.LEAK, Verdict.WITHIN_EPOCH])
def test_what_one_holder_keeps_has_the_verdict_and_the_bytes_of_the_look(verdict):
    (found,) = as_of_look([seen_with(s70=40)], suspect_of(70, verdict))
    assert (found.step, found.judgement.verdict, found.entry.bytes) == (LOOKED, verdict, 100 * LOOKED)
    assert "the path is of step 40" in found.judgement.reason


def test_what_several_holders_keep_stays_as_the_walk_met_it():
    every = [seen_with(s70=20), seen_with(s70=20)]
    assert as_of_look(every, suspect_of(70)) == every


@pytest.mark.parametrize(
    ("verdict", "step"), [(Verdict.WITHIN_EPOCH, LOOKED), (Verdict.LEAK, WALKED)], ids=["released", "kept"]
)
def test_what_an_epoch_releases_needs_a_holder_of_most_only(verdict, step):
    """The walk met the batch in flight elsewhere."""
    found, _ = as_of_look([seen_with(s70=12), seen_with(s70=2)], suspect_of(70, verdict))
    assert (found.step, found.judgement.verdict) == (step, verdict)


def test_a_line_beside_that_others_keep_too_is_not_charged_to_one_holder():
    first, other = seen_with(s70=40, s80=10), seen_with(s80=30)
    (found, _) = as_of_look([first, other], suspect_of(70), suspect_of(80))
    assert found.entry.bytes == 100 * LOOKED + 1000
    assert found.rate == suspect_of(70).rate


@pytest.mark.parametrize("verdict", [Verdict.REPLACED, Verdict.BOUNDED])
def test_other_verdicts_of_a_look_say_nothing_of_who_keeps_it(verdict):
    every = [seen_with(s70=40)]
    assert as_of_look(every, suspect_of(70, verdict)) == every
