"""Verdicts on histories of births and deaths."""

import collections
import dataclasses
import itertools
import math
import random
import statistics

import histories as h
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from leakprobe.evidence import cohorts, readings, shapes, trends
from leakprobe.judge import cases, rates, verdicts
from leakprobe.model import bounds, thresholds
from leakprobe.model.history import Facts, History, Survivors, judged_steps
from leakprobe.model.verdict import Judgement, Verdict

LEAK, TURNOVER, TOO_EARLY = Verdict.LEAK, Verdict.TURNOVER, Verdict.TOO_EARLY


def judged(items, step, **more) -> Judgement:
    return verdicts.judge(h.history_of(items, step, **more))


# -- growth


@pytest.mark.parametrize("steps", [60, 300, 1000, 5000])
def test_what_is_kept_each_step_is_a_leak(steps):
    found = judged(h.leak(steps), steps)
    assert found.verdict is LEAK
    assert found.onset == h.WARMUP
    assert found.bytes_per_step.value == pytest.approx(100, rel=0.02)
    assert found.bytes_per_step.low <= 100 <= found.bytes_per_step.high
    assert found.count_per_step == pytest.approx(1, rel=0.02)
    assert "none of them was freed" in found.reason


def test_one_old_item_that_died_is_not_denied():
    """It does not count against the others, but the reason does not say that there was none."""
    items = h.leak(300)
    birth, _, *rest = items[150]
    found = judged([*items[:150], (birth, 290, *rest), *items[151:]], 300)
    assert found.verdict is LEAK
    assert "hardly any of them was freed" in found.reason


@pytest.mark.parametrize("steps", [40, 100, 1000])
@pytest.mark.parametrize("early", [2, 4, 8])
def test_what_was_taken_ahead_of_the_end_is_no_rest(early, steps):
    """A queue is emptied before its last items are used: as many steps bring nothing."""
    last = steps - early
    ahead = [(last, h.NEVER, 100) for _ in range(early - 1)]
    passing = [(birth, birth + 1, 100) for birth in range(steps)]
    assert judged([*h.leak(last), *ahead, *passing], steps - 1).verdict is LEAK


def test_what_was_taken_ahead_does_not_hide_the_end_for_ever():
    items = [*h.leak(100), *[(100, h.NEVER, 100) for _ in range(20)]]
    assert judged(items, 150).verdict is Verdict.STOPPED


@pytest.mark.parametrize("share", [0.7, 0.5, 0.3, 0.1])
def test_a_leak_at_random_is_found_with_its_rate(share):
    items = h.leak(400, share=share, seed=3)
    found = judged(items, 400)
    true = 100 * sum(birth >= h.WARMUP for birth, *_ in items) / (400 - h.WARMUP)
    assert found.verdict is LEAK
    assert found.bytes_per_step.value == pytest.approx(true, rel=0.1)


@pytest.mark.parametrize(("since", "steps"), [(30, 100), (100, 170), (240, 300), (1000, 1250), (5000, 6250)])
def test_a_late_onset_is_found_a_quarter_later(since, steps):
    found = judged(h.leak(steps, since=since), steps)
    assert found.verdict is LEAK
    assert abs(found.onset - since) <= 10
    assert found.bytes_per_step.value == pytest.approx(100, rel=0.2)


def test_a_leak_beside_a_ring_of_the_same_line():
    found = judged(h.leak(300, share=0.4) + h.ring(300, 30), 300)
    assert found.verdict is LEAK
    assert found.bytes_per_step.value == pytest.approx(40, rel=0.2)
    assert "that were freed had lived" in found.reason


def full_store(full: int, steps: int, age: int, leak: float = 0.0):
    """One a step until ``full``, then one in two, each for one of ``age`` steps; ``leak``: of the other
    steps' items this share stays.
    """
    died = {step - age: step for step in range(full, steps, 2)}
    others = random.Random(1)
    return [
        (birth, died.get(birth, h.NEVER), 100)
        for birth in range(steps)
        if birth < full or birth % 2 == full % 2 or others.random() < leak
    ]


@pytest.mark.parametrize(("full", "steps", "age"), [(168, 250, 90), (300, 450, 140), (700, 1000, 300)])
def test_a_store_is_full_once_its_count_is_level_although_what_died_was_young(full, steps, age):
    assert judged(full_store(full, steps, age), steps).verdict is TURNOVER
    assert judged(full_store(full, steps, age, leak=0.5), steps).verdict is LEAK


def epochs_that_get_longer(steps: int, jitter: float = 0.0, seed: int = 0):
    """Three items at the end of each epoch; each epoch is a step longer than the one before."""
    draw, step, length, items = random.Random(seed), 4.0, 5, []
    while step < steps:
        items += [(int(step), h.NEVER, 100)] * 3
        step += length * draw.uniform(1 - jitter, 1 + jitter)
        length += 1
    return items


