"""The tables of the benchmarks are those of the last run, and each benchmark runs."""

import argparse
import importlib
import importlib.util
import json
import pathlib
import random
import re
import shlex
import sys

import pytest
from native_support import linux_only

ROOT = pathlib.Path(__file__).parent.parent.parent


@pytest.fixture(autouse=True)
def from_the_repository(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))


def test_tables_are_made_from_the_last_run():
    pytest.importorskip("numpy")  # the loops that the tables name are of numpy
    from benchmarks import page

    result = page.read()
    for path in page.PAGES:
        assert page.renewed(path.read_text(), result) == path.read_text(), "run python -m benchmarks page"


def commands_of(text: str) -> list[list[str]]:
    """The words behind `python -m benchmarks`, of each command without a placeholder such as NAME."""
    found = re.findall(r"`(?:[^`\n]* )?python3? -m benchmarks((?:\s[^`]*)?)`", text)
    return [shlex.split(words) for words in found if not re.search(r"\b[A-Z]{4,}\b|\.\.\.", words)]


@pytest.mark.parametrize(
    "page",
    [ROOT / "README.md", ROOT / "benchmarks" / "README.md", *sorted((ROOT / "docs").glob("*.md"))],
    ids=lambda page: page.stem,
)
def test_commands_of_a_page_are_of_the_benchmarks(page):
    from benchmarks.__main__ import parsed

    for words in commands_of(page.read_text()):
        assert callable(getattr(parsed(words), "run", None)) or words == ["page"]


def test_commands_under_the_tables_measure_their_part_again():
    pytest.importorskip("numpy")
    from benchmarks import everything, page
    from benchmarks.__main__ import parsed

    assert commands_of("`python -m benchmarks hooks --only 'a b'` `python -m benchmarks --parts NAME`") == [
        ["hooks", "--only", "a b"]
    ]
    for part, versions in page.read()["parts"].items():
        for result in versions.values():
            assert parsed(shlex.split(page.command_of(result))[3:]).name == everything.PARTS[part][0]
    (modes,) = (parsed(words) for words in commands_of(f"`{page.command_of(of_training())}`"))
    assert modes.only == ["watch()", "memray, Python's allocators"]


def of_training() -> dict:
    return {"benchmark": "training", "arguments": ["--only", "watch()", "memray, Python's allocators"]}


def test_every_target_has_a_row_also_where_a_part_is_missing_or_failed():
    from benchmarks import page, targets

    nothing = targets.rows({"parts": {"hooks, depth 10": {"3.11.7": {"failed": "no compiler"}}}})
    assert nothing and {row.met() for row in nothing} == {"not measured"}
    whats = [row.what for row in targets.rows(page.read())]
    assert {row.what for row in nothing} == set(whats)
    assert len({row.what for row in nothing}) == len(nothing)


@pytest.mark.parametrize(
    "reached, met", [(1.0, "yes"), (1.1, "yes"), (1.11, "**no**"), (None, "not measured")]
)
def test_a_target_is_met_up_to_its_number(reached, met):
    from benchmarks.targets import Row

    assert Row("x", 1.1, reached).met() == met


@pytest.mark.parametrize("reached, met", [(0.97, "yes"), (0.96, "**no**"), (None, "not measured")])
def test_a_least_target_is_met_from_its_number_on(reached, met):
    from benchmarks.targets import Row

    assert Row("x", 0.97, reached, is_least=True).met() == met
    assert Row("x", None, 1.0).met() == "no target"


def one_row(result: dict, begin: str, rhythms: dict | None = None):
    from benchmarks import targets

    return next(row for row in targets.rows(result, rhythms) if row.what.startswith(begin))


def part_of(rows: dict, **more) -> dict:
    return {"rows": rows, "date": "2026-01-02", "machine": {"python": "3.11.7"}} | more


def test_tools_stand_beside_what_was_measured_with_them():
    ratio = {"ratio": 1.5, "low": 1.4, "high": 1.6}
    rows = {"watch(), processor": ratio, "memray, processor": ratio | {"ratio": 1.25}}
    facts = {"seconds of a plain loop": 3.2, "seconds of the looks": 0.1, "batches": 640}
    turns = part_of({"watch(), processor": ratio | {"ratio": 1.1}}, facts=facts)
    parts = {"training": {"3.11.7": part_of(rows, facts=facts)}, "training, in turns": {"3.11.7": turns}}
    together = one_row({"parts": parts}, "training loop, all tools")
    apart = one_row({"parts": parts}, "training loop in turns, 640 steps, 3.10")
    assert (together.reached, together.rivals, together.measured) == (
        1.5,
        "memray 1.25",
        "2026-01-02, 3.11.7",
    )
    assert (apart.reached, apart.rivals) == (1.1, "")
    assert all("steps of 5 ms, the target is for 2.5 ms" in row.note for row in (together, apart))


