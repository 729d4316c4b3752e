"""Loops with truth: the truth is that of their items, what an engine knows of them is exact, and deciders are
measured right.
"""

import argparse
import pathlib
import sys

import pytest

np = pytest.importorskip("numpy")

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks import rhythms
from benchmarks.rhythms import arrivals, kinds, measure, real, simulate, summary, tables, uneven_growing
from benchmarks.rhythms.deciders import DECIDERS, first_engine, rivals
from benchmarks.rhythms.history import SPANS, Counters, History
from benchmarks.rhythms.loop import LIMIT, WARMUP, Draft, Kind, Part, live_counts, make_loop
from benchmarks.rhythms.verdict import Answer, Decider, Verdict

KIND_NAMES = sorted(kinds.KINDS)


def loop_of(draft: Draft, steps: int, grows: bool = True):
    return make_loop(Kind("one of a test", grows, "test", False, lambda n, rng: draft), steps, 0)


def kept_each_step(steps: int):
    return loop_of(Draft((Part(np.arange(steps)),)), steps)


def ring(steps: int, size: int):
    birth = np.arange(steps)
    return loop_of(Draft((Part(birth, birth + float(size), growing=False),)), steps, grows=False)


def histories_of(loop, marks):
    history = History(Counters(loop.sites[0], loop.steps))
    for mark in marks:
        history.move_to(mark)
        yield history


# The kinds.


def test_there_are_kinds_enough_of_both_sorts_named_by_a_source_or_not():
    assert len(kinds.GROWING) >= 48 and len(kinds.TURNING) >= 40
    for some, named in ((kinds.GROWING, 24), (kinds.TURNING, 20)):
        assert sum(kind.named for kind in some) >= named
        assert sum(not kind.named for kind in some) >= sum(kind.named for kind in some)


def test_the_held_out_kinds_are_a_third_by_the_hash_of_their_names():
    """A changed list is a changed benchmark: results before and after do not compare."""
    assert kinds.names_hash(kinds.KINDS) == "42f1abb2b40a22644757b6eef994f1706cc1a561088a2d909d9479e08349c2e3"
    assert (
        kinds.names_hash(kinds.HELD_OUT) == "e37c68794555c7f68959a3e09aa3c3410974871e5f3d88de40e9bc6f538131fd"
    )
    assert 0.25 < len(kinds.HELD_OUT) / len(kinds.KINDS) < 0.42


@pytest.mark.parametrize("name", KIND_NAMES)
def test_a_loop_is_the_same_for_the_same_seed_and_another_for_another(name):
    first, again, other = (make_loop(kinds.KINDS[name], 120, seed) for seed in (3, 3, 4))
    for site, same in zip(first.sites, again.sites, strict=True):
        for field in ("birth", "death", "bytes", "growing"):
            assert np.array_equal(getattr(site, field), getattr(same, field))
    assert (
        any(not np.array_equal(s.bytes, o.bytes) for s, o in zip(first.sites, other.sites))
        or name == "kept, but below the limit"
    )


@pytest.mark.parametrize("name", KIND_NAMES)
def test_the_truth_of_a_kind_is_that_of_its_items(name):
    loop = make_loop(kinds.KINDS[name], 600, 1)
    for site in loop.sites:
        assert (np.diff(site.birth) >= 0).all() and (site.death >= site.birth).all()
        assert site.birth.max() < loop.steps and (site.bytes >= 1).all()
    assert loop.grows == any(site.grows for site in loop.sites)
    if loop.grows:
        alive = [sum(s.bytes_at(mark, s.growing) for s in loop.sites) for mark in (loop.onset, loop.steps)]
        assert loop.rate() == pytest.approx((alive[1] - alive[0]) / (loop.steps - loop.onset))
        assert loop.rate() > 3 * LIMIT
        born = np.concatenate([s.birth[s.growing & (s.birth >= loop.onset)] for s in loop.sites])
        assert born.min() <= loop.onset + 60, "nothing is born for long behind the onset"
    else:
        assert loop.findings == 0 and not any(site.growing.any() for site in loop.sites)


@pytest.mark.parametrize("kind", kinds.GROWING, ids=lambda k: k.name)
def test_growth_goes_on_in_the_second_half_since_its_onset(kind):
    loop = make_loop(kind, 1000, 2)
    middle = (loop.onset + loop.steps) // 2
    alive = [
        sum(s.bytes_at(mark, s.growing) for s in loop.sites) for mark in (loop.onset, middle, loop.steps)
    ]
    assert alive[2] - alive[1] > 0.15 * (alive[2] - alive[0])


@pytest.mark.parametrize("kind", kinds.TURNING, ids=lambda k: k.name)
def test_turnover_shows_itself_before_the_end_of_a_long_loop(kind):
    if kind.name == "fills over 0.8 n":
        assert not make_loop(kind, 2000, 0).is_due()
    else:
        assert make_loop(kind, 2000, 0).is_due()


