"""The list of tables that grow harmlessly: matched by module and name, never by anything else."""

import pytest
from sample_reports import finding, note, report
from test_report_json import SCHEMA, problems

from leakprobe.errors import LeakprobeError
from leakprobe.judge import suppressions
from leakprobe.judge.suppressions import known_table
from leakprobe.model.entry import PathNode


def path(module, name, edge="module"):
    return PathNode(module, edge, "module"), PathNode(f"{name} (dict, 3 items)", "global", "dict")


def test_a_known_table_is_known_by_module_and_name():
    assert "prunes" in known_table(
        path("torch.multiprocessing.reductions", "shared_cache")
    ) or "pruned" in known_table(path("torch.multiprocessing.reductions", "shared_cache"))
    assert known_table(path("train", "shared_cache")) is None
    assert known_table(path("torch.multiprocessing.reductions", "shared_cache_2")) is None
    assert known_table(path("torch.multiprocessing.reductions", "shared_cache", edge="frame")) is None
    assert known_table(()) is None


@pytest.mark.parametrize(
    "rule,matches",
    [
        ("fingerprint = 0123456789ab", True),
        ("fingerprint = 01*   # known", True),
        ("path = history*", True),
        ("path = *Tensor and medium = cpu", True),
        ("path = *Tensor and medium = numpy", False),
        ("allocated = */train.py:58 *", True),
        ("allocated = */model.py:*", True),
        ("allocated = model.py:21", False),
        ("type = torch.Tensor and kind = retained and cause = graph_*", True),
        ("cause = graph-kept", True),
        ("cause = graph-[jk]*", True),
        ("cause = hook-kept", False),
        ("type = Torch.tensor", False),
    ],
)
def test_rules(rule, matches):
    what = suppressions.suppress(report([finding()]), [suppressions.parse_rule(rule)])
    assert (what.verdict, len(what.findings)) == (("steady", 0) if matches else ("growing", 1))
    assert [n.kind for n in what.notes] == ["suppressed"] * matches
    if "known" in rule:
        assert what.notes[0].text.endswith("by the rule fingerprint = 01* (known)")
    assert list(problems(what.to_dict(), SCHEMA)) == []


def test_one_rule_leaves_the_other_findings():
    what = suppressions.suppress(
        report([finding(), finding(fingerprint="ff", type="dict")]), [suppressions.parse_rule("type = dict")]
    )
    assert what.verdict == "growing" and [f.type for f in what.findings] == ["torch.Tensor"]


def test_a_file_of_rules(tmp_path):
    path = tmp_path / "rules"
    path.write_text("# comment\n\ntype = dict\npath = a*b and medium = cpu # why\n#end")
    assert [str(r) for r in suppressions.load_rules(path)] == ["type = dict", "path = a*b and medium = cpu"]


@pytest.mark.parametrize("line", ["history", "colour = red", "type =", "type = dict and x"])
def test_what_is_no_rule_is_an_error_with_the_right_form(tmp_path, line):
    path = tmp_path / "rules"
    path.write_text(f"type = dict\n{line}\n")
    with pytest.raises(
        LeakprobeError, match=r"rules, line 2: .* is not a rule: a rule is \"KEY = PATTERN\""
    ) as error:
        suppressions.load_rules(path)
    assert error.value.code == "bad_suppression"


@pytest.mark.parametrize("pattern", ["graph_keep", "Graph-kept", "leak[[]graph-kept]"])
def test_a_cause_that_there_is_not_is_an_error_with_those_that_there_are(pattern):
    with pytest.raises(LeakprobeError, match="matches no cause; the causes are graph-kept, ") as error:
        suppressions.parse_rule(f"cause = {pattern}")
    assert error.value.code == "bad_suppression"


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(LeakprobeError, match="can't be read"):
        suppressions.load_rules(tmp_path / "none")


@pytest.mark.parametrize(
    "open_note, verdict",
    [
        (note(kind="warm_up", live_bytes=9), "inconclusive"),
        (note(kind="gap", live_bytes=9, bytes_per_step=300.0), "inconclusive"),
        (note(kind="warm_up"), "steady"),  # whose steps come first
        (note(kind="gap", bytes_per_step=300.0), "steady"),  # what samples leave of the finding
    ],
)
def test_what_is_open_stays_so_without_the_finding(open_note, verdict):
    what = report([finding()], [open_note])
    assert suppressions.suppress(what, [suppressions.parse_rule("cause = *")]).verdict == verdict
