"""to_dict() and the JSON file keep to docs/report.schema.json, the contract of schema version 2."""

import dataclasses
import json
import pathlib
import stat

import pytest
from sample_reports import finding, note, peak, report

from leakprobe.errors import LeakprobeError
from leakprobe.model.causes import CAUSES
from leakprobe.model.report import Report
from leakprobe.report.html import page

SCHEMA = json.loads((pathlib.Path(__file__).parents[2] / "docs" / "report.schema.json").read_text())

TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}


def problems(value, schema, where="report"):
    """What of ``value`` breaks ``schema``: the few words of JSON Schema that the file uses."""
    if "$ref" in schema:
        schema = SCHEMA["$defs"][schema["$ref"].rsplit("/", 1)[-1]]
    if "anyOf" in schema:
        found = [list(problems(value, option, where)) for option in schema["anyOf"]]
        if all(found):
            yield from min(found, key=len)
        return
    if "const" in schema and value != schema["const"]:
        yield f"{where} is not {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where} is {value!r}"
    names = schema.get("type", list(TYPES))
    names = [names] if isinstance(names, str) else names
    if not any(
        isinstance(value, TYPES[n]) and not (isinstance(value, bool) and n != "boolean") for n in names
    ):
        yield f"{where} is a {type(value).__name__}, not {names}"
    elif isinstance(value, dict):
        yield from (f"{where}.{key} is missing" for key in schema.get("required", []) if key not in value)
        for key, item in value.items():
            if key in schema.get("properties", {}):
                yield from problems(item, schema["properties"][key], f"{where}.{key}")
            elif isinstance(schema.get("additionalProperties"), dict):
                yield from problems(item, schema["additionalProperties"], f"{where}.{key}")
            elif schema.get("additionalProperties") is False:
                yield f"{where}.{key} is not in the schema"
    elif isinstance(value, list) and "items" in schema:
        for i, item in enumerate(value):
            yield from problems(item, schema["items"], f"{where}[{i}]")


CYCLE = [{"text": "Node", "edge": "attribute", "type": "Node"}]
REPORTS = {
    "steady": report(),
    "inconclusive": report(verdict="inconclusive", measured=0, warmup=0),
    "growing": report([finding()], [note()]),
    "bare finding": report(
        [finding(path=None, holder=None, allocation=None, allocation_stack=[], fix=None, type=None)]
    ),
    "cycle": report([finding(kind="reference_cycle", cycle=CYCLE)], [note(kind="gap", medium=None)]),
    "peak": dataclasses.replace(report(), peaks=[peak()]),
}


@pytest.mark.parametrize("what", REPORTS.values(), ids=REPORTS)
def test_reports_keep_to_the_schema(what):
    assert list(problems(what.to_dict(), SCHEMA)) == []


def test_the_check_sees_what_is_wrong():
    data = REPORTS["growing"].to_dict()
    data["verdict"] = "fine"
    data["findings"][0]["live_bytes"] = "many"
    del data["findings"][0]["path"]
    data["steps"]["measured"] = True
    found = "\n".join(problems(data, SCHEMA))
    assert all(word in found for word in ("report.verdict", "live_bytes", "path is missing", "measured"))


def test_the_same_with_jsonschema_where_it_is_installed():
    jsonschema = pytest.importorskip("jsonschema")
    for what in REPORTS.values():
        jsonschema.validate(json.loads(json.dumps(what.to_dict())), SCHEMA)


def test_the_schema_names_every_cause():
    assert set(SCHEMA["$defs"]["finding"]["properties"]["cause"]["enum"]) == set(CAUSES)


def test_findings_are_sorted_by_rate():
    rates = [
        f["bytes_per_step"]
        for f in report([finding(bytes_per_step=r) for r in (1.0, 3.0, 2.0)]).to_dict()["findings"]
    ]
    assert rates == [3.0, 2.0, 1.0]


def test_the_dict_is_a_copy():
    what = report([finding()])
    data = what.to_dict()
    data["findings"][0]["path"][0]["text"] = "changed"
    data["media"]["python"]["live_bytes"] = -1
    data["findings"][0]["holder"].clear()
    assert what.to_dict() == report([finding()]).to_dict()


def test_the_file_holds_the_dict_and_is_the_owners(tmp_path):
    what = report([finding(type="módulo.\udcff")], [note()])
    path = tmp_path / "report.json"
    what.to_json(path)
    assert json.loads(path.read_text()) == what.to_dict()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_path_that_cannot_be_written_is_an_error_that_says_so(tmp_path):
    with pytest.raises(LeakprobeError, match="can't be written") as error:
        report().to_json(tmp_path / "missing" / "report.json")
    assert error.value.code == "unwritable_file"


@pytest.mark.parametrize("what", REPORTS.values(), ids=REPORTS)
def test_reports_are_read_back_from_their_dicts(what):
    assert Report.from_dict(json.loads(json.dumps(what.to_dict()))).to_dict() == what.to_dict()


@pytest.mark.parametrize(
    "where,value",
    [
        (("verdict",), 3),
        (("findings",), [1]),
        (("findings", 0, "path"), "x"),
        (("findings", 0, "live_bytes"), float("nan")),
        (("media",), []),
        (("memory", 0, "rss"), "10"),
        (("memory", 0, "probe_overhead"), None),
        (("memory", 0), {"step": 1, "rss": 10}),
    ],
)
def test_dicts_with_wrong_values_are_errors(where, value):
    data = at = json.loads(json.dumps(REPORTS["growing"].to_dict()))
    for key in where[:-1]:
        at = at[key]
    at[where[-1]] = value
    with pytest.raises(LeakprobeError, match="damaged") as error:
        Report.from_dict(data)
    assert error.value.code == "unreadable_file"


@pytest.mark.parametrize("started", [2**63 - 1, 1e24, -1e12, -1, "noon", 253_402_300_800])
def test_a_start_that_is_no_date_is_left_out(started):
    data = {**REPORTS["growing"].to_dict(), "run": {"started": started, "python": "3.11"}}
    what = Report.from_dict(data)
    assert what.run == {"python": "3.11"} and "3.11" in page(what)


@pytest.mark.parametrize("key", ["timeline", "memory"])
def test_steps_that_fall_are_an_error(key):
    data = json.loads(json.dumps(REPORTS["growing"].to_dict()))
    data[key] = [{**data[key][0], "step": 1}, {**data[key][0], "step": 2}]
    Report.from_dict(data)
    data[key].reverse()
    with pytest.raises(LeakprobeError, match="step 1 after step 2"):
        Report.from_dict(data)


def test_the_last_date_is_kept():
    what = Report.from_dict({**REPORTS["growing"].to_dict(), "run": {"started": 253_402_300_799}})
    assert "9999-12-31 23:59:59 UTC" in page(what)