def test_a_verdict_on_growth_is_owed_after_births_and_steps_enough():
    loop = kept_each_step(300)
    assert not loop.is_due(60) and loop.is_due(65)
    late = loop_of(Draft((Part(np.arange(200, 300)),), onset=200), 300)
    assert not late.is_due(255) and late.is_due(260)
    rare = loop_of(Draft((Part(np.arange(0, 300, 50)),)), 300)
    assert not rare.is_due()


# What lives and dies.


def test_an_item_is_alive_at_the_marks_behind_its_birth_up_to_its_death():
    site = loop_of(Draft((Part(np.array([3, 3, 4]), np.array([3.0, 6.0, np.inf])),)), 10).sites[0]
    assert live_counts(site, 10).tolist() == [0, 0, 0, 0, 1, 2, 2, 1, 1, 1, 1]
    assert [int(site.alive(mark).sum()) for mark in range(11)] == live_counts(site, 10).tolist()


def test_a_queue_serves_the_oldest_first_or_the_newest():
    births = np.array([0, 0, 1, 2])
    assert arrivals.queue(births, [0, 1, 1, 0]).tolist() == [1, 2, np.inf, np.inf]
    assert arrivals.queue(births, [0, 1, 1, 0], newest_first=True).tolist() == [np.inf, np.inf, 1, 2]


@pytest.mark.parametrize("policy, evicted", [("lru", 1), ("fifo", 0), ("lfu", 1)])
def test_a_cache_evicts_by_its_policy(policy, evicted):
    keys = np.array([10, 11, 12, 10, 12, 10, 13])
    birth, death = arrivals.cached(policy, 3, keys, np.arange(7), np.random.default_rng(0))
    assert birth.tolist() == [0, 1, 2, 6]
    assert np.flatnonzero(np.isfinite(death)).tolist() == [evicted] and death[evicted] == 6


# What an engine knows.


@pytest.mark.parametrize("name", ["sawtooth of 10 to 60", "two born, one dies at random", "bursts of 20"])
def test_the_folded_counters_are_those_of_folding_them_mark_by_mark(name):
    loop = make_loop(kinds.KINDS[name], 700, 0)
    counters = Counters(loop.sites[0], loop.steps)
    live = live_counts(loop.sites[0], loop.steps)
    rows, width = [], 1  # (low, high, last, births, deaths), a span each
    for mark in range(WARMUP + 1, loop.steps + 1):
        now = int(live[mark])
        births, deaths = int(counters.births[mark - 1]), int(counters.deaths[mark - 1])
        if (mark - WARMUP - 1) % width == 0:
            if len(rows) == SPANS:
                pairs = zip(rows[::2], rows[1::2])
                rows = [(min(a[0], b[0]), max(a[1], b[1]), b[2], a[3] + b[3], a[4] + b[4]) for a, b in pairs]
                width *= 2
            rows.append((now, now, now, births, deaths))
        else:
            low, high, _, b, d = rows[-1]
            rows[-1] = (min(low, now), max(high, now), now, b + births, d + deaths)
        spans = counters.spans(mark)
        columns = (spans.low, spans.high, spans.last, spans.births, spans.deaths)
        assert spans.width == width and list(zip(*(c.tolist() for c in columns))) == rows, mark


def test_a_scan_counts_survivors_by_birth_step_and_two_scans_the_deaths():
    loop = ring(100, 20)
    history = History(Counters(loop.sites[0], loop.steps))
    history.move_to(50)
    early = history.scan()
    assert early.birth.tolist() == list(range(30, 50)) and early.count.tolist() == [1] * 20
    assert early.bytes.sum() == pytest.approx(history.live_bytes) and history.live == 20
    history.move_to(60)
    late = history.scan()
    steps, counts = history.died_between(early, late)
    assert steps.tolist() == list(range(30, 40)) and counts.tolist() == [1] * 10
    assert history.scans == (early, late) and history.births - history.deaths == history.live


def test_birth_steps_of_a_long_loop_are_known_by_twos_and_fours():
    loop = kept_each_step(9000)
    first, second = (h.scan() for h in histories_of(loop, (4001, 9000)))
    assert (first.width, second.width) == (1, 4)
    assert second.birth[:3].tolist() == [0, 4, 8] and second.count[0] == 4 and second.count.sum() == 9000
    gone = History(Counters(loop.sites[0], 9000)).died_between(first, second)
    assert gone[1].sum() == 0


