"""What frames hold that an exception has unwound: while it is handled, it is reported as if they ran."""

import json
import signal
import subprocess
import sys

import pytest
from clocked import FREE

PROGRAM = """
import os, signal, sys
import leakprobe

class Trainer:
    def __init__(self):
        self.history = []

    def step(self, probe, number):
        self.history.append(bytearray(5000))
        probe.step()
        if number == 60:
            END

def train(probe):
    trainer = Trainer()
    for number in range(1, 100):
        trainer.step(probe, number)

def attempt(probe):
    try:
        train(probe)
    except ValueError as error:
        raise LookupError from error
"""
WATCHED = """
probe = leakprobe.watch(warmup=5)
try:
    with probe:
        CALL
except Exception:
    pass
import json
print(json.dumps(probe.report().to_dict()))
"""


def findings_of(report):
    return [(f["cause"], [row["text"] for row in f["path"] or ()][:3]) for f in report["findings"]]


@pytest.mark.parametrize("call", ["train(probe)", "attempt(probe)"], ids=["one", "raised_from_another"])
def test_a_block_that_an_exception_leaves(call):
    program = FREE + PROGRAM.replace("END", "raise ValueError('step')") + WATCHED.replace("CALL", call)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    ((cause, path),) = findings_of(json.loads(done.stdout))
    assert cause == "growing_container" and path[0].startswith("train() in "), (cause, path)


def test_a_run_that_is_terminated(tmp_path):
    program, report = tmp_path / "program.py", tmp_path / "report.json"
    ending = "os.kill(os.getpid(), signal.SIGTERM)"
    loop = "with leakprobe.watch(warmup=5) as probe:\n    train(probe)\n"
    program.write_text(FREE + PROGRAM.replace("END", ending) + loop)
    command = [sys.executable, "-m", "leakprobe", "run", "--json", str(report), str(program)]
    done = subprocess.run(command, capture_output=True)
    assert done.returncode == -signal.SIGTERM, done.stderr
    ((cause, path),) = findings_of(json.loads(report.read_text()))
    assert cause == "growing_container", (cause, path)
    assert path[0].startswith("train() in program.py"), path


def test_an_exception_that_is_kept_is_still_what_keeps():
    program = """
import leakprobe
kept = []

def fail():
    block = bytearray(5000)
    raise ValueError("step")

with leakprobe.watch(warmup=5) as probe:
    for step in range(80):
        try:
            fail()
        except ValueError as error:
            kept.append(error)
            probe.step()
import json
print(json.dumps(probe.report().to_dict()))
"""
    done = subprocess.run([sys.executable, "-c", FREE + program], capture_output=True, text=True, check=True)
    causes = {cause for cause, path in findings_of(json.loads(done.stdout))}
    assert "traceback_kept" in causes, causes
