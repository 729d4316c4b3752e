"""`leakprobe explain`: each cause has a text and code before and after, which is Python."""

import ast
import json

import pytest

from leakprobe import cli
from leakprobe.model.causes import CAUSES
from leakprobe.report.explanations import EXPLANATIONS

ALL = [pytest.param(one, id=one.code) for one in EXPLANATIONS.values()]


def test_each_cause_is_explained():
    assert list(EXPLANATIONS) and set(EXPLANATIONS) == set(CAUSES)


@pytest.mark.parametrize("one", ALL)
def test_before_and_after_are_python_and_differ(one):
    before, after = ast.dump(ast.parse(one.before)), ast.dump(ast.parse(one.after))
    assert before != after or one.cause == "unknown"
    assert len(one.why) > 60 and one.why.endswith(".")


@pytest.mark.parametrize("code", ["graph-kept", "graph_kept", "leak[graph-kept]", " graph-kept "])
def test_a_code_may_be_given_as_a_report_shows_it(code, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.main(["explain", code]) == 0
    out = capsys.readouterr().out
    assert out.startswith("leak[graph-kept]: a tensor is kept with its autograd graph\n")
    assert "\nbefore\n    history.append(loss)\n" in out and "\nafter\n    history.append(loss.item())" in out


def test_without_a_code_all_are_listed(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.main(["explain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == [
        one.code for one in EXPLANATIONS.values()
    ]


def test_as_json(capsys):
    assert cli.main(["explain", "--json", "never-ended"]) == 0
    one = json.loads(capsys.readouterr().out)
    assert one["cause"] == "never_ended" and one["meaning"] == CAUSES["never_ended"]
    assert cli.main(["explain", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == len(CAUSES)


def test_a_code_that_is_not_there_is_wrong_usage(capsys):
    assert cli.main(["explain", "graph"]) == 2
    assert "there is no cause 'graph'; there are graph-kept, " in capsys.readouterr().err
