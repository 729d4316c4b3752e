"""SARIF by its published schema, and annotations of GitHub by GitHub's rules."""

import json
import pathlib
import re

import pytest
from sample_reports import USER, finding, note, report

from leakprobe import cli
from leakprobe.judge.suppressions import parse_rule, suppress
from leakprobe.model.frames import Frame
from leakprobe.report.annotations import annotation, command, to_annotations
from leakprobe.report.sarif import to_sarif

SCHEMA = pathlib.Path(__file__).parent.parent / "schemas" / "sarif-2.1.0.json"
NOWHERE = {"allocation": None, "allocation_stack": [], "holder": None, "path": None}
REPORTS = {
    "growing": report([finding(), finding(fingerprint="ab", cause="unknown", fix=None, **NOWHERE)]),
    "steady": report(notes=[note()]),
    "inconclusive": report(verdict="inconclusive"),
    "suppressed": suppress(report([finding()]), [parse_rule("medium = cpu  # a cache, by design")]),
    "descriptor": report([finding(kind="resource_growth", medium="fd", bytes_per_step=0.0, type="file")]),
    "no file": report([finding(allocation=Frame("<string>", 0, "f"), allocation_stack=[Frame("", 0, "")])]),
    "hostile": report(
        [finding(allocation=Frame("/home/me/a b%\udc80.py", 3, "f"), fix="x\ny", type="<b>\x1b[0m")]
    ),
}
REPORTS["growing"].run = {"program": "/home/me/train.py", "leakprobe": "0.2.0"}


def problems_of(text: str) -> list[str]:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(SCHEMA.read_text())
    validator = jsonschema.Draft4Validator(schema, format_checker=jsonschema.FormatChecker())
    return [error.message for error in validator.iter_errors(json.loads(text))]


@pytest.mark.parametrize("name", REPORTS)
def test_sarif_by_its_schema(name):
    text = to_sarif(REPORTS[name], "/home/me")
    assert problems_of(text) == []
    assert problems_of(text.replace('"runs"', '"run"')) and problems_of(text.replace("2.1.0", "2.0.0"))


def test_a_result_says_what_grows_where_and_under_which_rule():
    run = json.loads(to_sarif(REPORTS["growing"], "/home/me"))["runs"][0]
    first, nowhere = run["results"]
    driver = run["tool"]["driver"]
    assert (driver["name"], driver["version"]) == ("leakprobe", "0.2.0")
    assert [driver["rules"][r["ruleIndex"]]["id"] for r in run["results"]] == ["graph_kept", "unknown"]
    assert first["level"] == "error"
    assert first["message"]["text"].splitlines() == [
        "+6.0 MiB/step, 360 MiB live: torch.Tensor (cpu), 3 a step",
        "Kept by history (list, 60 items) -> [59] Tensor",
        "Cause: a tensor is kept with its autograd graph",
        "Fix: keep loss.item(), train.py:61",
    ]
    place = first["locations"][0]["physicalLocation"]
    assert place == {
        "artifactLocation": {"uri": "train.py", "uriBaseId": "SRCROOT"},
        "region": {"startLine": 58},
    }
    assert run["originalUriBaseIds"]["SRCROOT"]["uri"] == "file:///home/me/"
    assert first["relatedLocations"][0]["physicalLocation"] == place
    files = [f["location"]["physicalLocation"]["artifactLocation"] for f in first["stacks"][0]["frames"]]
    assert files[0] == {"uri": "file:///venv/lib/python3.11/site-packages/torch/nn/modules/linear.py"}
    assert first["partialFingerprints"] == {"leakprobeFingerprint/v1": "0123456789ab"}
    assert first["properties"]["bytes_per_step"] == 6 * 2**20
    assert nowhere["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "train.py", (
        "code scanning shows no result without a place: the program's first line"
    )


def test_growth_that_a_rule_allows_is_a_suppressed_result():
    run = json.loads(to_sarif(REPORTS["suppressed"], "/home/me"))["runs"][0]
    (only,) = run["results"]
    assert only["suppressions"][0]["kind"] == "external"
    assert "a cache, by design" in only["suppressions"][0]["justification"]
    assert only["ruleId"] == "graph_kept"


