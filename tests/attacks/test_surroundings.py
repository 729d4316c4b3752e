"""Programs that change what is around them before the watch, or while it is on: streams, limits, signals,
flags of the interpreter.  The watch reports as it does without, and the program goes on.
"""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import leakprobe, os, sys
{begin}
class Part: pass
kept = []
with leakprobe.watch() as probe:
    for step in range(60):
        {step}
        kept.append([Part(), bytearray(3000)])
        probe.step()
{end}
report = probe.report()
report.print()
report.to_json(sys.argv[1])
os.write(1, report.verdict.encode())
os._exit(0)
"""
TICKS = """
import signal
signal.signal(signal.{name}, lambda *a: None)
signal.setitimer(signal.{timer}, 0.0005, 0.0005)
"""
AT_DEPTH = """
def at(depth, function):
    return function() if depth == 0 else at(depth - 1, function)
mark = leakprobe.Probe.step
leakprobe.Probe.step = lambda self: at(sys.getrecursionlimit() - 60, lambda: mark(self))
"""
DENIES = "('gc.', 'sys._getframe', 'sys.settrace', 'object.', 'ctypes.')"
#: name => (what the program does first, in each step, before the report, flags of the interpreter)
SURROUNDINGS = {
    "streams_that_are_none": ("sys.stdout = sys.stderr = None", "", "", []),
    "streams_of_no_known_encoding": (
        "class Odd:\n    encoding = 'no-such-code'\n    write = lambda self, text: None\nsys.stdout = Odd()",
        "",
        "",
        [],
    ),
    "ticks_of_the_clock": (
        TICKS.format(name="SIGALRM", timer="ITIMER_REAL"),
        "",
        "signal.setitimer(signal.ITIMER_REAL, 0)",
        [],
    ),
    "ticks_of_the_processor": (
        TICKS.format(name="SIGPROF", timer="ITIMER_PROF"),
        "",
        "signal.setitimer(signal.ITIMER_PROF, 0)",
        [],
    ),
    "few_descriptors": ("import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (12, 12))", "", "", []),
    "no_threads": ("import _thread; _thread.start_new_thread = None", "", "", []),
    "all_garbage_saved": ("import gc; gc.set_debug(gc.DEBUG_SAVEALL)", "", "", []),
    "no_collector": ("import gc; gc.disable(); gc.freeze()", "", "", []),
    "callbacks_cleared": ("import gc", "gc.callbacks.clear()", "", []),
    "threads_switch_all_the_time": ("sys.setswitchinterval(1e-6)", "", "", []),
    "deep_in_calls": (AT_DEPTH, "", "", []),
    "hooks_that_deny": (
        f"""
def deny(event, arguments):
    if on and event.startswith({DENIES}):
        raise RuntimeError(event)
on = []
sys.addaudithook(deny)""",
        "on[:] = [1]",
        "on.clear()",
        [],
    ),
    "traced": ("sys.settrace(lambda *a: None); sys.setprofile(lambda *a: None)", "", "", []),
    "folder_gone": (
        "import tempfile; folder = tempfile.mkdtemp(); os.chdir(folder); os.rmdir(folder)",
        "",
        "",
        [],
    ),
    "bytes_are_no_text": ("", "", "", ["-bb", "-W", "error"]),
    "checks": ("", "", "", ["-X", "dev", "-W", "error"]),
    "no_docstrings": ("", "", "", ["-OO"]),
}


@pytest.mark.parametrize("name", SURROUNDINGS)
def test_a_leak_is_reported_all_the_same(name, tmp_path):
    begin, step, end, flags = SURROUNDINGS[name]
    done = subprocess.run(
        [
            sys.executable,
            *flags,
            "-c",
            PROGRAM.format(begin=begin, step=step or "pass", end=end),
            str(tmp_path / "report.json"),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )
    assert done.returncode == 0 and done.stdout.endswith("growing"), done.stdout + done.stderr
    assert (tmp_path / "report.json").stat().st_size > 0
