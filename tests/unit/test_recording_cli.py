"""The verbs that read recordings: report, diff, why, cycles, export; in this process, on recordings made by
hand.
"""

import csv
import io
import json
import os
import re
import subprocess
import sys
import types

import pytest
from sample_reports import finding, note, report
from test_report_json import SCHEMA, problems

from leakprobe import cli
from leakprobe.model.frames import Frame
from leakprobe.report.compare import compare_sites

CYCLE = [
    {"text": "Node", "edge": "root", "type": "__main__.Node"},
    {"text": ".a Node", "edge": "attribute", "type": "__main__.Node"},
    {"text": ".b Node", "edge": "attribute", "type": "__main__.Node"},
]


@pytest.fixture
def run(capsys, monkeypatch):
    """run(*arguments): (exit code, standard output, standard error)."""
    monkeypatch.setenv("COLUMNS", "120")

    def run_here(*arguments):
        code = cli.main([str(a) for a in arguments])
        return code, *capsys.readouterr()

    return run_here


@pytest.fixture
def recorded(tmp_path):
    """recorded(name, Report): the path of its recording."""

    def write(name, what):
        what.save(tmp_path / name)
        return tmp_path / name

    return write


@pytest.fixture
def growing(recorded):
    return recorded(
        "growing.leak",
        report([finding(), finding(fingerprint="ba9876543210", medium="python", cycle=CYCLE, path=None)]),
    )


def test_report_prints_and_its_exit_code_is_the_verdict(run, growing, recorded):
    code, out, _ = run("report", growing)
    assert code == 1 and out.startswith("growing: 2 findings in 60 steps (5 warm-up)\n\n1  leak[")
    code, out, _ = run("report", recorded("clean.leak", report()))
    assert (code, out.splitlines()[0]) == (0, "steady: nothing grows (60 steps measured, 5 warm-up)")


def test_report_writes_json_by_the_schema(run, growing, tmp_path):
    assert run("report", growing, "--json", tmp_path / "out.json")[0] == 1
    data = json.loads((tmp_path / "out.json").read_text())
    assert list(problems(data, SCHEMA)) == [] and len(data["findings"]) == 2


def test_several_are_merged(run, growing, recorded):
    code, out, _ = run("report", growing, recorded("clean.leak", report()))
    assert code == 1 and re.search(r"in 1 of 2\s+recordings\s+\(growing.leak\)", out)


def test_why_shows_the_whole_path(run, growing):
    code, out, _ = run("why", growing, "1")
    assert code == 0 and "   ┬─ history (list, 60 items)\n   ╰→ [59] Tensor\n" in out
    assert "/home/me/train.py:58 in training_step" in out
    assert run("why", growing, "ba98")[1].startswith("2  ")


def test_trees_are_ascii_where_the_stream_is(growing):
    from leakprobe.recording import load
    from leakprobe.report.paths import print_path

    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    found = load(growing).report
    print_path(1, found.findings[0], found, stream)
    stream.seek(0)
    assert "   +- history (list, 60 items)\n   `> [59] Tensor\n" in stream.read()


@pytest.mark.parametrize(
    "which,message", [("3", "no finding 3; this recording has 1 \\(0123"), ("x", "no finding x")]
)
def test_why_of_a_finding_that_is_not_there(run, growing, which, message):
    code, _, err = run("why", growing, which)
    assert code == 2 and re.search(message, err)


def test_cycles(run, growing, recorded):
    out = run("cycles", growing)[1]
    assert "   ┬─ Node\n" in out and "   ╰→ .b Node" in out
    out = run(
        "cycles",
        recorded(
            "noted.leak", report(notes=[note(kind="reference_cycle", cycle=CYCLE, text="cycles that wait")])
        ),
    )[1]
    assert "cycles that wait" in out and ".a Node" in out
    assert run("cycles", recorded("clean.leak", report()))[1] == "no reference cycles were recorded\n"