@pytest.mark.parametrize("jitter", [0, 0.25])
@pytest.mark.parametrize("steps", [600, 1000, 3000])
def test_a_rhythm_that_gets_slower_is_no_cache_that_fills(steps, jitter):
    rhythm = epochs_that_get_longer(steps, jitter)
    assert judged(rhythm, steps).verdict is LEAK
    found = []
    for seed in range(10):
        draw = random.Random(seed)
        by_chance = [(int(steps * draw.random() ** 2), h.NEVER, 100) for _ in rhythm]
        found.append(judged(sorted(by_chance), steps).verdict)
    assert found.count(Verdict.FILLING) >= 8


@pytest.mark.parametrize("ramp", [40, 100, 300])
def test_growth_from_zero_again_is_found_once_it_is_longer_than_what_was_released(ramp):
    def released_once(steps):
        items = [(i, ramp if i < ramp else h.NEVER, 100) for i in range(steps)]
        return judged(items, steps)

    assert released_once(2 * ramp).verdict is TURNOVER
    found = released_once(4 * ramp)
    assert found.verdict is LEAK
    assert abs(found.onset - ramp) <= 10
    assert found.bytes_per_step.value == pytest.approx(100, rel=0.2)


def shape(rate, steps=400, seed=0):
    """(shares of the time, amounts) of births at a rate by share of the time."""
    draw = random.Random(seed)
    born = [i for i in range(steps) if draw.random() < rate((i + 0.5) / steps)]
    return [(i + 1) / steps for i in born], [1.0] * len(born)


def test_a_step_down_is_told_from_what_gets_rare():
    def powers(rate):
        found = 0
        for seed in range(20):
            shares, amounts = shape(rate, seed=seed)
            exponent = len(shares) / sum(-math.log(share) for share in shares)
            found += shapes.is_power(shares, amounts, exponent, len(shares))
        return found

    assert powers(lambda share: 0.15 * share**-0.4) >= 17
    assert powers(lambda share: 0.9 if share < 0.5 else 0.3) <= 1


