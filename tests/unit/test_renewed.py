"""What a walk met, with the numbers of a later look: only of what its holder alone keeps."""

import dataclasses

import histories as h
import pytest

from leakprobe.judge.entries import Seen
from leakprobe.judge.looks import Look, Suspect, Walk
from leakprobe.judge.renewed import as_counted, renewed, renewed_blocks
from leakprobe.judge.verdicts import judge, replaced
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


def as_of_look(every, *suspects, walked=None):
    walk = Walk(WALKED, tuple(every if walked is None else walked), (), {}, 0, True)
    return renewed(Look(LOOKED, suspects, (), ()), walk, every)


@pytest.mark.parametrize("verdict", [Verdict.LEAK, Verdict.WITHIN_EPOCH])
def test_what_one_holder_keeps_has_the_verdict_and_the_bytes_of_the_look(verdict):
    (found,) = as_of_look([seen_with(s70=40)], suspect_of(70, verdict))
    assert (found.step, found.judgement.verdict, found.entry.bytes) == (LOOKED, verdict, 100 * LOOKED)
    assert "the path is of step 40" in found.judgement.reason


def test_what_several_holders_keep_stays_as_the_walk_met_it():
    every = [seen_with(s70=20), seen_with(s70=20)]
    assert as_of_look(every, suspect_of(70)) == every


def test_parts_that_make_a_leak_together_count_once():
    parts = [seen_with(s70=20), seen_with(s70=20)]
    *_, found = as_of_look([*parts, seen_with(s70=40)], suspect_of(70), walked=parts)
    assert (found.step, found.entry.bytes) == (LOOKED, 100 * LOOKED)


@pytest.mark.parametrize(
    ("verdict", "step"), [(Verdict.WITHIN_EPOCH, LOOKED), (Verdict.LEAK, WALKED)], ids=["released", "kept"]
)
def test_what_an_epoch_releases_needs_a_holder_of_most_only(verdict, step):
    """The walk met the batch in flight elsewhere."""
    found, _ = as_of_look([seen_with(s70=12), seen_with(s70=2)], suspect_of(70, verdict))
    assert (found.step, found.judgement.verdict) == (step, verdict)


def test_a_line_beside_that_others_keep_too_is_not_charged_to_one_holder(monkeypatch):
    monkeypatch.setattr("leakprobe.judge.holders.line_of_site", lambda site: site)  # no real ones
    first, other = seen_with(s70=40, s80=10), seen_with(s80=30)
    (found, _) = as_of_look([first, other], suspect_of(70), suspect_of(80))
    assert found.entry.bytes == 100 * LOOKED + 1000
    assert found.rate == suspect_of(70).rate


@pytest.mark.parametrize("verdict", [Verdict.REPLACED, Verdict.BOUNDED])
def test_other_verdicts_of_a_look_say_nothing_of_who_keeps_it(verdict):
    every = [seen_with(s70=40)]
    assert as_of_look(every, suspect_of(70, verdict)) == every


@pytest.mark.parametrize(("verdict", "rises"), [(Verdict.WITHIN_EPOCH, False), (Verdict.LEAK, True)])
def test_whether_peaks_rise_is_told_by_the_epochs_since(verdict, rises):
    """Of the walk's epochs each was longer than the one before; those since have stopped at a length."""
    seen = seen_with(s70=40)
    peak = dataclasses.replace(seen.judgement, verdict=Verdict.WITHIN_EPOCH, peak_rises=True)
    (found,) = as_of_look([dataclasses.replace(seen, judgement=peak)], suspect_of(70, verdict))
    assert found == dataclasses.replace(seen, judgement=dataclasses.replace(peak, peak_rises=rises))
    parts = [dataclasses.replace(seen_with(s70=n), judgement=peak) for n in (10, 30, 30)]
    assert as_of_look(parts, suspect_of(70, verdict)) == parts  # no holder has most of the line


# ---- types of a line ----


def of_type(count, walked=WALKED):
    """A type with so many items of 300 bytes, at a line that makes one item a step, as a walk met it."""
    history = h.history_of(h.leak(walked), walked)
    series = ((10, count, 300 * count),)
    return Suspect(("object", 5, 70), "python", "Frame", history, judge(history), count, 300 * count, series)


def test_a_type_grows_on_with_its_share_of_the_line():
    later = h.history_of(h.leak(LOOKED), LOOKED)
    met = sum(count for _, _, count, _ in of_type(1).history.survivors.rows)
    found = as_counted(of_type(met / 2), later, judge(later))
    assert found.judgement.step == LOOKED
    assert found.count_rate == pytest.approx(0.5, rel=0.1)
    assert found.rate == pytest.approx(0.5 * 300, rel=0.1)
    assert found.live_count == pytest.approx(met / 2 * later.live / of_type(1).history.live, rel=0.1)
    assert sum(size for *_, size in found.series) == pytest.approx(300 * found.live_count, rel=0.2)


def test_a_type_that_was_walked_at_this_step_stays_as_it_was_met():
    suspect = of_type(20)
    assert as_counted(suspect, suspect.history, suspect.judgement) is suspect


