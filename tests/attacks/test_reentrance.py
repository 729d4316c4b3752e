"""Finalizers, weak references' callbacks and the collector's callbacks that fork, collect, or call leakprobe
while it marks, looks or walks; and every way in which a process ends while it is watched.
"""

import os
import subprocess
import sys

import pytest

from leakprobe import recording

PROGRAM = """
import gc, os, signal, sys, threading, weakref
import leakprobe
class Part: pass
kept, turns, errors = [], [0], []
def answer(*arguments):
    turns[0] += 1
    if turns[0] > 60: return
    try:
        {answer}
    except (leakprobe.LeakprobeError, ImportError) as error:  # in the middle of an import, or of another call
        errors.append(error)
class Dies:
    def __del__(self): answer()
{begin}
gc.callbacks.append(lambda phase, info: answer() if phase == "start" else None)
def spin():
    while True: [[i] for i in range(100)]
threading.Thread(target=spin, daemon=True).start()
with leakprobe.watch(record=sys.argv[1]) as probe:
    for step in range({steps}):
        one, other = Dies(), Dies()
        one.me, call = one, weakref.ref(other, answer)
        del one, other
        kept.append([Part(), bytearray(3000)])
        if step % 7 == 0: gc.collect()
        if step == {steps} - 10:
            {end}
        probe.step()
assert leakprobe.is_active() is False and turns[0] > 60, turns
os.write(1, probe.report().verdict.encode())
kept += [Dies() for _ in range(9)]
"""
FORK = """pid = os.fork()
        if pid == 0:
            try: {child}
            finally: os._exit(0)
        os.waitpid(pid, 0)"""
ANSWERS = {
    "fork": FORK.format(child="[[i] for i in range(1000)]"),
    "fork_and_snapshot": FORK.format(child="leakprobe.snapshot()"),
    "collect": "gc.collect()",
    "step": "probe.step()",
    "snapshot": "leakprobe.snapshot()",
    "cycles": "leakprobe.find_cycles()",
    "report": "probe.report()",
    "raise": "raise ValueError",
}
#: A child that imports a module which another thread was importing at the fork waits for its lock for ever:
#: what the child calls is imported before.
BEGINS = {"fork_and_snapshot": "leakprobe.snapshot()"}
ENDS = {
    "exit": ("os._exit(7)", 7),
    "exit_of_a_thread": ("threading.Thread(target=os._exit, args=(7,)).start(); threading.Event().wait()", 7),
    "kill": ("os.kill(os.getpid(), signal.SIGKILL)", -9),
    "another_program": ("os.execv(sys.executable, [sys.executable, '-c', 'raise SystemExit(7)'])", 7),
    "exception": ("raise RuntimeError", 1),
}


def run(folder, answer="pass", end="pass", begin="pass", steps=60):
    source = PROGRAM.format(answer=answer, end=end, begin=begin, steps=steps)
    return subprocess.run(
        [sys.executable, "-c", source, str(folder / "run.leak")],
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.parametrize("name", ANSWERS)
def test_code_that_runs_in_the_middle(name, tmp_path):
    done = run(tmp_path, answer=ANSWERS[name], begin=BEGINS.get(name, "pass"))
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout in ("growing", "inconclusive") if name == "step" else done.stdout == "growing"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="POSIX only")
@pytest.mark.parametrize("name", ENDS)
def test_the_recording_tells_what_was_found_before_the_end(name, tmp_path):
    """Beside a thread that never waits, on a busy machine, a check is done many steps after it was due."""
    end, code = ENDS[name]
    assert run(tmp_path, end=end, steps=200).returncode == code
    found = recording.load(tmp_path / "run.leak").report
    assert found.verdict == "growing" and found.steps["measured"] > 20