def test_diff_says_what_came_went_and_changed(run, recorded):
    a = recorded(
        "a.leak",
        report([finding(), finding(fingerprint="aa", type="dict"), finding(fingerprint="bb", type="list")]),
    )
    b = recorded(
        "b.leak",
        report(
            [
                finding(bytes_per_step=1.0),
                finding(fingerprint="cc", type="set"),
                finding(fingerprint="bb", type="list"),
            ]
        ),
    )
    code, out, _ = run("diff", a, b)
    states = [line.split()[0] for line in out.splitlines()[2:]]
    assert code == 0 and states == ["new", "changed", "same", "gone"]
    assert "set" in out.splitlines()[2] and "(was +6.0 MiB/step)" in out and "dict" in out.splitlines()[5]


def test_diff_names_a_site_by_its_stack_where_no_line_is_the_users(run, recorded):
    def with_sites(count, **changes):
        row = {"medium": "cpu", "type": None, "live_bytes": count, "live_count": count, "bytes_per_step": None, "survivors": [],
               "allocation": None, "allocation_stack": finding().allocation_stack, **changes}  # fmt: skip
        what = report()
        what.sites = [
            row,
            {**row, "medium": "numpy", "allocation_stack": row["allocation_stack"][:1]},
            {**row, "medium": "shared", "allocation_stack": []},
        ]
        return what

    code, out, _ = run("diff", recorded("a.leak", with_sites(1)), recorded("b.leak", with_sites(3)))
    assert code == 0 and "model.py:21 forward" in out and "linear.py:125 Linear.forward" in out


def test_diff_of_snapshots(run, tmp_path):
    from leakprobe.snapshot import Snapshot, SnapshotRow

    row = SnapshotRow("cpu", None, (("train.py", 3, "f"),), 1, 2, 4, 1024)
    Snapshot([row], 1).save(tmp_path / "a")
    Snapshot([row, SnapshotRow("cpu", None, (("train.py", 9, "f"),), 1, 2, 4, 2048)], 2).save(tmp_path / "b")
    out = run("diff", tmp_path / "a", tmp_path / "b")[1]
    assert "2.0 KiB" in out and "train.py:9" in out


def test_perfetto(run, growing, tmp_path):
    assert run("export", growing, "--format", "perfetto", "-o", tmp_path / "trace.json")[0] == 0
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert {"ph": "C", "name": "rss", "pid": 1, "tid": 0, "ts": 500000, "args": {"bytes": 10}} in events
    assert [e["name"] for e in events if e["ph"] == "X"] == ["step 1"]
    assert any(e["ph"] == "i" and "torch.Tensor" in e["name"] for e in events)
    assert all(isinstance(e.get("ts", 0), (int, float)) and "pid" in e for e in events)


def test_perfetto_has_counters_of_cuda_devices_at_looks(run, recorded, tmp_path):
    from leakprobe.report.exports import to_perfetto

    what = report()
    memory = {
        **what.memory[-1],
        "cuda:0 allocated": 5,
        "cuda:0 reserved": 9,
        "cuda:0 outside": 0,
        "cuda:0 why": "no number",
    }
    what.memory[-1] = memory
    events = json.loads(to_perfetto(what))["traceEvents"]
    counters = {e["name"]: e["args"]["bytes"] for e in events if e["ph"] == "C"}
    assert {k: v for k, v in counters.items() if k.startswith("cuda")} == {
        "cuda:0 allocated": 5,
        "cuda:0 reserved": 9,
        "cuda:0 outside": 0,
    }
    again = run("export", recorded("cuda.leak", what), "--format", "perfetto", "-o", tmp_path / "trace.json")[
        0
    ]
    assert again == 0 and '"cuda:0 reserved"' in (tmp_path / "trace.json").read_text()


def test_csv_of_a_medium_with_a_hostile_name(run, tmp_path):
    what = report()
    what.timeline[0]["media"] = {"x\ud800\x1b[31m": {"live_bytes": 1, "peak_bytes": 1}}
    what.to_json(tmp_path / "r.json")
    code, out, _ = run("export", tmp_path / "r.json", "--format", "csv")
    assert code == 0 and out.splitlines()[0].endswith(",live_x\\ud800\\x1b[31m")