def test_nothing_is_known_of_what_comes_later():
    loop = ring(100, 20)
    (history,) = histories_of(loop, [50])
    shorter = ring(100, 20)
    events = history.events
    assert len(events.live_bytes) == 50 and (events.last_freed[:30] < 50).all()
    assert np.isinf(events.last_freed[30:]).all()
    assert history.births == 50 and shorter.sites[0].birth.max() == 99


# Deciders, and how they are measured.


@pytest.mark.parametrize("name", ["first engine", "Scalene's leak score", "slope of totals", "two snapshots"])
def test_every_decider_finds_what_is_kept_each_step_and_is_silent_on_a_short_ring(name):
    found = measure.measure(kept_each_step(200), DECIDERS[name])
    assert found.told and found.findings == 1 and found.rate_ratio == pytest.approx(1, rel=0.05)
    if name != "two snapshots":  # which meets a ring of 20 before it is full
        assert not measure.measure(ring(200, 2), DECIDERS[name]).told


@pytest.mark.parametrize(("steps", "seed"), [(300, 510_002), (100, 510_038)])
def test_a_few_survivors_are_no_growth_where_the_floor_slows_down(steps, seed):
    """Without it, the places at random that were left out for longest look like a leak."""
    loop = make_loop(kinds.KINDS["n/4 places at random"], steps, seed)
    found = measure.measure(loop, DECIDERS["model"])
    assert not found.told and found.answers == ("filling",)


UNEVEN = {kind.name.split(",")[0]: kind for kind in uneven_growing.KINDS}


@pytest.mark.parametrize(
    "name", ["a spool flushed at uneven times", "what a worker had in flight when it crashed"]
)
@pytest.mark.parametrize("seed", range(9100, 9108))
def test_what_falls_at_times_and_rises_by_more_is_growth(name, seed):
    assert measure.measure(make_loop(UNEVEN[name], 300, seed), DECIDERS["model"]).told


def test_where_few_have_outlived_what_died_the_rate_is_that_of_the_floor():
    loop = make_loop(UNEVEN["five entries a tenant"], 1000, 9103)
    found = measure.measure(loop, DECIDERS["model"])
    assert found.told and found.rate_ratio == pytest.approx(1, abs=0.2)


def test_the_first_engine_misses_what_begins_late_and_what_the_oldest_leave():
    for name in ("late, after 1/3", "the last half of all history"):
        assert not measure.measure(make_loop(kinds.KINDS[name], 300, 0), first_engine.FIRST_ENGINE).told


def test_the_slope_of_a_line_is_its_own_and_its_bound():
    slope, low = rivals.sen_slope(np.arange(20.0), 3 * np.arange(20.0) + 7)
    assert slope == low == 3
    _, low = rivals.sen_slope(np.arange(20.0), np.tile([0.0, 5.0], 10))
    assert low <= 0


def test_laplace_rule_wants_trials_enough():
    (history,) = histories_of(kept_each_step(30), [17])
    assert rivals.scalene(history).kind is Answer.TURNOVER  # 1 - 1 / (17 + 2) < 0.95
    (history,) = histories_of(kept_each_step(30), [19])
    assert rivals.scalene(history).kind is Answer.LEAK


def says(answers: dict[int, Verdict]) -> Decider:
    """A decider that gives these verdicts at these marks, turnover at others."""
    return Decider("scripted", lambda: lambda h: answers.get(h.mark, Verdict(Answer.TURNOVER)))


def test_a_verdict_that_is_taken_back_is_counted_and_told_is_what_stands():
    leak = Verdict(Answer.LEAK, WARMUP, 10_000.0)
    outcome = measure.measure(kept_each_step(100), says({20: leak, 60: leak, 100: leak}), [20, 40, 60, 100])
    assert (outcome.told_at, outcome.until_told, outcome.withdrawn, outcome.told) == (20, 55, 1, True)
    assert outcome.onset_error == 0 and outcome.onset_right


def test_growth_below_the_limit_is_no_finding():
    below = Verdict(Answer.LEAK, WARMUP, LIMIT)
    assert not measure.measure(kept_each_step(100), says({100: below}), [100]).told


def test_what_one_holder_keeps_is_one_finding_and_other_sites_are_not_hits():
    leak = Verdict(Answer.LEAK, WARMUP, 10_000.0)
    always = Decider("always", lambda: lambda h: leak)
    records = measure.measure(make_loop(kinds.KINDS["records of three lines in one holder"], 200, 0), always)
    assert records.findings == 1
    beside = measure.measure(make_loop(kinds.KINDS["beside a ring of another line"], 200, 0), always)
    assert beside.findings == 2 and beside.false_sites == 1


def test_marks_are_a_twentieth_apart_and_end_with_the_loop():
    marks = measure.marks_of(10_000)
    assert marks[0] == measure.FIRST_MARK and marks[-1] == 10_000
    assert all(b <= max(a + 1, 1.05 * a) for a, b in zip(marks, marks[1:]))


