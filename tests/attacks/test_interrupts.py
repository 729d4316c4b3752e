"""A watch begins and ends whole, whatever arrives in the middle; the long sweeps are run by hand
(docs/proof.md).
"""

import itertools
import json
import pathlib
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow
SWEEP = pathlib.Path(__file__).with_name("interrupt_sweep.py")
#: Of each sweep here; what has no trial at one moment has one in another sweep.
TRIALS = 150


def sweep(*options) -> dict:
    done = subprocess.run(
        [sys.executable, str(SWEEP), "--trials", str(TRIALS), *options],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def check(out: dict) -> None:
    assert out["trials"] == TRIALS
    faults = {
        key: out[key] for key in ("left_on", "locked", "not_given_back", "mark_ended_watch", "unusable")
    }
    assert not any(faults.values()) and not out["errors"], out
    assert out["interrupted"] > TRIALS // 10  # a busy machine is slow to send a signal


@pytest.mark.parametrize(
    "how, what", itertools.product(("instruction", "raise"), ("enter_and_leave", "mark"))
)
def test_at_each_instruction_of_the_calling_thread(how, what, tmp_path):
    check(sweep("--how", how, "--what", what, "--record", str(tmp_path / "run.leak")))


def test_a_row_of_exceptions(tmp_path):
    """What is put back in the calling thread is put back although the next instructions raise too."""
    check(sweep("--how", "raise", "--more", "40", "--record", str(tmp_path / "run.leak")))


@pytest.mark.parametrize("signal", ["SIGINT", "SIGALRM"])
@pytest.mark.parametrize("what", ["enter_and_leave", "mark"])
def test_by_a_timer_with_torch(signal, what, tmp_path):
    pytest.importorskip("torch")
    record = ["--record", str(tmp_path / "run.leak")] if signal == "SIGINT" else []
    check(sweep("--how", "timer", "--signal", signal, "--what", what, "--torch", *record))