@pytest.mark.parametrize("limit", [-1, 0])
def test_diff_of_no_rows_is_wrong_usage(run, growing, limit):
    code, out, err = run("diff", growing, growing, "--limit", limit)
    assert (code, out) == (2, "") and f"--limit must be 1 or more, not {limit}" in err


def test_csv(run, growing):
    rows = list(csv.DictReader(io.StringIO(run("export", growing, "--format", "csv")[1])))
    assert (
        rows[0]["step"] == "1"
        and rows[0]["rss"] == "10"
        and rows[0]["live_python"] == "1"
        and rows[0]["malloc_in_use"] == ""
    )


def test_dot_is_a_graph_whose_names_are_quoted(run, recorded):
    path = [
        {"text": 'a "b" \\ \n', "edge": "global", "type": "list"},
        {"text": "[1] x", "edge": "item", "type": None},
    ]
    out = run("export", recorded("a.leak", report([finding(path=path, cycle=CYCLE)])), "--format", "dot")[1]
    assert out.startswith("digraph leakprobe {") and out.rstrip().endswith("}")
    assert r'[label="a \"b\" \\ \\n"]' in out
    assert "c1_0 -> c1_1" in out and "c1_1 -> c1_0" in out and "c1_2" not in out


def test_memory_viz_is_a_pickle_of_what_is_alive(run, recorded, tmp_path):
    import pickle

    sites = [{"medium": "cuda:1", "type": None, "live_bytes": 3000, "live_count": 3, "bytes_per_step": 10.0, "survivors": [[0, 3, 2, 2000], [4, 7, 1, 1000]],
              "allocation": None, "allocation_stack": []}]  # fmt: skip
    grown = report([finding()])
    grown.sites = sites
    path = recorded("cuda.leak", grown)
    assert run("export", path, "--format", "memory_viz", "-o", tmp_path / "out.pickle")[0] == 0
    made = pickle.loads((tmp_path / "out.pickle").read_bytes())
    assert [s["device"] for s in made["segments"]] == [1] and sum(
        b["size"] for b in made["segments"][0]["blocks"] if b["state"] != "inactive"
    ) == 3000
    assert [[e["action"] for e in trace] for trace in made["device_traces"]] == [[], ["alloc", "alloc"]]


@pytest.mark.parametrize("verb", [["report"], ["why"], ["cycles"], ["export", "--format", "csv"]])
def test_what_is_no_recording_is_a_usage_error(run, tmp_path, verb):
    (tmp_path / "notes.txt").write_text("hello")
    code, out, err = run(*verb, tmp_path / "notes.txt")
    assert (code, out) == (2, "") and "is not a recording" in err


def test_a_page_or_file_that_cannot_be_written_is_found_first(run, growing, tmp_path):
    for option in ("--html", "--json"):
        code, out, err = run("report", growing, option, tmp_path / "missing" / "x")
        assert (code, out) == (2, "") and "can't be written" in err


def test_a_folder_that_can_not_be_written_to_is_named(run, growing, tmp_path, monkeypatch):
    monkeypatch.setattr("leakprobe.files.os.access", lambda path, mode: False)
    for option in ("--html", "--json"):
        code, out, err = run("report", growing, option, tmp_path / "x")
        told = f"the folder {tmp_path} can't be written to; give a file in another one"
        assert (code, out) == (2, "") and told in err and "exists" not in err


def test_what_is_a_folder_is_no_file_to_write(run, growing, tmp_path):
    err = run("report", growing, "--json", tmp_path)[2]
    assert "Is a directory; give the name of a file" in err


def test_tables_come_as_json_too(run, growing, recorded, tmp_path):
    other = recorded("other.leak", report())
    code, out, _ = run("why", "--json", growing, "2")
    assert code == 0 and json.loads(out)["fingerprint"].startswith("ba98")
    cycles = json.loads(run("cycles", "--json", growing)[1])
    assert [row["cycle"][0]["text"] for row in cycles] == ["Node"]
    found = json.loads(run("diff", "--json", growing, other)[1])
    assert found["verdicts"] == ["growing", "steady"]
    assert [(row["state"], row["newer"]) for row in found["findings"]] == [("gone", None)] * 2
    target = tmp_path / "stacks.txt"
    code, out, _ = run("export", "--format", "folded", "--json", "-o", target, growing)
    assert json.loads(out) == {"file": str(target), "format": "folded", "bytes": target.stat().st_size}
    line = json.loads(run("live", "--json", growing)[1])
    assert line["report"]["verdict"] == "growing" and line["state"] != "running"