def test_wilson_interval():
    assert summary.wilson(0, 10) == pytest.approx((0, 0.2775), abs=1e-4)  # Brown, Cai and DasGupta 2001
    assert summary.wilson(5, 10) == pytest.approx((0.2366, 0.7634), abs=1e-4)


def test_the_curve_of_a_perfect_statistic_has_all_the_area_and_of_a_missing_one_none():
    leak, quiet = kept_each_step(100), ring(100, 3)
    outcomes = []
    for loop in (leak, quiet):
        value = 1.0 if loop.grows else 0.0
        decide = lambda h, value=value: Verdict(Answer.TURNOVER, statistics={"s": value})
        outcomes.append(
            measure.measure(loop, Decider("d", lambda decide=decide: decide, {"s": 1, "none": 1}), [100])
        )
    assert summary.curve(outcomes, "s", 1)["area"] == 1 and summary.curve(outcomes, "s", -1)["area"] == 0
    assert summary.curve(outcomes, "none", 1)["area"] == 0


def arguments(*words: str):
    parser = argparse.ArgumentParser()
    rhythms.add_arguments(parser)
    return parser.parse_args(words)


def test_rows_of_held_out_kinds_are_shown_only_on_request(tmp_path):
    pytest.importorskip("plotly")
    words = ["--steps", "60", "--seeds", "1", "--kinds", "of 25", "--deciders", "two snapshots"]
    result = rhythms.run(arguments(*words, "--page", str(tmp_path / "page.html")))
    held_out = {name for name in kinds.HELD_OUT if "of 25" in name}
    shown = result["deciders"]["two snapshots"]["rows"]
    assert shown and not held_out & set(shown)
    assert "two snapshots" in rhythms.table(result)
    page = (tmp_path / "page.html").read_text()
    assert "Plotly.newPlot" in page and "<script src=" not in page
    part = simulate.chosen_kinds(arguments("--part", "held out"))
    assert sorted(part) == kinds.HELD_OUT


def test_real_loops_are_run_and_compared_with_their_simulation():
    pytest.importorskip("leakprobe._core")
    words = ["--real", "--steps", "60", "--seeds", "1", "--kinds", "each step", "ring of 20"]
    result = rhythms.run(arguments(*words, "--payloads", "list", "--places", "process", "thread"))
    rows = result["real"]
    assert rows["all, growing"]["real"][1] >= 1 and rows["all, turnover"]["real"][1] >= 1
    assert {"list, growing", "in the thread, turnover"} <= set(rows) and "in the process" in tables.of_real(
        result
    )


def test_a_program_that_fails_leaves_no_answer():
    loop = make_loop(kinds.KINDS["each step"], 20, 0)
    runs = [(loop, "list", "process"), (loop, "no such payload", "process"), (loop, "string", "process")]
    first, second, third = real.answers_of(runs)
    assert first["verdict"] and second is None and third["verdict"]


def test_a_loop_without_an_answer_is_counted_and_agrees_with_nothing():
    loop, other = kept_each_step(100), ring(100, 2)
    told, silent = (measure.measure(each, DECIDERS["slope of totals"]) for each in (loop, other))
    growing, steady = ({"verdict": verdict, "findings": []} for verdict in ("growing", "steady"))
    row = real.row_of(
        [(loop, growing, told), (loop, None, told), (other, steady, silent), (other, None, silent)]
    )
    assert (row["real"][:2], row["simulated"][:2], row["same"][:2]) == ([1, 2], [2, 4], [2, 4])
    assert row["no answer"] == 2
    none = real.row_of([(loop, None, told)])
    assert none["agrees"] == "no" and tables.of_real({"real": {"all": none}}).endswith("| no | 1 |")
    named = make_loop(kinds.KINDS["each step"], 100, 0)
    assert real.differences([(named, None, told)]) == [
        "each step, 100 steps, seed 0: no answer for real, found in simulation"
    ]


def test_what_gives_way_to_a_larger_block_is_not_run_for_real():
    words = ["--steps", "60", "--seeds", "1", "--part", "open", "--kinds", "each step", "enlarged"]
    names = {loop.kind for loop in real.loops_of(arguments(*words))}
    assert "each step" in names
    assert {"string enlarged each step", "key-value cache enlarged each step"} <= set(kinds.KINDS)
    assert not any(kinds.KINDS[name].pattern == "replaced" for name in names)


def test_the_area_names_its_statistic():
    outcome = [measure.measure(kept_each_step(100), DECIDERS["slope of totals"])]
    curves = {name: {"open": {"area": area}} for name, area in (("one", 0.2), ("other", 0.7))}
    row = summary.row_of(outcome)
    assert tables.cells(row, row, {"curves": curves}, "open", "", "")[-1] == "0.700, other"
