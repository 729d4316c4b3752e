"""Processes that a program starts with multiprocessing, under ``leakprobe run``: each is watched."""

import json
import os
import subprocess
import sys
import tempfile

import forked
import pytest

pytest.importorskip("torch", reason="steps are those of an optimizer")

PROGRAM = """
import sys, torch
from multiprocessing import Pool, get_context, set_start_method
torch.set_num_threads(1)
kept = []

def train(rank, leaks, steps=120):
    model = torch.nn.Linear(30, 40)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        outputs = model(torch.ones(50, 30))
        outputs.sum().backward()
        optimizer.step()
        if leaks == rank:
            kept.append(outputs.detach())

def fail():
    raise SystemExit(5)

def no_room(**options):
    raise OSError(28, "no space left on device")

class Own(get_context("fork").Process):
    def run(self):
        train(0, 0)

if __name__ == "__main__":
    {main}
"""
STARTED = """
    context = get_context(sys.argv[1])
    started = [context.Process(target=train, args=(rank, int(sys.argv[2]))) for rank in range(2)]
    [one.start() for one in started]
    [one.join() for one in started]
    sys.exit(max(one.exitcode for one in started))
"""


def run(folder, main, *arguments, options=()):
    """The exit code and the report."""
    (folder / "program.py").write_text(PROGRAM.replace("{main}", main.strip()))
    tool = ["-m", "leakprobe", "run", *options, "--json", "report.json"]
    # Not below the test's folder, whose name is too long for the forkserver's socket under xdist.
    with tempfile.TemporaryDirectory() as scratch:
        done = forked.run(
            [*tool, "program.py", *arguments],
            cwd=folder,
            env=os.environ | {"TMPDIR": scratch, "LEAKPROBE_LIVE": "0"},
            timeout=300,
            trains=True,
        )
        assert not [name for name in os.listdir(scratch) if name.startswith("leakprobe-")]
    assert (folder / "report.json").exists(), done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, json.loads((folder / "report.json").read_text())


@pytest.mark.parametrize("method", ["fork", "spawn", pytest.param("forkserver", marks=pytest.mark.slow)])
def test_a_process_that_leaks_is_named(tmp_path, method):
    code, report = run(tmp_path, STARTED, method, "1")
    assert len(report["findings"]) == 1, (report["verdict"], report["steps"], report["notes"])
    (finding,) = report["findings"]
    assert (code, report["verdict"], finding["cause"]) == (1, "growing", "growing_container")
    assert finding["allocation"]["function"] == "train"
    assert finding["bytes_per_step"] == pytest.approx(8000, rel=0.15)
    assert "in 1 of 2 recordings (process-2.leak)" in finding["evidence"]


def is_unjudged(report):
    """Whether it says that the process of the program itself was not judged."""
    return any("made no step itself and is not judged" in note["text"] for note in report["notes"])


def test_processes_that_keep_nothing(tmp_path):
    """What the program itself, which waits for them, may keep is not known."""
    report = run(tmp_path, STARTED, "fork", "9")[1]
    assert report["verdict"] == "steady" and is_unjudged(report)


def test_ranks_that_torch_spawns(tmp_path):
    main = "torch.multiprocessing.spawn(train, args=(0, 40), nprocs=2)"
    _code, report = run(tmp_path, main)
    assert "in 1 of 2 recordings (process-1.leak)" in report["findings"][0]["evidence"]


@pytest.mark.slow
def test_the_program_may_train_too_and_recordings_stay_beside_its_own(tmp_path):
    main = "train(0, 0)\n    " + STARTED.strip()
    _code, report = run(tmp_path, main, "spawn", "1", options=["-o", "run.leak"])  # autograd forbids fork
    evidence = [finding["evidence"] for finding in report["findings"]]
    assert not is_unjudged(report)
    assert any("(the program, run.process-2.leak)" in text for text in evidence)
    names = sorted(name for name in os.listdir(tmp_path) if name.endswith(".leak"))
    assert names == ["run.leak", "run.process-1.leak", "run.process-2.leak"]


def test_what_libraries_start_is_left_alone(tmp_path):
    """A pool's processes, and one with a run() of its own; the code of the program is kept."""
    main = """
    set_start_method("fork")
    with Pool(2) as pool:
        assert pool.map(abs, range(-3, 0)) == [3, 2, 1]
    own = Own(); own.start(); own.join()
    failed = get_context("fork").Process(target=fail); failed.start(); failed.join()
    sys.exit(failed.exitcode)
    """
    code, report = run(tmp_path, main)
    assert (code, report["verdict"], report["steps"]["measured"]) == (5, "inconclusive", 0)
    assert any(note["text"].startswith("3 processes were started") for note in report["notes"])


def test_where_no_recording_can_be_kept_processes_start_unwatched(tmp_path):
    main = "import tempfile; tempfile.mkdtemp = no_room\n    " + STARTED.strip()
    code, report = run(tmp_path, main, "fork", "1")
    assert (code, report["verdict"], report["steps"]["measured"]) == (3, "inconclusive", 0)
    assert any(note["text"].startswith("2 processes were started") for note in report["notes"])


RANKS = """
import os, subprocess, sys, torch
rank = int(os.environ.get("OWN_RANK", 0))
store = torch.distributed.FileStore(os.path.abspath("store"), 2)
if rank == 0:
    other = subprocess.Popen([sys.executable, __file__], env=os.environ | {"OWN_RANK": "1"})
torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=2)
model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(12):
    model(torch.ones(2, 2)).sum().backward()
    optimizer.step()
torch.distributed.barrier()
if rank == 0:
    sys.exit(other.wait())
"""


def test_ranks_that_the_program_starts_by_commands_of_its_own_are_said_to_be_unwatched(tmp_path):
    (tmp_path / "program.py").write_text(RANKS)
    tool = ["-m", "leakprobe", "run", "--json", "report.json", "program.py"]
    forked.run(tool, cwd=tmp_path, env=os.environ | {"LEAKPROBE_LIVE": "0"}, timeout=120, trains=True)
    notes = json.loads((tmp_path / "report.json").read_text())["notes"]
    assert any(note["text"].startswith("this report is of rank 0 of 2 only") for note in notes)


IN_THE_CHILD = """
import multiprocessing, sys
kept = []

def train():
    import torch
    model = torch.nn.Linear(30, 40)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(60):
        kept.append(bytearray(8000))
        optimizer.step()

if __name__ == "__main__":
    one = multiprocessing.get_context("spawn").Process(target=train)
    one.start()
    one.join()
    assert "torch" not in sys.modules
"""


def test_only_what_is_started_imports_torch(tmp_path):
    (tmp_path / "program.py").write_text(IN_THE_CHILD)
    tool = [sys.executable, "-m", "leakprobe", "run", "-o", "run.leak", "--json", "report.json", "program.py"]
    done = subprocess.run(tool, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert (tmp_path / "report.json").exists(), done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert (done.returncode, report["verdict"]) == (1, "growing")
    assert (tmp_path / "run.process-1.leak").exists()