def test_a_backlog_whose_oldest_die_rises_by_its_floor():
    items = [(i // 2, i if i < 300 else h.NEVER, 100) for i in range(600)]
    found = judged(items, 300)
    assert found.verdict is LEAK
    assert "the number alive rises even at its lowest points" in found.reason
    assert found.bytes_per_step.value == pytest.approx(100, rel=0.1)


def window_of_bytes(steps, size_at, most):
    """The newest items that have no more than so many bytes together: size_at(step) each."""
    items, head, total = [], 0, 0
    for step in range(steps):
        items.append([step, h.NEVER, size_at(step)])
        total += items[-1][2]
        while total > most:
            items[head][1] = step
            total, head = total - items[head][2], head + 1
    return items


@pytest.mark.parametrize("steps", [100, 300, 1000])
def test_a_window_of_so_many_bytes_is_level_while_its_items_get_smaller(steps):
    """Their number trebles."""
    chance = random.Random(steps)
    items = window_of_bytes(
        steps, lambda step: 1000 * chance.uniform(0.6, 1.4) * (1 - 0.66 * step / steps), 150 * steps
    )
    assert judged(items, steps).verdict is TURNOVER
    floor = cases.cases_of(h.history_of(items, steps))[-1]
    assert "more of them, but smaller ones" in verdicts.rule_of(floor).reason(floor)
    assert judged([(birth, death, 100) for birth, death, _ in items], steps).verdict is LEAK


@pytest.mark.parametrize("steps", [300, 1000])
@pytest.mark.parametrize("seed", range(8))
def test_a_backlog_is_a_leak_whatever_its_sizes(steps, seed):
    """Of sizes with a heavy tail, one that is gone may weigh as much as all that have come."""
    chance = random.Random(seed)
    items = [(step, 2 * step + 3, 1000 * chance.paretovariate(1.2)) for step in range(steps)]
    assert judged(items, steps).verdict is LEAK


def test_a_leak_that_begins_behind_a_filled_cache_has_its_own_onset():
    found = judged(h.leak(40) + h.leak(400, since=250), 400)
    assert found.verdict is LEAK
    assert abs(found.onset - 250) <= 15


def in_order(steps, onset, seed=0):
    """Three results in two steps, each handed on when it and all before it are done; one never comes."""
    chance, items, done = random.Random(seed), [], 0
    for step in range(steps):
        for _ in range(1 + step % 2):
            done = max(done, step + min(12, int(chance.expovariate(0.25))))
            items.append((step, done if step < onset else h.NEVER, 100))
    return items


@pytest.mark.parametrize("seed", range(8))
def test_a_late_onset_after_turnover_is_found_although_many_ramps_were_lost(seed):
    items = in_order(300, 210, seed)
    assert judged(items, 300).verdict is LEAK
    assert judged(items, 230).verdict is not LEAK


@pytest.mark.parametrize("seed", [1, 5])
def test_a_late_onset_after_turnover_is_where_the_floor_bent(seed):
    """The floor of the whole run is level with one seed, and a ramp like others with the other one."""
    found = judged(in_order(300, 210, seed), 300)
    assert abs(found.onset - 210) <= 10
    assert found.bytes_per_step.value == pytest.approx(150, rel=0.15)


def test_an_onset_after_turnover_counts_where_it_stands_above_all_that_was():
    """Twice the most that was lost, for a quarter of the steps before."""

    def late(height, since):
        before = [(s, s + 3 + s % 7, 100) for s in range(since)] + [(100, 140, 100)] * height
        history = h.history_of([*before, *h.leak(400, since=since)], 400)
        return cases.late_case(cases.cases_of(history)[-1])

    assert late(0, 300) is not None
    assert late(60, 300) is None
    assert late(0, 340) is None


# -- turnover


@pytest.mark.parametrize(
    "items",
    [
        h.ring(300, 20),
        h.ring(300, 100),
        h.slots(300, 30),
        h.sawtooth(300, range(25, 300, 25)),
        h.sawtooth(300, range(60, 300, 60)),
        h.sawtooth(300, [12, 70, 95, 170, 210, 270]),
        [(s, s + 1, 100 * (s // 20 + 1)) for s in range(300) for _ in range(1 + s // 20)],
        [(s, s + random.Random(s).randrange(1, 31), 100) for s in range(300)],
        [(s, s + 10, 100) for s in range(300) for _ in range(1 + s // 20)],
    ],
    ids=[
        "ring",
        "long ring",
        "slots",
        "sawtooth",
        "long sawtooth",
        "uneven",
        "batch that grows",
        "in flight",
        "demand that grows",
    ],
)
def test_turnover_is_no_growth(items):
    found = judged(items, 300)
    assert found.verdict in {TURNOVER, Verdict.STOPPED, Verdict.FILLING}
    assert found.bytes_per_step is None and not found.is_finding


def test_a_fill_that_ended_has_stopped():
    found = judged(h.leak(120), 300)
    assert found.verdict is Verdict.STOPPED
    assert "nothing was added in the last 1" in found.reason


def test_results_that_keep_their_graph_are_no_cache_whose_keys_get_rare():
    """An agent that learns: its episodes get shorter, and each leaves its losses with their graphs."""
    items = [(i, h.NEVER, 100) for i in range(300) for _ in range(3 + round(14 * 0.97**i))]
    assert judged(items, 300).verdict is Verdict.FILLING
    assert judged(items, 300, facts=Facts(has_graph=True)).verdict is LEAK


def test_a_cache_that_meets_its_keys_is_filling_and_its_end_foreseen():
    found = judged(h.keys_met(300, 240, 2), 300)
    assert found.verdict is Verdict.FILLING
    assert found.foreseen == pytest.approx(240, rel=0.15)
    assert "fewer and fewer" in found.reason


def test_a_handful_says_nothing():
    assert judged(h.leak(300)[::60], 300).verdict is TOO_EARLY
    assert judged(h.leak(12), 12).verdict is TOO_EARLY
    assert judged([], 11).verdict is TOO_EARLY


@pytest.mark.parametrize("every, steps", [(2, 13), (2, 17), (3, 25), (4, 30)])
def test_what_is_kept_now_and_then_of_a_short_run_is_no_turnover(every, steps):
    """The others die at once: they say nothing of those that stay."""
    items = [(step, h.NEVER if step % every == 0 else step, 1000) for step in range(steps)]
    assert judged(items, steps).verdict is TOO_EARLY


@pytest.mark.parametrize("life, steps", [(2, 20), (4, 20), (8, 20), (8, 13)])
def test_a_window_of_a_short_run_is_turnover(life, steps):
    items = [(step, step + life, 1000) for step in range(steps)]
    assert judged(items, steps).verdict is TURNOVER


def test_what_was_made_once_has_stopped():
    assert judged(h.leak(22, since=20), 300).verdict is Verdict.STOPPED
    assert judged([], 300).verdict is TURNOVER


# -- what holders know


def test_a_holder_with_a_limit_is_bounded():
    found = judged(h.leak(300), 300, facts=Facts(bound=5000, length=300))
    assert found.verdict is Verdict.BOUNDED
    assert "5,000" in found.reason and found.foreseen == 5000


def test_garbage_waits_unless_nothing_frees_it():
    assert judged(h.leak(300), 300, facts=Facts(is_garbage=True)).verdict is Verdict.WAITING
    assert judged(h.leak(300), 300, facts=Facts(is_garbage=True, pins=True)).verdict is LEAK
    assert judged(h.leak(300), 300, facts=Facts(is_garbage=True, is_collectable=False)).verdict is LEAK


def enlarged(steps, grow):
    return [(step, step + 1, grow(step)) for step in range(steps)]


def test_one_block_that_is_enlarged_each_step():
    found = judged(enlarged(300, lambda step: 900 * (step + 1)), 300)
    assert found.verdict is Verdict.REPLACED
    assert found.bytes_per_step.value == pytest.approx(900, rel=0.05)
    assert abs(found.onset - h.WARMUP) <= 10


@pytest.mark.parametrize(
    "grow", [lambda step: 5000, lambda step: 900 * min(step, 100), lambda step: 10 + step % 7]
)
def test_one_block_that_is_replaced_by_its_like(grow):
    assert judged(enlarged(300, grow), 300).verdict is TURNOVER


def parts_by_key(steps, places, seed=0):
    """In each step one of several blocks gives way to one that is larger."""
    chance, sizes, births, items = random.Random(seed), [0] * places, [0] * places, []
    for step in range(steps):
        place = chance.randrange(places)
        if sizes[place]:
            items.append((births[place], step, sizes[place]))
        births[place], sizes[place] = step, sizes[place] + chance.randrange(1, 900)
    return items + [(birth, h.NEVER, size) for birth, size in zip(births, sizes) if size]


@pytest.mark.parametrize("places", [1, 3, 9])
def test_some_blocks_that_are_enlarged_in_turns(places):
    found = judged(parts_by_key(300, places), 300)
    assert found.verdict is Verdict.REPLACED
    assert found.bytes_per_step.value == pytest.approx(450, rel=0.2)


def segments(steps, seed, least=4):
    """(step, count, bytes) at some marks: those of a level are joined into one of the next, so that bytes add
    up, and their number rises ever more slowly.
    """
    chance, levels, rows, next_mark = random.Random(seed), [[] for _ in range(20)], [], 8
    for step in range(1, steps + 1):
        levels[0].append(chance.randrange(300, 900))
        for below, level in itertools.pairwise(levels):
            if len(below) == least:
                level.append(sum(below))
                below.clear()
        joined = [size for level in levels[1:] for size in level]
        if step == next_mark:
            rows.append((step, len(joined), sum(joined)))
            next_mark = step + (max(1, step // 12) if chance.random() < 0.8 else 1)
    return rows


def test_segments_that_are_joined_are_larger_whichever_marks_were_read():
    assert all(verdicts.are_larger(segments(200, seed)) for seed in range(300))


@pytest.mark.parametrize(
    ("sizes", "rate"),
    [
        ([(10, 8000), (16, 12_800)], 800),
        ([(10, 8000), (13, 10_400), (16, 12_800), (19, 15_200), (22, 17_600)], 800),
        ([(10, 8000), (13, 8000)], None),
        ([(10, 8000)], None),
        ([(3, 8000), (13, 10_400)], None),  # of the warm-up
        ([(10, 8000), (13, 10_400), (16, 9000), (19, 15_200)], None),
        ([(6 + i, 1000 * i) for i in range(1, 14)], None),  # enough for a verdict
        ([(10, 9000), (13, 13_000), (16, 15_000), (19, 17_000), (22, 21_000)], 1000),
        ([(10, 9000), (13, 13_000), (16, 15_000), (19, 18_000), (20, 18_000)], 1000),  # the last soon after
    ],
)
def test_blocks_that_were_larger_at_each_of_few_readings(sizes, rate):
    history = dataclasses.replace(h.history_of([], 22), sizes=tuple((step, 1, size) for step, size in sizes))
    assert verdicts.rise_of_few(history) == rate


def test_copies_of_one_that_gets_longer():
    """Their number is random, so that of their bytes alone nobody could say."""
    chance = random.Random(1)
    items = [(s, s + 1 + chance.randrange(3), 900 + 90 * s) for s in range(300) for _ in range(2)]
    assert judged(items, 300).verdict is Verdict.REPLACED


def pool(steps, places, seed):
    """In each step one of several blocks gives way to one of any size, some of them very large."""
    chance, births, items = random.Random(seed), [0] * places, []
    for step in range(steps):
        place = chance.randrange(places)
        items.append((births[place], step, chance.paretovariate(1.5)))
        births[place] = step
    return items + [(birth, h.NEVER, chance.paretovariate(1.5)) for birth in births]


def test_a_pool_of_random_sizes_is_turnover():
    found = [judged(pool(100, 4 + seed % 20, seed), 100).verdict for seed in range(200)]
    assert Verdict.REPLACED not in found


def walk(steps, seed, drift=0.0):
    chance = random.Random(seed)
    return list(enumerate(itertools.accumulate(chance.gauss(drift, 1) for _ in range(steps))))


def test_a_walk_drifts_as_often_as_the_risk_has_it():
    """One in a hundred of 4,000: 40, with a deviation of 6.3."""
    assert 20 <= sum(trends.drifts(walk(14, seed), 0.01) for seed in range(4000)) <= 60
    assert all(trends.drifts(walk(14, seed, drift=3), 0.01) for seed in range(100))
    assert not trends.drifts(walk(14, 1, drift=-3), 0.01)


def test_an_exact_line_drifts_and_too_few_points_do_not():
    assert trends.drifts([(0, 0), (10, 5), (30, 15)], 0.001)
    assert not trends.drifts([(0, 0), (10, 5)], 0.001) and not trends.drifts([], 0.001)


def test_a_larger_batch_that_carries_nothing_over():
    items = enlarged(300, lambda step: 900 * (step + 1))
    assert judged(items, 300, facts=Facts(carries_over=False)).verdict is TURNOVER


def test_growth_within_epochs_is_found_with_slope_and_peak():
    ends = range(60, 301, 60)
    found = judged(h.sawtooth(290, ends, size=20_000), 290, epochs=[e for e in ends if e < 290])
    assert found.verdict is Verdict.WITHIN_EPOCH
    assert found.bytes_per_step.value == pytest.approx(20_000, rel=0.1)
    assert 55 <= found.peak <= 61 and found.onset == 240


def test_growth_within_epochs_is_found_at_the_mark_that_ends_one():
    ends = range(60, 301, 60)
    found = judged(h.sawtooth(301, ends), 301, epochs=ends)
    assert found.verdict is Verdict.WITHIN_EPOCH


def ends_of(lengths):
    return list(itertools.accumulate(lengths))


@pytest.mark.parametrize(
    ("lengths", "rises"),
    [
        ([40, 60, 80, 100, 120], True),
        ([40, 40, 60, 60, 90], True),
        ([60, 60, 60, 60, 60], False),
        ([80, 20, 80, 20, 80], False),  # evaluations beside epochs
        ([120, 100, 80, 60, 60], False),
        ([60, 62, 64, 66, 68], False),
        ([20, 40, 60, 80, 80, 80, 80, 80, 80, 80], False),  # a curriculum that has reached its length
        ([20, 40, 60, 60, 80, 80, 100], True),
    ],
)
def test_the_peak_rises_where_epochs_get_longer(lengths, rises):
    *ends, last = ends_of(lengths)
    found = judged(h.sawtooth(last - 5, [*ends, last]), last - 5, epochs=ends)
    assert found.verdict is Verdict.WITHIN_EPOCH and found.peak_rises is rises


def test_epochs_in_which_nothing_is_kept_do_not_count():
    """The last two that are over are evaluations, and longer."""
    ends = ends_of([60, 60, 60, 90, 120])
    items = [item for item in h.sawtooth(435, ends) if not 180 <= item[0] < 390]
    found = judged(items, 435, epochs=ends)
    assert found.verdict is Verdict.WITHIN_EPOCH and not found.peak_rises


def test_a_ring_across_epochs_is_not_within_one():
    assert judged(h.ring(290, 20), 290, epochs=range(60, 290, 60)).verdict is TURNOVER


# -- totals


def total_of(values, warmup=5) -> History:
    return History(len(values) - 1, warmup, values[-1], h.fold(values[warmup:], warmup))


def noisy(steps, rate, noise, seed=1, level=1e6):
    chance = random.Random(seed)
    return [level + rate * step + chance.uniform(0, noise) for step in range(steps)]


def test_a_total_that_rises_is_growth_with_the_interval_of_its_slope():
    found = verdicts.judge(total_of(noisy(400, 50, 1000)))
    assert found.verdict is LEAK
    assert found.bytes_per_step.low <= 50 <= found.bytes_per_step.high
    assert found.bytes_per_step.value == pytest.approx(50, rel=0.05)


@pytest.mark.parametrize("seed", range(20))
def test_a_level_total_is_none(seed):
    assert verdicts.judge(total_of(noisy(400, 0, 1000, seed))).verdict is not LEAK


def test_a_total_that_levels_off_is_none():
    values = [1e6 + 4000 * min(step, 150) for step in range(400)]
    assert verdicts.judge(total_of(values)).verdict is Verdict.STOPPED


def test_descriptors_at_every_third_step():
    found = verdicts.judge(total_of([20 + step // 3 for step in range(300)]))
    assert found.verdict is LEAK and found.bytes_per_step.value == pytest.approx(1 / 3, rel=0.05)


# -- properties


SHARES = st.sampled_from([0.3, 0.6, 1.0])
SEEDS = st.integers(0, 10_000)


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(["leak", "slots", "ring"]), SEEDS, st.integers(2, 9))
def test_more_of_each_item_changes_nothing_but_the_rate(kind, seed, times):
    items = {
        "leak": h.leak(250, share=0.4, seed=seed),
        "slots": h.slots(250, 40, seed),
        "ring": h.ring(250, 30),
    }[kind]
    one, more = judged(items, 250), judged([item for item in items for _ in range(times)], 250)
    assert (more.verdict, more.onset) == (one.verdict, one.onset)
    if one.bytes_per_step:
        assert more.bytes_per_step.value == pytest.approx(times * one.bytes_per_step.value)


@settings(max_examples=25, deadline=None)
@given(SHARES, SEEDS, st.integers(0, 3000))
@example(0.6, 73, 1)  # an onset half-way between two steps
def test_the_time_at_which_a_watch_begins_changes_nothing(share, seed, shift):
    items = h.leak(260, share=share, since=60, seed=seed)
    one = judged(items, 260)
    moved = judged([(b + shift, d, size) for b, d, size in items], 260 + shift, shift=shift)
    assert moved.verdict is one.verdict
    assert moved.onset == (one.onset + shift if one.onset is not None else None)
    if one.bytes_per_step:
        assert moved.bytes_per_step.value == pytest.approx(one.bytes_per_step.value)


@settings(max_examples=25, deadline=None)
@given(SHARES, SEEDS, st.integers(1, 60), st.integers(1, 5))
def test_turnover_beside_it_hides_no_leak(share, seed, length, count):
    """Where chance lets the leak rest at its end, or slow down before that by itself, one of some hundreds in
    three steps of ten, it is no leak either that turnover hides.
    """
    kept = h.leak(300, share=share, seed=seed)
    *_, (last, _, _) = kept
    assume(last >= 285)
    assume(judged([item for item in kept if item[0] < 300 - length], 300 - length).verdict is LEAK)
    assert judged(kept + h.ring(300, length) * count, 300).verdict is LEAK


@settings(max_examples=25, deadline=None)
@given(SEEDS, st.floats(0.5, 100))
def test_the_unit_of_a_size_changes_nothing(seed, factor):
    items = h.leak(200, share=0.5, seed=seed)
    one, other = judged(items, 200), judged([(b, d, factor * size) for b, d, size in items], 200)
    assert one.verdict is other.verdict is LEAK
    assert other.bytes_per_step.value == pytest.approx(factor * one.bytes_per_step.value)


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_who_dies_changes_no_verdict_on_a_backlog(seed):
    """Two are born and one dies a step: the oldest, the newest, or any."""
    for pick in (lambda n, r: 0, lambda n, r: n - 1, lambda n, r: r.randrange(n)):
        chance, waiting, items = random.Random(seed), [], []
        for step in range(300):
            waiting += [step, step]
            items.append((waiting.pop(pick(len(waiting), chance)), step, 100))
        found = judged(items + [(birth, h.NEVER, 100) for birth in waiting], 300)
        assert found.verdict is LEAK
        assert found.bytes_per_step.value == pytest.approx(100, rel=0.2)


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.integers(1, 40))
def test_clearing_it_all_at_random_is_never_found_in_full_swing(seed, mean):
    chance, clearings, step = random.Random(seed), [], 0
    while step < 400:
        step += 1 + chance.randrange(2 * mean)
        clearings.append(step)
    found = judged(h.sawtooth(400, clearings), 400)
    assert found.verdict is not LEAK or len(clearings) < 4


# -- parts


def test_what_died_in_the_warm_up_was_no_ramp_that_was_lost():
    """Spans begin with the hooks: one item that goes of five is no filling and emptying."""
    items = [(step, h.NEVER, 1000) for step in range(100)] + [(0, 3, 1000), (1, 3, 1000)]
    live = [len(h.alive_at(items, mark)) for mark in range(101)]
    assert live[4] < live[3]
    history = dataclasses.replace(h.history_of(items, 100), spans=h.fold(live[1:], 1))
    assert verdicts.judge(history).verdict is LEAK


def test_a_short_backlog_of_before_is_no_ramp_that_was_lost():
    """A queue is served, once four steps late, until nobody serves it any more."""
    served = [(step, max(step + 1, 53 if 49 <= step < 53 else 0), 100) for step in range(90) for _ in "ab"]
    kept = [(step, h.NEVER, 100) for step in range(90, 320) for _ in "ab"]
    assert judged([*served, *kept], 320).verdict is LEAK
    teeth = h.sawtooth(320, range(40, 320, 40))
    assert judged(teeth, 319).verdict is TURNOVER


def test_what_is_in_flight_is_no_ramp_that_was_lost():
    """Of what arrives in each step one item is kept and up to two wait for their use, as batches do."""
    kept = [(step, h.NEVER, 1000) for step in range(100)]
    used = [(step, step + 1 + step % 2, 1000) for step in range(100)]
    live = [len(h.alive_at(kept + used, mark)) for mark in range(101)]
    plain = h.history_of(kept + used, 100)
    history = dataclasses.replace(plain, spans=h.fold([0, 3, 0, *live[3:]], 1))
    assert verdicts.judge(history).verdict is LEAK


@pytest.mark.parametrize(("seed", "keys"), [(0, 400), (1, 200), (2, 800), (4, 400)])
def test_what_may_wait_in_flight_is_no_age_that_something_died_at(seed, keys):
    """A cache whose keys get rare, of which nothing is ever freed, is the same beside a DataLoader."""
    chance, cached = random.Random(seed), {}
    for step in range(100):
        for key in chance.choices(range(keys), [1 / (key + 1) for key in range(keys)], k=4):
            cached.setdefault(key, (step, h.NEVER, 100))
    history = h.history_of(list(cached.values()), 100)
    waits = (dataclasses.replace(history, age=steps, flight=steps) for steps in (0, 3, 6))
    assert [verdicts.judge(one).verdict for one in waits] == 3 * [Verdict.FILLING]


def test_a_ring_that_was_called_a_leak_while_it_filled_is_turnover_later():
    assert judged(h.ring(60, 100), 60).verdict is LEAK
    assert [judged(h.ring(step, 100), step).verdict for step in (150, 300)] == [TURNOVER, TURNOVER]


@pytest.mark.parametrize("losses", range(1, 30))
def test_how_much_longer_a_ramp_must_be(losses):
    """Renyi's chance that one more exponential time outlasts c times the longest of so many, at and below the
    number given.
    """

    def chance(c):
        return math.prod(i / (i + c) for i in range(1, losses + 1))

    c = verdicts.times_longer(losses)
    assert chance(c) <= thresholds.RISK < chance(c - 1)


def test_levels_that_were_lost():
    spans = h.fold([1, 2, 3, 0, 1, 2, 3, 4, 2, 3], 100)
    lost = cohorts.losses_of(spans, 0, 1000)
    assert [(x.mark, x.size, x.age, x.ramp) for x in lost] == [(103, 3, 3, 4), (108, 2, 2, 4)]
    assert cohorts.losses_of(spans, 104, 1000)[0].mark == 108


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 4)), unique_by=lambda row: row[0], max_size=12),
    st.data(),
)
def test_deaths_between_two_scans(cohort, data):
    before = Survivors(40, tuple((b, b, n, n) for b, n in sorted(cohort)))
    left = {b: data.draw(st.integers(0, n)) for b, n in cohort}
    fine = Survivors(50, tuple((b, b, left[b], 0) for b, _ in sorted(cohort) if left[b]))
    died = [b for b, n in sorted(cohort) if left[b] < n]
    expected = 40 - died[0] - 1 if died else 0
    assert cohorts.oldest_between(before, fine, 0) == expected
    pairs = [(k, [b for b in left if b // 2 == k]) for k in range(16)]
    coarse = [
        (2 * k, 2 * k + 1, sum(left[b] for b in births), 0)
        for k, births in pairs
        if any(left[b] for b in births)
    ]
    assert abs(cohorts.oldest_between(before, Survivors(50, tuple(coarse)), 0) - expected) <= 1


@given(st.lists(st.tuples(st.integers(0, 299), st.integers(1, 80)), min_size=1, max_size=60))
def test_the_mean_life_is_not_longer_than_what_died_has_lived(lives):
    known = h.history_of([(born, born + life, 100) for born, life in lives], 300, with_scans=False)
    lived = [life for born, life in lives if born >= known.warmup and born + life < 300]
    before = [life for born, life in lives if born < known.warmup <= born + life < 300]
    if lived or before:
        assert cohorts.mean_life(known) <= max(lived + before)


def test_the_mean_life_of_what_is_collected_now_and_then():
    items = [(step, min(step // 30 * 30 + 30, 300 + (step % 90 == 0) * 1000), 100) for step in range(300)]
    assert 8 < cohorts.mean_life(h.history_of(items, 300, with_scans=False)) <= 30
    at_once = [(step, step + 1, 100) for step in range(300)]
    assert cohorts.mean_life(h.history_of(at_once, 300, with_scans=False)) <= 1


@pytest.mark.parametrize("born", [0, 10, 19, 20, 200])
@pytest.mark.parametrize("died", [0, 1, 2])
def test_one_old_death_among_many_births_does_not_count(born, died):
    """What is born at step 10 and dies may be the table of a dict that grows; another one died at step 20."""
    before = Survivors(40, ((10, 10, 5, 0), (20, 20, 5, 0), (30, 30, 5, 0)))
    newcomers = ((45, 45, born, 0),) if born else ()
    for other in (0, 1):
        after = Survivors(50, ((10, 10, 5 - died, 0), (20, 20, 5 - other, 0), (30, 30, 5, 0), *newcomers))
        is_alone = died + other <= 1 and born >= 20
        expected = 0 if is_alone or died + other == 0 else 29 if died else 19
        assert cohorts.oldest_between(before, after, 0) == expected


def test_the_slope_is_the_median_of_all():
    points = [(0, 1), (1, 3), (4, 2), (6, 9), (7, 9)]
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in itertools.combinations(points, 2)]
    found = trends.slope_of(points, 1)
    assert found.value == statistics.median(slopes)
    assert min(slopes) <= found.low <= found.value <= found.high <= max(slopes)
    assert trends.slope_of(points[:2], 1) is None
    assert trends.slope_of([(1, 1), (1, 2), (1, 3)], 1) is None


@pytest.mark.parametrize("n", [2, 3, 10, 64])
def test_kendalls_deviation(n):
    assert trends.kendall_deviation(n) ** 2 == pytest.approx(n * (n - 1) * (2 * n + 5) / 18)


def test_an_interval_of_a_slope_holds_it_as_often_as_it_says():
    held = 0
    for seed in range(400):
        chance = random.Random(seed)
        points = [(x, 2 * x + chance.gauss(0, 20)) for x in range(40)]
        found = trends.slope_of(points, thresholds.DEVIATIONS)
        held += found.low <= 2 <= found.high
    assert 0.92 <= held / 400 <= 0.98


def test_what_is_worth_a_scan():
    for items, is_worth in ((h.leak(300), True), (h.leak(300, since=240), True), (h.ring(300, 50), False)):
        known = h.history_of(items, 300)
        assert (cohorts.rise_of_last_half(known.spans, known.live) > 0) is is_worth


def test_data_is_frozen():
    known = h.history_of(h.leak(30), 30)
    with pytest.raises(dataclasses.FrozenInstanceError):
        known.step = 3


# -- what the core delivers

State = collections.namedtuple("State", "first_step width")
Series = collections.namedtuple("Series", "site live births rises low high born")


def test_a_history_from_the_core():
    """The core's span i has the marks at the ends of steps first_step + i * width and on."""
    true = h.history_of(h.leak(250, share=0.5), 250)
    state = State(true.spans.first - 1, true.spans.width)
    series = Series(9, true.live, true.live + 7, None, list(true.spans.lows), list(true.spans.highs), [])
    rows = [(9, first, last, count) for first, last, count, _ in reversed(true.survivors.rows)]
    scans = [*true.earlier, readings.survivors_of_scan(250, rows, 100)]
    known = readings.history_of(250, h.WARMUP, state, series, scans)
    assert dataclasses.replace(true, deaths=7, sizes=known.sizes) == known
    assert known.sizes[-1] == (250, true.live, 100 * true.live)
    assert verdicts.judge(known).verdict is LEAK


def test_sites_that_read_the_same_are_put_together():
    scan = readings.survivors_of_scan(9, [(1, 4, 5, 2), (2, 1, 1, 1), (2, 4, 5, 3)], 10)
    assert scan.rows == ((1, 1, 1, 10), (4, 5, 5, 50))


@given(
    st.lists(st.integers(0, 20_000), unique=True, max_size=2000),
    st.integers(0, 5000),
    st.sampled_from([0, 5, 64, 1000, 19_990]),
)
def test_a_long_scan_is_put_together(births, later, warmup):
    rows = [(birth, birth, 2, 30) for birth in sorted(births)]
    found = readings.folded(20_001, rows, warmup)
    assert len(found) <= bounds.MOST_ROWS * (1 + (readings.begin_of_spans(warmup) > 0))
    assert all(a[1] < b[0] for a, b in itertools.pairwise(found))
    assert (sum(row[2] for row in found), sum(row[3] for row in found)) == (2 * len(rows), 30 * len(rows))
    assert all(any(first <= birth <= last for first, last, *_ in found) for birth in births)
    longer = readings.folded(20_002 + later, [*rows, (20_001 + later, 20_001 + later, 1, 1)], warmup)
    assert all(sum(a <= first and last <= b for a, b, *_ in longer) == 1 for first, last, *_ in found)


@pytest.mark.parametrize(("since", "steps"), [(0, 10_000), (5000, 6250)])
def test_a_verdict_on_scans_that_were_put_together(since, steps):
    known = h.history_of(h.leak(steps, since=since, share=0.5), steps)
    scans = [Survivors(s.step, readings.folded(s.step, s.rows)) for s in known.scans]
    found = verdicts.judge(dataclasses.replace(known, survivors=scans[-1], earlier=tuple(scans[:-1])))
    assert found.verdict is LEAK
    assert abs(found.onset - since) <= steps / bounds.MOST_ROWS * 2
    assert found.bytes_per_step.value == pytest.approx(50, rel=0.1)


def test_steps_that_are_known_together():
    scan = readings.survivors_of_series(40, [(30, 2, 20), (12, 4, 40), (7, 0, 0)], [(10, 12)])
    assert scan.rows == ((10, 12, 4, 40), (30, 30, 2, 20))


@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(0, 9)), min_size=1, max_size=120),
    st.integers(2, 64),
)
def test_a_total_is_folded_without_loss_of_its_extremes(moves, spans):
    steps = list(itertools.accumulate(move for move, _ in moves))
    points = [(step, value) for step, (_, value) in zip(steps, moves)]
    known = readings.history_of_total(points, 0, spans)
    assert len(known.spans.lows) == len(known.spans.highs) <= spans
    assert (min(known.spans.lows), max(known.spans.highs)) == (
        min(v for _, v in points),
        max(v for _, v in points),
    )
    assert known.live == points[-1][1] and known.step == points[-1][0]
    for step, value in points:
        number = (step - known.spans.first) // known.spans.width
        assert known.spans.lows[number] <= value <= known.spans.highs[number]


def test_one_item_of_a_line_that_grows_is_no_growth_of_its_holder():
    items = [(birth, birth + 20 if birth % 2 else math.inf, 100) for birth in range(100)]
    whole = h.history_of(items, 100)
    assert verdicts.judge(whole).verdict is LEAK
    rows = whole.survivors.rows
    for first, last, *_ in rows[-40:]:
        part = Survivors(100, ((first, last, 1, 100),))
        known = readings.of_part(whole, 100, part, Facts())
        assert verdicts.judge(known).verdict is not LEAK


@given(st.integers(16, 60), st.integers(1, 5))
def test_the_rate_of_a_floor_is_that_of_all_though_a_walk_reads_no_births_of_the_warm_up(steps, each):
    """A walk reads the births that are judged; the floor counts all that are alive."""
    kept = [(birth, math.inf, 100) for birth in range(steps) for _ in range(each)]
    fleeting = [(birth, birth + 4, 100) for birth in range(0, steps, 4)]
    whole = h.history_of(sorted([*kept, *fleeting]), steps)
    rows = tuple((b, b, each, 100 * each) for b in judged_steps(h.WARMUP, steps))
    known = readings.of_part(whole, steps, Survivors(steps, rows), Facts())
    floor = cases.floor_case(known, 4, cohorts.rises_of_floor(known))
    rate, _ = rates.of_floor(floor, known.survivors)
    assert rate.value == pytest.approx(100 * each, rel=0.25)