def test_native_hooks_with_a_stack_stand_beside_memray():
    added = {"native hooks, no stack": 77.0, "both, 16 frames": 246.0, "memray": 771.0}
    rows = {name: {"added, ns": ns} for name, ns in added.items()}
    result = {"parts": {"native": {"3.11.7": part_of(rows)}}}
    alone, both = (one_row(result, name) for name in ("native hooks alone", "all hooks of a watch()"))
    assert (alone.reached, alone.rivals, both.reached, both.rivals) == (77.0, "", 246.0, "memray 771")


@pytest.mark.parametrize(
    "first, second, reached",
    [
        ({"date": "2026-01-02"}, {"date": "2026-01-02"}, 1.1),
        ({"date": "2026-01-02"}, {"date": "2026-01-03"}, None),
        ({"date": "2026-01-02", "commit": "a"}, {"date": "2026-01-03", "commit": "a"}, 1.1),
        ({"date": "2026-01-02", "commit": "a"}, {"date": "2026-01-02", "commit": "b"}, None),
    ],
)
def test_depths_are_compared_where_the_code_is_the_same(first, second, reached):
    parts = {
        f"hooks, depth {depth}": {"3.11.7": part_of({}, geometric_mean={"leakprobe": mean}) | when}
        for depth, mean, when in ((10, 1.0, first), (60, 1.1, second))
    }
    row = one_row({"parts": parts}, "at stack depth 60 over depth 10, 3.10")
    assert row.reached == reached and (reached is not None or "of other code" in row.note)


def test_growth_is_the_largest_heap_over_the_smallest_by_the_collector():
    column = "find_cycles(), ns/node"
    sizes = {"1 nodes": (100.0, 50.0), "2 nodes": (200.0, 300.0), "3 nodes": (200.0, 300.0)}
    rows = {size: {"gc.collect(), ns/node": gc, column: ns} for size, (gc, ns) in sizes.items()}
    row = one_row({"parts": {"graph, growing": {"3.11.7": part_of(rows)}}}, "find_cycles(), time a node")
    assert row.reached == pytest.approx(3.0) and row.met() == "**no**" and row.note == "3 nodes over 1 nodes"


@pytest.mark.parametrize(
    "delays, reached",
    [
        ({"longest delay, ms": 4.0, "longest of a round, ms": 3.0}, 4.0),
        ({"longest of a round, ms": 4.0}, None),
        ({"longest of a round, ms": 6.0}, 6.0),
    ],
)
def test_a_median_delay_shows_that_a_target_was_missed_but_not_that_it_was_met(delays, reached):
    result = {"parts": {"delays": {"3.11.7": part_of({"born in it, clean": delays})}}}
    assert one_row(result, "2 million live objects, born in it, clean, longest").reached == reached


def test_the_longest_delay_is_that_of_all_rounds():
    from benchmarks import delays

    rounds = [
        {mode: {"delays": [longest, 0.0, 0.0, longest / 2]} for mode in ("watch", "plain")}
        for longest in (0.002, 0.009, 0.003)
    ]
    found = delays.delays_of(rounds)
    assert found["longest delay, ms"] == found["longest without, ms"] == pytest.approx(9.0)
    assert found["longest of a round, ms"] == pytest.approx(3.0)
    assert found["fourth of a round, ms"] == pytest.approx(1.5)


def test_the_verdict_is_that_of_the_held_out_rhythms():
    totals = {
        "held out, growing, all steps": {"told": [9, 10, 0.5, 1.0]},
        "held out, turnover, all steps": {"told": [0, 10, 0.0, 0.3]},
    }
    rhythms = {"deciders": {"model": {"totals": totals}}, "of the model": {"date": "2026-01-02"}}
    found, wrong = (
        one_row({"parts": {}}, f"held-out rhythms, {what}", rhythms) for what in ("growth", "turn")
    )
    assert (found.reached, found.met(), found.measured) == (0.9, "**no**", "2026-01-02")
    assert (wrong.reached, wrong.met()) == (0, "yes")


