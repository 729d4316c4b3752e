"""A program under ``leakprobe run`` that enters watches of its own: the run's gives way to them."""

import json
import subprocess
import sys
import textwrap

import pytest

LEAKS = """
    import leakprobe
    kept = []
    def leak(probe, steps=60):
        for i in range(steps):
            kept.append(bytearray(5000))
            probe.step()
    def work(probe, steps=60):
        for i in range(steps):
            probe.step()
"""


def run(folder, code, *options):
    """(the finished process, its report)"""
    (folder / "program.py").write_text(textwrap.dedent(LEAKS) + textwrap.dedent(code))
    tool = [sys.executable, "-m", "leakprobe", "run", *options, "--json", "report.json", "program.py"]
    done = subprocess.run(tool, cwd=folder, capture_output=True, text=True, timeout=300)
    assert (folder / "report.json").exists(), done.stderr
    return done, json.loads((folder / "report.json").read_text())


def gave_way(report):
    return any("entered a watch of its own" in note["text"] for note in report["notes"])


def rates(report):
    return [finding["bytes_per_step"] for finding in report["findings"]]


def test_the_programs_own_watch_is_the_one_that_is_reported(tmp_path):
    done, report = run(
        tmp_path,
        """
        with leakprobe.watch(warmup=10) as probe:
            leak(probe)
        print(probe.report().verdict)
        """,
    )
    assert (done.stdout, done.returncode) == ("growing\n", 1)
    assert report["steps"] == {"warmup": 10, "measured": 50} and gave_way(report)
    assert rates(report) == [pytest.approx(5057, rel=0.02)]


def test_a_leak_in_one_of_several_is_not_lost(tmp_path):
    _, report = run(
        tmp_path,
        """
        for does in (work, leak, work):
            with leakprobe.watch() as probe:
                does(probe)
        """,
    )
    assert report["verdict"] == "growing" and len(report["findings"]) == 1


def test_a_watch_inside_the_programs_own_is_an_error_there(tmp_path):
    done, report = run(
        tmp_path,
        """
        with leakprobe.watch() as probe:
            try:
                leakprobe.start()
            except leakprobe.LeakprobeError as error:
                print(error.code)
            leak(probe)
        """,
    )
    assert done.stdout == "already_active\n"
    assert report["verdict"] == "growing" and report["as_of_step"] == 60


def test_one_that_is_started_and_never_stopped(tmp_path):
    _, report = run(tmp_path, "leak(leakprobe.start())")
    assert report["verdict"] == "growing" and report["as_of_step"] == 60


def test_one_without_steps_leaves_the_report_to_the_run(tmp_path):
    done, report = run(
        tmp_path,
        """
        with leakprobe.watch():
            pass
        print("ended")
        """,
    )
    assert done.stdout == "ended\n" and report["verdict"] == "inconclusive" and not gave_way(report)


def test_it_records_where_the_run_would(tmp_path):
    run(
        tmp_path,
        """
        with leakprobe.watch() as probe:
            leak(probe)
        """,
        "--record",
        "run.leak",
    )
    shown = [sys.executable, "-m", "leakprobe", "report", "run.leak", "--json", "recorded.json"]
    subprocess.run(shown, cwd=tmp_path, capture_output=True, timeout=300)
    recorded = json.loads((tmp_path / "recorded.json").read_text())
    assert recorded["verdict"] == "growing" and recorded["as_of_step"] == 60


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_in_a_process_that_the_program_starts(tmp_path, method):
    """Processes are watched where torch is imported."""
    pytest.importorskip("torch", reason="processes are watched once torch is imported")
    _, report = run(
        tmp_path,
        f"""
        import multiprocessing, torch
        def train():
            with leakprobe.watch() as probe:
                leak(probe)
        if __name__ == "__main__":
            one = multiprocessing.get_context({method!r}).Process(target=train)
            one.start()
            one.join()
        """,
    )
    assert report["verdict"] == "growing" and rates(report) == [pytest.approx(5057, rel=0.02)]


