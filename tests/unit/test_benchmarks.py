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


def one_row(result: dict, begin: str):
    from benchmarks import targets

    return next(row for row in targets.rows(result) if row.what.startswith(begin))


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


def test_every_target_has_a_row_also_where_a_part_is_missing_or_failed():
    from benchmarks import page, targets

    nothing = targets.rows({"parts": {"hooks, depth 10": {"3.11.7": {"failed": "no compiler"}}}})
    assert nothing and {row.met() for row in nothing} == {"not measured"}
    whats = {row.what for row in targets.rows(page.read())}
    assert {row.what for row in nothing if "steps" not in row.what} <= whats


@pytest.mark.parametrize(
    "reached, met", [(1.0, "yes"), (1.1, "yes"), (1.11, "**no**"), (None, "not measured")]
)
def test_a_target_is_met_up_to_its_number(reached, met):
    from benchmarks.targets import Row

    assert Row("x", 1.1, reached).met() == met


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