def test_objects_that_one_holder_keeps_have_the_numbers_of_the_look():
    member = Member("Frame", 5, "python", 70, 0, 20, 6000, ((10, 20, 6000),))
    beside = Member("list", 6, "python", 80, 0, 40, 4000, ((10, 40, 4000),))
    judgement = judge(h.history_of(h.leak(WALKED), WALKED))
    seen = Seen(Entry("held", (member, beside)), WALKED, {}, judgement=judgement)
    later = h.history_of(h.leak(LOOKED), LOOKED)
    suspect = as_counted(of_type(20), later, judge(later))
    (found,) = as_of_look([seen], suspect)
    assert found.step == LOOKED
    assert found.entry.members[0].count == suspect.live_count
    assert found.entry.members[1].count == pytest.approx(2 * suspect.live_count, abs=2)
    assert found.rate == pytest.approx(suspect.rate + 200 * suspect.count_rate)


def test_a_suspect_that_no_scan_has_counted_since_the_walk_tells_nothing_new():
    member = Member("Frame", 5, "python", 70, 0, 20, 6000, ((10, 20, 6000),))
    seen = Seen(Entry("held", (member,)), WALKED, {}, judgement=judge(h.history_of(h.leak(WALKED), WALKED)))
    assert as_of_look([seen], of_type(20)) == [seen]


def test_an_object_has_what_it_owns_outside_of_python_too():
    """Of a tensor's 450 bytes the line of the wrappers knows 300; causes are told by what the walk met."""
    member = Member("Frame", 5, "python", 70, 0, 20, 20 * 450, ((10, 20, 6000),))
    entry = Entry("held", (member,))
    seen = Seen(entry, WALKED, {}, judgement=judge(h.history_of(h.leak(WALKED), WALKED)))
    later = h.history_of(h.leak(LOOKED), LOOKED)
    suspect = as_counted(of_type(20), later, judge(later))
    (found,) = as_of_look([seen], suspect)
    assert found.rate == pytest.approx(1.5 * suspect.rate)
    assert found.entry.bytes == pytest.approx(450 * suspect.live_count)
    assert found.as_met is entry


def test_large_items_of_the_warm_up_are_in_no_size_of_what_came_since():
    """40 items of 200,000 bytes in step 2, one of 2,000 in each step; scans know no sizes."""
    first = [(2, h.NEVER, 100)] * 40
    walked, later = (h.history_of([*first, *h.leak(steps)], steps) for steps in (WALKED, LOOKED))
    series = ((2, 40, 8_000_000), *((birth, 1, 2000) for birth in range(WALKED)))
    size = sum(size for *_, size in series)
    suspect = Suspect(
        ("object", 5, 70), "python", "Frame", walked, judge(walked), walked.live, size, sorted(series)
    )
    found = as_counted(suspect, later, judge(later))
    assert found.rate == pytest.approx(2000, rel=0.05)
    assert found.live_count == later.live
    assert found.live_bytes == pytest.approx(8_000_000 + 2000 * LOOKED, rel=0.01)


def test_what_had_rested_when_it_was_let_go_is_as_of_the_look_that_judged_it():
    """The look was moved to the mark at which the rest went; this line's numbers are older."""
    suspect = dataclasses.replace(suspect_of(70), history=h.history_of(h.leak(180), 180))
    suspect = dataclasses.replace(suspect, judgement=judge(suspect.history))
    (found,) = as_of_look([seen_with(s70=40)], suspect)
    assert found.step == 180


def larger_of(site, steps=WALKED):
    """A holder of a block that gives way to larger ones, as a walk met it, and its suspect."""
    sizes = [(step, 1, 1000 * step) for step in range(10, steps, 4)]
    history = dataclasses.replace(h.history_of(h.leak(steps), steps), sizes=tuple(sizes))
    judgement = replaced(history)
    member = Member(None, 0, "cpu", site, 0, 1, sizes[-1][2], ((10, 1, 10_000),))
    seen = Seen(Entry("held", (member,)), WALKED, {key_of(site): history}, judgement=judgement)
    return seen, Suspect(key_of(site), "cpu", None, history, judgement, 1, sizes[-1][2], ())


def test_a_block_that_gives_way_to_larger_ones_is_as_of_the_look():
    met, _ = larger_of(70)
    later = larger_of(70, LOOKED)[1]
    walk = Walk(WALKED, (), (met,), {}, 0, True)
    (found,) = renewed_blocks(Look(LOOKED, (later,), (), ()), walk)
    assert (found.step, found.entry.bytes) == (later.judgement.step, later.live_bytes)
    assert "the path is of step 40" in found.judgement.reason


@pytest.mark.parametrize("settled", [frozenset(), frozenset({70})])
def test_what_the_look_no_longer_knows_as_larger_has_stopped(settled):
    met, _ = larger_of(70)
    walk = Walk(WALKED, (), (dataclasses.replace(met, grown_site=70),), {}, 0, True)
    (found,) = renewed_blocks(Look(LOOKED, (), (), settled=settled), walk)
    assert found.judgement.verdict is Verdict.STOPPED and found.judgement.bytes_per_step is None