def test_a_part_that_fails_leaves_no_figure_and_no_success(tmp_path, monkeypatch):
    pytest.importorskip("numpy")
    from benchmarks import everything, targets

    out, version = tmp_path / "all.json", sys.version.split()[0]
    rows = {name: {"of the heap": 0.1} for name in ("leakprobe", "memray")}
    machine = {"python": version, "cpu": "x", "compiler": "y"}
    old = {"benchmark": "memory", "arguments": [], "date": "2026-01-02", "machine": machine, "rows": rows}
    out.write_text(json.dumps({"parts": {"memory": {version: old}}}))
    args = argparse.Namespace(parts=["memory"], also=[], through="", json=out)
    assert one_row(json.loads(out.read_text()), "bookkeeping, of the").met() == "yes"
    monkeypatch.setattr(everything, "measure", lambda *of_part: {"failed": "no memory"})
    assert everything.run(args) == 1
    result = json.loads(out.read_text())
    assert list(result["parts"]["memory"]) == [version]
    assert result["parts"]["memory"][version]["failed"] == "no memory"
    assert one_row(result, "bookkeeping, of the").met() == "not measured" and targets.table(result)
    monkeypatch.setattr(everything, "measure", lambda *of_part: dict(old))
    assert everything.run(args) == 0
    assert one_row(json.loads(out.read_text()), "bookkeeping, of the").met() == "yes"


def test_an_interpreter_that_cannot_run_is_said_so_before_anything_is_measured(tmp_path, monkeypatch):
    from benchmarks import everything

    monkeypatch.setattr(everything, "measure", lambda *of_part: pytest.fail("measured"))
    args = argparse.Namespace(parts=["memory"], also=["/no/such/python"], through="", json=tmp_path / "x")
    with pytest.raises(SystemExit, match="/no/such/python: cannot be run"):
        everything.run(args)


def test_a_rival_of_the_graph_is_measured_between_collections(monkeypatch):
    from benchmarks import graph

    order = []
    monkeypatch.setitem(graph.RIVALS, "scripted", "call = kept.clear")
    monkeypatch.setattr(graph, "timed", lambda call: order.append(call is graph.gc.collect) or 1.0)
    assert graph.rival("scripted", 1, 1) == {"over gc.collect()": 1.0}
    assert all(sum(order[i : i + 2]) == 1 for i in range(0, len(order), 2)) and len(order) == 8


def test_marks_are_all_followed_or_all_skipped(monkeypatch):
    pytest.importorskip("leakprobe._core")
    from benchmarks import marks
    from leakprobe.probe import Probe

    followed, follow = [], Probe._follow_mark
    monkeypatch.setattr(Probe, "_follow_mark", lambda *args: followed.append(1) or follow(*args))
    assert marks.mark_times(3, 40, False) and not followed
    assert marks.mark_times(3, 40, True) and len(followed) == 40


@pytest.mark.parametrize(
    "name, options",
    [
        ("differences", ["--rows", "20000", "--repetitions", "1"]),
        ("recycled", ["--repetitions", "1", "--size", "1000"]),
        pytest.param("mallocs", ["--repetitions", "1", "--count", "2000"], marks=linux_only),
    ],
)
def test_benchmark_runs(name, options):
    from benchmarks import page

    module = importlib.import_module(f"benchmarks.{name}")
    parser = argparse.ArgumentParser()
    module.add_arguments(parser)
    result = module.run(parser.parse_args(options))
    assert result["rows"] and page.of_part({**result, "arguments": options, "date": "today"})


def test_least_times_are_those_of_as_many_repetitions():
    from benchmarks import pairs

    times = {"tool": [2.0, 4.0], "plain": [2.0, 2.0, 1.0]}
    assert pairs.ratio(times, "tool", "plain") == pairs.ratio(times, "plain", "tool") == 1


@pytest.mark.slow
def test_training_benchmark_runs():
    if importlib.util.find_spec("torch") is None or importlib.util.find_spec("sklearn") is None:
        pytest.skip("torch and scikit-learn are not installed")
    import subprocess

    code = (
        "import argparse; from benchmarks import training; p = argparse.ArgumentParser(); training.add_arguments(p);"
        "r = training.run(p.parse_args(['--pairs', '1', '--batches', '3', '--only', 'watch()', 'tracemalloc(1)']));"
        "print(sorted(r['rows']))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (
        "'tracemalloc(1), clock', 'tracemalloc(1), processor', 'watch() between the looks, processor'"
        in done.stdout
    ), done.stderr


def test_loops_take_turns_and_each_turn_is_timed():
    if importlib.util.find_spec("torch") is None or importlib.util.find_spec("sklearn") is None:
        pytest.skip("torch and scikit-learn are not installed")
    from benchmarks import turns

    args = argparse.Namespace(batches=10, before=8, turn=4, size=16, pairs=1, control=False)
    watched, plain = turns.pair(args, random.Random(0))
    for said in (watched, plain):
        assert all(len(took) == 3 and min(took) > 0 for took in said["took"])
        assert all(len(took) == 2 and min(took) > 0 for took in said["before"])
    assert "verdict" in watched and "verdict" not in plain
    made = {"took": [[3.0, 3.0]], "before": [[2.0, 2.0]]}, {"took": [[1.0, 1.0]], "before": [[1.0, 1.0]]}
    assert turns.summary([made], 0)["ratio"] == pytest.approx(1.5)