def test_a_finding_of_the_run_before_it_is_kept(tmp_path):
    pytest.importorskip("torch", reason="steps are those of an optimizer")
    _, report = run(
        tmp_path,
        """
        import torch
        net = torch.nn.Linear(4, 4)
        optimizer = torch.optim.SGD(net.parameters(), 0.1)
        for i in range(60):
            kept.append(bytearray(5000))
            optimizer.step()
        with leakprobe.watch() as probe:
            work(probe)
        """,
    )
    assert report["verdict"] == "growing" and report["as_of_step"] == 60


def test_what_is_attached_gives_way_too(tmp_path):
    """``begin()`` is what attach() has the process run, where Python can do that."""
    done, _ = run(
        tmp_path,
        """
        import json
        from leakprobe import attached
        options = json.dumps({"warmup": 5, "limit": 256, "record": "attached.leak", "steps": 100})
        try:
            attached.begin(options)
        except leakprobe.LeakprobeError as error:
            print(error.code)
        leakprobe.stop()
        attached.begin(options)
        with leakprobe.watch() as probe:
            leak(probe)
        print(probe.report().verdict, leakprobe.is_active())
        """,
    )
    assert done.stdout == "already_active\ngrowing False\n", done.stderr


TRAINS = """
import torch
net = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for i in range(60):
    BODY
    optimizer.step()
"""
LEAKS_FIRST, KEEPS_NOTHING = (
    TRAINS.replace("BODY", "kept.append(bytearray(5000))"),
    TRAINS.replace("BODY", "pass"),
)


@pytest.mark.parametrize(
    ("before", "own", "verdict", "parts"),
    [
        (LEAKS_FIRST, "work(probe)", "growing", ["run.leak", "run.own-watch.leak"]),
        (LEAKS_FIRST, "pass", "growing", ["run.leak"]),
        (KEEPS_NOTHING, "pass", "inconclusive", ["run.leak"]),
        (KEEPS_NOTHING, "leak(probe)", "growing", ["run.leak"]),
        (KEEPS_NOTHING, "work(probe)", "steady", ["run.leak"]),
    ],
)
def test_the_recording_is_of_what_is_reported(tmp_path, before, own, verdict, parts):
    pytest.importorskip("torch", reason="steps are those of an optimizer")
    code = f"{before}\nwith leakprobe.watch() as probe:\n    {own}\n"
    _, report = run(tmp_path, code, "--record", "run.leak")
    assert report["verdict"] == verdict
    assert sorted(path.name for path in tmp_path.glob("*.leak")) == parts
    shown = [sys.executable, "-m", "leakprobe", "report", "run.leak", "--json", "recorded.json"]
    subprocess.run(shown, cwd=tmp_path, capture_output=True, timeout=300)
    recorded = json.loads((tmp_path / "recorded.json").read_text())
    assert recorded["as_of_step"] == report["as_of_step"] and rates(recorded) == rates(report)


def test_what_comes_after_a_watch_without_steps_is_not_judged(tmp_path):
    pytest.importorskip("torch", reason="steps are those of an optimizer")
    code = f"{KEEPS_NOTHING}\nwith leakprobe.watch():\n    pass\n{LEAKS_FIRST}"
    done, report = run(tmp_path, code)
    assert (done.returncode, report["verdict"]) == (3, "inconclusive")
    assert any("what the program did from then on is not judged" in note["text"] for note in report["notes"])


@pytest.mark.parametrize(("steps", "code"), [("work", 0), ("leak", 1)])
def test_an_error_stream_that_is_gone_leaves_the_exit_code(tmp_path, steps, code):
    text = f"import os\nwith leakprobe.watch() as probe:\n    {steps}(probe)\nos.close(2)\n"
    assert run(tmp_path, text)[0].returncode == code