def test_rates_that_were_added_up_say_so(run, growing, recorded):
    again = recorded("again.leak", report([finding()]))
    out = " ".join(run("report", growing, again)[1].split())
    assert "rates and bytes added up: growing.leak +6.0 MiB/step, again.leak +6.0 MiB/step" in out


@pytest.mark.parametrize(
    "before, after, is_shown",
    [
        (None, (10, 2000), False),  # of a library: it may just be below the others of the first report
        ((10, 2000), (10, 2100), False),
        ((10, 2000), (12, 2400), True),
    ],
)
def test_lines_of_libraries_that_two_reports_list_alike_are_no_change(before, after, is_shown):
    def listed(row):
        frame = Frame("/usr/lib/python3/importlib.py", 7, "load")
        site = {"medium": "python", "type": "code", "allocation": None, "allocation_stack": [frame]}
        return types.SimpleNamespace(
            sites=[] if row is None else [site | {"live_count": row[0], "live_bytes": row[1]}]
        )

    assert bool(compare_sites(listed(before), listed(after))) == is_shown


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_names_that_are_no_utf8_are_recorded_and_read(run, recorded, tmp_path, monkeypatch):
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))  # where a copy is read
    path = recorded(os.fsdecode(b"caf\xe9/run%\xff.leak"), report())
    assert run("report", path)[0] == 0 == run("report", folder)[0]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize(
    "arguments",
    [["report"], ["why", "--json"], ["export", "--format", "csv"], ["export", "--format", "pprof"]],
)
def test_output_that_cannot_be_written_is_said_in_a_line(growing, arguments):
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "leakprobe", *arguments, growing],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=900,
        )
    assert done.returncode == 2
    assert done.stderr == "leakprobe: the output can't be written: No space left on device\n"


def test_a_defect_of_a_verb_is_no_growth(run, growing, monkeypatch):
    monkeypatch.setattr("leakprobe.cli.report.load_merged", lambda paths: 1 / 0)
    monkeypatch.setattr("sys.__stderr__", sys.stderr)
    code, _, err = run("report", growing)
    assert code == cli.INTERNAL == 70 and "ZeroDivisionError" in err


def test_export_without_standard_output(run, growing, monkeypatch):
    monkeypatch.setattr("sys.stdout", None)
    assert cli.main(["export", str(growing), "--format", "csv"]) == 2


def test_of_a_folder_with_one_recording_why_and_cycles_show_that(run, growing):
    assert run("why", growing.parent)[0] == 0
    assert run("cycles", growing.parent)[0] == 0


def test_a_report_that_has_no_room_leaves_the_one_before(growing, tmp_path):
    """As on a full disk: no file of this process may get larger."""
    pytest.importorskip("resource")
    page = tmp_path / "report.json"
    assert cli.main(["report", str(growing), "--json", str(page)]) == 1
    text = page.read_text()
    code = (
        "import resource, sys, signal\n"
        "from leakprobe.files import write_private\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({len(text)},) * 2)\n"
        "write_private(sys.argv[1], b'{' * (2 * resource.getrlimit(resource.RLIMIT_FSIZE)[0]), 'report')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(page)], capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 1 and "can't be written" in done.stderr
    assert page.read_text() == text


def test_a_damaged_recording_in_a_folder_is_left_out_and_reported(run, growing, recorded):
    damaged = recorded("a-damaged.leak", report())
    damaged.write_bytes(damaged.read_bytes()[:5000])
    code, out, _ = run("report", growing.parent)
    assert (
        code == 1 and "note[gap]: left out:" in out and "a-damaged.leak is damaged" in " ".join(out.split())
    )
    code, _, error = run("report", growing, damaged)
    assert code == 2 and "is damaged and can't be read" in error
    growing.unlink()
    assert run("report", damaged.parent)[0] == 2
