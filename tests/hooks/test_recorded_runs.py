"""Recordings of real runs: complete after SIGKILL, whole beside forks, and never in the way of the loop."""

import json
import os
import signal
import subprocess
import sys
import tempfile

from leakprobe import recording


def run_fresh(code: str, path) -> str:
    """What the code prints, run in a process of its own with the path as its argument."""
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


LOOP = """
import leakprobe, os, sys
kept = []
path = sys.argv[1]
def loop(steps, each=lambda i: None):
    with leakprobe.watch(record=path) as probe:
        for i in range(steps):
            kept.append(bytearray(5000))
            probe.step()
            each(i)
    return probe
"""


def test_a_recording_says_what_the_report_says(tmp_path):
    path = tmp_path / "run.leak"
    out = run_fresh(LOOP + "import json; r = loop(60).report(); print(json.dumps(r.to_dict()))", path)
    loaded = recording.load(path)
    assert loaded.state == "ended" and loaded.settings["warmup"] == 5
    assert loaded.report.to_dict() == json.loads(out)
    assert loaded.report.verdict == "growing" and loaded.report.sites


def test_after_sigkill_the_recording_is_complete_to_the_last_commit(tmp_path):
    """The loop waits at step 400 of 1,000, once its marks are on file, and is killed there."""
    path = tmp_path / "run.leak"
    code = LOOP + (
        "def each(i):\n"
        "    if i == 399:\n"
        "        probe = leakprobe._core.active_watch()\n"
        "        probe._recorder._next_commit = 0.0\n"
        "        probe.step()\n"
        "        print('here', flush=True); sys.stdin.read()\n"
        "loop(1000, each)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "here\n"
    assert recording.load(path).state == "running"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    loaded = recording.load(path)
    assert loaded.state == "cut off"
    assert [row["step"] for row in loaded.report.timeline] == list(range(1, 402))
    finding = loaded.report.findings[0]
    assert finding.type == "bytearray" and "kept" in finding.path[1]["text"]
    assert loaded.report.verdict == "growing" and loaded.report.steps == {"warmup": 5, "measured": 396}


def test_forked_workers_leave_the_recording_alone(tmp_path):
    """Children that mark, end by themselves and run their finalizers; the parent's file stays whole."""
    path = tmp_path / "run.leak"
    code = LOOP + (
        "import warnings; warnings.simplefilter('ignore')\n"
        "def each(i):\n"
        "    if i % 10 == 5:\n"
        "        probe = leakprobe._core.active_watch()\n"
        "        child = os.fork()\n"
        "        if child == 0:\n"
        "            probe.step()\n"
        "            sys.exit(0)\n"
        "        assert os.waitpid(child, 0)[1] == 0\n"
        "r = loop(60, each).report(); print(r.verdict, len(r.notes))\n"
    )
    assert run_fresh(code, path).startswith("growing")
    loaded = recording.load(path)
    assert loaded.state == "ended" and [row["step"] for row in loaded.report.timeline] == list(range(1, 61))


def test_a_disk_that_fills_up_is_told_and_the_training_goes_on(tmp_path):
    """The largest size of a file stands in for a full disk."""
    path = tmp_path / "run.leak"
    code = LOOP + (
        "import resource\n"
        "def each(i):\n"
        "    if i == 20:\n"
        "        size = os.path.getsize(path)\n"
        "        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))\n"
        "r = loop(3000, each).report()\n"
        "print(len(kept), r.verdict, [n.text for n in r.notes if n.kind == 'dropped'])\n"
    )
    out = run_fresh(code, path)
    assert out.startswith("3000 growing ['"), out
    assert "missing in the recording" in out
    assert recording.load(path).report.timeline[0]["step"] == 1


def test_a_folder_that_is_read_only():
    """As an ordinary user: recording there is an error at once, reading there works."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        path = os.path.join(folder, "run.leak")
        code = LOOP + (
            "from leakprobe import recording\n"
            "import tempfile\n"
            "tempfile.tempdir = os.path.join(os.path.dirname(path), 'temporary')\n"  # of that user too
            "os.mkdir(tempfile.tempdir)\n"
            "os.chmod(tempfile.tempdir, 0o777)\n"
            "loop(30)\n"
            "recording.load(path)\n"
            "os.chmod(path, 0o444)\n"
            "os.chmod(os.path.dirname(path), 0o555)\n"
            "if os.getuid() == 0: os.setuid(65534)\n"
            "print(recording.load(path).report.verdict)\n"
            "path = os.path.join(os.path.dirname(path), 'other.leak')\n"
            "try: loop(3)\n"
            "except leakprobe.LeakprobeError as error: print(error.code, leakprobe.is_active(), error)\n"
        )
        verdict, refused = run_fresh(code, path).splitlines()
        os.chmod(folder, 0o755)
    assert verdict == "growing"
    assert refused.startswith("unwritable_file False ") and "give a file in a folder" in refused


def test_an_error_in_the_loop_closes_the_recording(tmp_path):
    path = tmp_path / "run.leak"
    code = (
        LOOP
        + "def each(i):\n    if i == 40: raise KeyError('mine')\ntry: loop(90, each)\nexcept KeyError: print('raised')\n"
    )
    assert run_fresh(code, path) == "raised\n"
    loaded = recording.load(path)
    assert loaded.state == "ended" and loaded.report.timeline[-1]["step"] == 41


def test_a_program_that_ends_inside_its_watch_is_recorded_to_its_end(tmp_path):
    path = tmp_path / "run.leak"
    code = (
        LOOP
        + "probe = leakprobe.start(record=path)\nfor i in range(50): kept.append(bytearray(5000)); probe.step()\n"
    )
    run_fresh(code, path)
    loaded = recording.load(path)
    assert loaded.state == "ended" and [row["step"] for row in loaded.report.timeline] == list(range(1, 51))
    assert loaded.report.verdict == "growing" and loaded.report.steps["measured"] == 45
