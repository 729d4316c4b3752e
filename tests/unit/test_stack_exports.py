"""Stacks for flame graphs: folded, speedscope by its schema, pprof by real readers of it."""

import gzip
import json
import pathlib
import re
import shutil
import subprocess

import pytest
from sample_reports import STACK, USER, finding, report

from leakprobe import cli
from leakprobe.model.frames import Frame
from leakprobe.report.folded import to_folded
from leakprobe.report.pprof import TYPES, packed, to_pprof, varint
from leakprobe.report.samples import AMOUNTS, samples_of
from leakprobe.report.speedscope import to_speedscope

SCHEMAS = pathlib.Path(__file__).parent.parent / "schemas"


def site(frames, live, count, medium="cpu", kind=None) -> dict:
    return {
        "medium": medium,
        "type": kind,
        "live_bytes": live,
        "live_count": count,
        "bytes_per_step": None,
        "survivors": [],
        "allocation": USER,
        "allocation_stack": list(frames),
    }


def growing(rank=None, **changes):
    """A kept loss of 6 MiB a step, and 1 MiB that is alive at a line with a hostile name."""
    made = report([finding(**changes), finding(fingerprint="ab", bytes_per_step=512.4, allocation_stack=[],
                                               allocation=None, medium="python", type="Node")])  # fmt: skip
    made.sites = [site(STACK, 360 * 2**20, 180), site([Frame("/home/me/a;b.py", 3, "f\ng;h")], 2**20, 1)]
    made.run = {"program": "/home/me/train.py", "started": 1_700_000_000.5}
    return made if rank is None else mark(made, rank)


def mark(made, rank):
    made.run["rank"] = rank
    return made


def test_growth_is_the_findings_and_live_bytes_are_the_sites():
    samples = samples_of([("x", growing())])
    assert sum(s.bytes_per_step for s in samples) == 6 * 2**20 + 512.4
    assert sum(s.live_bytes for s in samples) == 361 * 2**20
    assert samples[0].frames == tuple(reversed(STACK)) and samples[0].origin == ""
    assert samples[1].frames[0] == USER, "the line that grew the holder, where no stack is known"


def test_a_report_without_sites_has_the_live_bytes_of_its_findings():
    samples = samples_of([("x", report([finding()]))])
    assert [(s.live_bytes, s.live_count) for s in samples] == [(360 * 2**20, 180)]


def test_a_loop_leaves_its_workers_to_their_own_recordings():
    loop, worker = report([finding(medium="worker")]), report([finding()])
    worker.run["worker"] = 0
    assert len(samples_of([("loop", loop)])) == 1
    assert [s.origin for s in samples_of([("loop", loop), ("worker 0", worker)])] == ["worker 0"]


def test_folded_stacks():
    lines = to_folded([("x", growing())]).splitlines()
    assert lines[0] == (
        "leakprobe growth per step;training_step (train.py:58);forward (model.py:21);"
        "Linear.forward (linear.py:125);torch.Tensor (cpu) 6291456"
    )
    assert lines[1].endswith("Node (python) 512") and len(lines) == 2
    live = to_folded([("x", growing())], "live").splitlines()
    assert live[1] == r"leakprobe live bytes;f\ng:h (a:b.py:3);buffers (cpu) 1048576"
    assert all(re.fullmatch(r"[^;]+(;[^;]+)+ \d+", line) for line in lines + live)


def test_folded_stacks_of_ranks_begin_with_the_rank_and_equal_ones_are_added_up():
    two = [("rank 0", growing(0)), ("rank 1", growing(1))]
    assert {line.split(";")[1] for line in to_folded(two).splitlines()} == {"rank 0", "rank 1"}
    twice = growing()
    twice.findings *= 2
    assert to_folded([("x", twice)]).splitlines()[0].endswith(" 12582912")


@pytest.mark.parametrize("parts", [
    [("x", growing())], [("rank 0", growing(0)), ("rank 1", growing(1))], [("x", report())],
], ids=["one", "two", "steady"])  # fmt: skip
def test_speedscope_by_its_schema(parts):
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((SCHEMAS / "speedscope.json").read_text())
    data = json.loads(to_speedscope(parts))
    jsonschema.validate(data, schema)
    frames = data["shared"]["frames"]
    for profile in data["profiles"]:
        assert profile["endValue"] == pytest.approx(sum(profile["weights"]))
        assert all(0 <= n < len(frames) for stack in profile["samples"] for n in stack)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data | {"profiles": [{"type": "sampled"}]}, schema)


def test_speedscope_names_the_frames_outermost_first():
    data = json.loads(to_speedscope([("x", growing())]))
    growth, live = data["profiles"][0], data["profiles"][1]
    assert (growth["name"], growth["unit"]) == ("growth per step", "bytes")
    names = [data["shared"]["frames"][n]["name"] for n in growth["samples"][0]]
    assert names == ["training_step", "forward", "Linear.forward", "torch.Tensor (cpu)"]
    assert growth["weights"] == [6 * 2**20, 512.4] and sum(live["weights"]) == 361 * 2**20
    assert data["shared"]["frames"][0] == {"name": "training_step", "file": "/home/me/train.py", "line": 58}