def test_names_that_are_no_uris_are_quoted():
    (only,) = json.loads(to_sarif(REPORTS["hostile"], "/home/me"))["runs"][0]["results"]
    uri = only["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert re.fullmatch(r"a%20b%25[%\w]*\.py", uri) or uri == "a%20b%25?.py"
    assert "\x1b" not in json.dumps(only)


# ---- annotations ----


def test_a_workflow_command_escapes_what_separates_its_fields():
    assert command("error", {"title": "a: b, 5 %\n"}, "x: y, 5 %\r\n") == (
        "::error title=a%3A b%2C 5 %25%0A::x: y, 5 %25%0D%0A"
    )


def parsed(line: str) -> tuple[str, dict, str]:
    """As GitHub's runner reads a command: up to the second "::", then fields by commas, each unescaped."""
    level, fields, text = re.fullmatch(r"::(\w+) (.*?)::(.*)", line).groups()
    escapes = {"%25": "%", "%0D": "\r", "%0A": "\n", "%3A": ":", "%2C": ","}

    def plain(part):
        return re.sub("%25|%0D|%0A|%3A|%2C", lambda m: escapes[m[0]], part)

    return level, {k: plain(v) for k, _, v in (f.partition("=") for f in fields.split(","))}, plain(text)


def test_an_annotation_is_at_the_line_that_allocates():
    text = to_annotations(REPORTS["growing"], "/home/me")
    first, second = text.splitlines()
    level, fields, message = parsed(first)
    assert level == "error"
    assert fields == {
        "file": "train.py",
        "line": "58",
        "title": "leakprobe: +6.0 MiB/step, 360 MiB live",
    }
    assert message.splitlines() == [
        "torch.Tensor (cpu), 3 a step",
        "kept by: history (list, 60 items) -> [59] Tensor",
        "grown at: train.py:58 training_step",
        "cause: a tensor is kept with its autograd graph",
        "fix: keep loss.item(), train.py:61",
    ]
    assert parsed(second)[1].keys() == {"title"}, "no line is known: shown at the top of the run"


def test_files_outside_of_the_checkout_keep_their_names():
    (line,) = to_annotations(report([finding()]), "/home/me/other").splitlines()
    assert parsed(line)[1]["file"] == "/home/me/train.py"


def test_the_checkout_of_a_job_is_the_root(monkeypatch):
    monkeypatch.setenv("GITHUB_WORKSPACE", "/home")
    assert parsed(to_annotations(report([finding()])).strip())[1]["file"] == "me/train.py"


def test_a_steady_report_has_no_annotation_and_an_inconclusive_one_a_warning():
    assert to_annotations(REPORTS["steady"]) == ""
    level, fields, message = parsed(to_annotations(REPORTS["inconclusive"]).strip())
    assert (level, fields["title"]) == ("warning", "leakprobe") and message.startswith("inconclusive:")


def test_names_of_the_program_can_give_no_command_of_their_own():
    hostile = finding(type="x\n::set-output name=a::b", allocation=Frame("/home/me/a,line=1::b\n.py", 3, "f"))
    line = annotation(hostile, "/home/me", otherwise=USER)
    assert "\n" not in line and line.count("::error") == 1
    assert parsed(line)[1]["file"] == r"a,line=1::b\n.py"


# ---- the command line ----


@pytest.mark.parametrize("kind", ["sarif", "github"])
def test_export(kind, tmp_path, capsysbinary):
    REPORTS["growing"].save(tmp_path / "run.leak")
    path = str(tmp_path / "run.leak")
    assert cli.main(["export", path, "--format", kind, "--root", "/home/me"]) == 0
    make = to_sarif if kind == "sarif" else to_annotations
    assert capsysbinary.readouterr().out.decode() == make(REPORTS["growing"], "/home/me")
    for _time in range(2):  # its own file is written over
        assert cli.main(["export", path, "--format", kind, "-o", str(tmp_path / "out")]) == 0
    (tmp_path / "mine").write_text('{"version": "2.1.0"}')
    assert cli.main(["export", path, "--format", kind, "-o", str(tmp_path / "mine")]) == 2


def test_report_annotates_when_asked(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("GITHUB_WORKSPACE", "/home/me")
    REPORTS["growing"].save(tmp_path / "run.leak")
    assert cli.main(["report", str(tmp_path / "run.leak")]) == 1
    assert "::error" not in capsys.readouterr().out
    assert cli.main(["report", str(tmp_path / "run.leak"), "--annotate"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("growing:") and "\n::error file=train.py,line=58,title=leakprobe" in out
