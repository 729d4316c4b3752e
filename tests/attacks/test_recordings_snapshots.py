"""Snapshots that were damaged: load() says so, and no later question raises anything."""

import base64
import json
import zlib

import pytest
from fuzz_recording import Fuzzer, question, take_snapshots

from leakprobe import cli
from leakprobe.errors import LeakprobeError
from leakprobe.snapshot import Snapshot


@pytest.fixture(scope="module")
def taken():
    return take_snapshots()


def edited(key: str, change):
    """Change the JSON text of the graph's names or cycles."""

    def apply(data) -> None:
        value = json.loads(data["graph"][key])
        data["graph"][key] = json.dumps(change(value))

    return apply


def each_cycle(**changes):
    return edited("cycles", lambda cycles: [{**cycle, **changes} for cycle in cycles])


def bomb(data) -> None:
    """64 MB of zeros in 64 KB."""
    data["graph"]["address"] = base64.b64encode(zlib.compress(bytes(2**26))).decode()


DAMAGE = {
    "rows that are no rows": lambda d: d.update(rows=[1]),
    "a count that is text": lambda d: d["rows"][0].update(count="9"),
    "a count that is no number": lambda d: d["rows"][0].update(size=float("nan")),
    "a stack of numbers": lambda d: d["rows"][0].update(stack=[[1, 2, 3]]),
    "a stack of pairs": lambda d: d["rows"][0].update(stack=[["a", 1]]),
    "a medium that is null": lambda d: d["rows"][0].update(medium=None),
    "a type that is a list": lambda d: d["rows"][0].update(type=[]),
    "a step that is text": lambda d: d.update(step="1"),
    "no step": lambda d: d.pop("step"),
    "a graph that is a list": lambda d: d.update(graph=[]),
    "no stacks": lambda d: d["graph"].pop("stacks"),
    "stacks of something": lambda d: d["graph"].update(stacks={"7": [["a", "b", "c"]]}),
    "stacks of text": lambda d: d["graph"].update(stacks={"x": []}),
    "a path without elements": edited("names", lambda names: {key: [] for key in names}),
    "a path of numbers": edited("names", lambda names: {key: [1] for key in names}),
    "a path to nothing": edited("names", lambda names: {"99999999": [{"text": "a", "edge": "b", "type": "c"}]}),
    "names in a list": edited("names", list),
    "cycles in a dict": edited("cycles", lambda cycles: {"a": cycles}),
    "cycles without a path": each_cycle(path=[]),
    "cycles of odd elements": each_cycle(path=[{"text": 1, "edge": "b", "type": "c"}]),
    "cycles that hold themselves": each_cycle(held_by=0),
    "cycles held by text": each_cycle(held_by="0"),
    "cycles with odd bytes": each_cycle(bytes={"python": "9"}),
    "cycles with odd objects": each_cycle(objects=[["a", 1]]),
    "cycles with odd sites": each_cycle(sites=[[[], 1]]),
    "cycles that lack something odd": each_cycle(lacks={"text": "a"}),
    "nested JSON": lambda d: d["graph"].update(names="[" * 100_000),
    "groups of text": lambda d: d["graph"].update(groups=["a"]),
    "zeros without end": bomb,
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_snapshots_are_refused_by_load(name, taken, tmp_path, capsys):
    data = json.loads(json.dumps(taken[0]))
    DAMAGE[name](data)
    path = tmp_path / "snapshot"
    path.write_text(json.dumps(data))
    with pytest.raises(LeakprobeError, match="can't be read as a snapshot") as error:
        Snapshot.load(path)
    assert str(path) in str(error.value) and "\n" not in str(error.value)
    assert cli.main(["diff", str(path), str(path)]) == cli.USAGE
    assert "can't be read as a snapshot" in capsys.readouterr().err


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe", b"[" * 100_000, b'{"schema": "leakprobe-snapshot", ' + b'"a": {' * 99_999]
)
def test_what_is_no_json_is_refused_by_load(content, tmp_path):  # fmt: skip
    (tmp_path / "snapshot").write_bytes(content)
    with pytest.raises(LeakprobeError):
        Snapshot.load(tmp_path / "snapshot")


def test_a_whole_snapshot_answers_all_questions(taken, tmp_path):
    for number, data in enumerate(taken):
        path = tmp_path / str(number)
        path.write_text(json.dumps(data))
        assert question(path, Snapshot.load(path)) == "read"


def test_a_snapshot_that_was_damaged_at_random_is_refused_or_answers_all_questions(tmp_path):
    fuzzer = Fuzzer(3, tmp_path, ["snapshot"])
    for _ in range(12):
        assert fuzzer.once()