def go_pprof(path, *options) -> str:
    done = subprocess.run(
        ["go", "tool", "pprof", *options, str(path)],
        capture_output=True,
        text=True,
        timeout=300,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_pprof_by_the_tool_itself(tmp_path):
    if shutil.which("go") is None:
        pytest.skip("needs Go: go tool pprof")
    path = tmp_path / "two.pb.gz"
    path.write_bytes(to_pprof([("rank 0", growing(0)), ("rank 1", growing(1))]))
    raw = go_pprof(path, "-raw")
    assert (
        "live_objects/count live_space/bytes growth_objects_per_step/count growth_space_per_step/bytes" in raw
    )
    assert "Time: 2023-11-14" in raw  # of the start of the run
    top = go_pprof(path, "-top", "-unit=b")
    assert "Type: growth_space_per_step" in top and re.search(r"12582912B .* Linear.forward", top)
    one = go_pprof(path, "-top", "-unit=b", "-tagfocus=origin=rank 1")
    assert re.search(r"6291456B .* Linear.forward", one)
    live = go_pprof(path, "-top", "-unit=b", "-sample_index=live_space", "-lines", "-nodefraction=0")
    assert re.search(r"754974720B .* Linear.forward .*linear.py:125", live) and r"f\ng;h" in live
    tags = go_pprof(path, "-tags")
    assert all(word in tags for word in ("graph_kept", "0123456789ab", "torch.Tensor", "rank 0", "cpu"))


def read_profile(data: bytes):
    """By Google's own reader for Python."""
    pytest.importorskip("google.protobuf")
    messages = pytest.importorskip("googlecloudprofiler.profile_pb2", reason="needs google-cloud-profiler")
    profile = messages.Profile()
    profile.ParseFromString(gzip.decompress(data))
    return profile


def test_pprof_by_a_python_reader():
    profile = read_profile(to_pprof([("x", growing())]))
    texts = profile.string_table
    assert texts[0] == "" and len(set(texts)) == len(texts)
    assert [texts[t.type] for t in profile.sample_type] == list(TYPES.values())
    assert texts[profile.default_sample_type] == "growth_space_per_step"
    first = profile.sample[0]
    assert list(first.value) == [0, 0, 3, 6 * 2**20]
    functions = {f.id: (texts[f.name], texts[f.filename]) for f in profile.function}
    lines = {at.id: (*functions[at.line[0].function_id], at.line[0].line) for at in profile.location}
    assert [lines[n] for n in first.location_id] == [(f.function, f.filename, f.lineno) for f in STACK]
    assert {texts[label.key]: texts[label.str] for label in first.label}["cause"] == "graph_kept"
    assert profile.time_nanos == 1_700_000_000_500_000_000
    assert all(at.mapping_id == profile.mapping[0].id for at in profile.location)


def test_the_same_report_gives_the_same_bytes():
    assert to_pprof([("x", growing())]) == to_pprof([("x", growing())])


def test_numbers_of_the_wire_format():
    """Examples of protobuf's own description of its encoding."""
    assert [varint(n) for n in (0, 1, 150)] == [b"\0", b"\1", b"\x96\1"]
    assert varint(-2) == bytes.fromhex("feffffffffffffffff01")
    assert packed(6, [3, 270, 86942]) == bytes.fromhex("3206038e029ea705")


def test_amounts_that_no_profile_can_hold_are_cut():
    assert to_pprof([("x", growing(live_bytes=10**24, bytes_per_step=1e24))]) != b""


@pytest.mark.parametrize("kind", ["folded", "speedscope", "pprof"])
def test_export_writes_the_file_and_overwrites_only_its_own(kind, tmp_path, capsys):
    growing().save(tmp_path / "run.leak")
    command = ["export", str(tmp_path / "run.leak"), "--format", kind, "-o"]
    assert cli.main([*command, str(tmp_path / "out")]) == 0
    first = (tmp_path / "out").read_bytes()
    assert first and (tmp_path / "out").stat().st_mode & 0o777 == 0o600
    assert cli.main([*command, str(tmp_path / "out")]) == 0 and (tmp_path / "out").read_bytes() == first
    (tmp_path / "mine").write_bytes(b"main;f 1\n" if kind == "folded" else gzip.compress(b"mine"))
    assert cli.main([*command, str(tmp_path / "mine")]) == 2
    assert "give another name" in capsys.readouterr().err


@pytest.mark.parametrize("amount", list(AMOUNTS))
def test_what_folded_stacks_count_is_chosen(amount, tmp_path, capsysbinary):
    growing().save(tmp_path / "run.leak")
    assert cli.main(["export", str(tmp_path / "run.leak"), "--format", "folded", "--amount", amount]) == 0
    out = capsysbinary.readouterr().out.decode()
    assert out.startswith(f"leakprobe {AMOUNTS[amount][0]};")
