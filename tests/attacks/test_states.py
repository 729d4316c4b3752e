"""The states of a watch: what an exception, another thread, a finalizer or a callback makes of it; each in a
fresh process.
"""

import sys

import pytest

sys.path.insert(0, __file__.rsplit("/", 2)[0] + "/hooks")
from fresh import run

HEAD = """
import gc, json, os, signal, sys, threading
import leakprobe
from leakprobe import _core, probe as module, recording
"""


@pytest.mark.parametrize("error", ["KeyboardInterrupt", "SystemExit", "MemoryError", "OSError"])
@pytest.mark.parametrize("resource", range(5))
def test_an_exception_while_a_resource_is_taken_gives_back_all(resource, error, tmp_path):
    record = str(tmp_path / "run.leak")
    out = run(
        HEAD
        + f"""
take, give = leakprobe.Probe.RESOURCES[{resource}]
class Failing(leakprobe.Probe):
    def failing(self):
        getattr(super(), take)()
        raise {error}("now")
    RESOURCES = tuple(("failing", g) if t == take else (t, g) for t, g in leakprobe.Probe.RESOURCES)
module.Probe = Failing
descriptors = len(os.listdir("/proc/self/fd"))
try:
    leakprobe.start(record={record!r})
except {error} as raised:
    message = str(raised)
module.Probe = leakprobe.Probe
out = [message, leakprobe.is_active(), _core.is_active(), os.path.exists({record!r}), len(os.listdir("/proc/self/fd")) - descriptors]
with leakprobe.watch(record={record!r}) as probe:
    probe.step()
print(json.dumps(out + [probe._state]))
"""
    )
    assert out == ["now", False, False, False, 0, "OFF"]


def test_memory_that_runs_out_while_leaving_is_no_lock():
    """What can't be given back at once is given back by the next stop(), and a watch can follow."""
    out = run(
        HEAD
        + """
short = [True]
class Short(leakprobe.Probe):
    def _remove_workers(self):
        if short[0]:
            raise MemoryError
        super()._remove_workers()
module.Probe = Short
with leakprobe.watch() as probe:
    probe.step()
out = [probe._state, leakprobe.is_active(), _core.is_active()]
short[0] = False
leakprobe.stop()
with leakprobe.watch() as second:
    second.step()
print(json.dumps(out + [probe._state, second._state, "MemoryError" in probe.report().notes[-1].text]))
"""
    )
    assert out == ["LEAVING", False, False, "OFF", "OFF", True]


def test_a_watch_that_nobody_can_reach_ends():
    out = run(
        HEAD
        + """
leakprobe.watch().__enter__()
out = [leakprobe.is_active(), _core.is_active()]
leakprobe.start()
out += [leakprobe.is_active(), leakprobe.stop()._state]
print(json.dumps(out))
"""
    )
    assert out == [False, False, True, "OFF"]


def test_stop_from_any_thread():
    """Also while another thread marks: the watch is off when stop() returns."""
    out = run(
        HEAD
        + """
out = []
for _ in range(20):
    probe = leakprobe.start()
    begun = threading.Event()
    def mark():
        try:
            while True:
                probe.step()
                begun.set()
        except leakprobe.LeakprobeError as error:
            out.append(error.code)
    markers = [threading.Thread(target=mark) for _ in range(2)]
    for thread in markers: thread.start()
    begun.wait()
    def end():
        leakprobe.stop()
        out.append(probe._state)
    stopper = threading.Thread(target=end)
    stopper.start(); stopper.join()
    for thread in markers: thread.join()
print(json.dumps([sorted(set(out)), len(out), _core.is_active()]))
"""
    )
    assert out == [["OFF", "not_active"], 60, False]


def test_a_signal_handler_inside_a_mark_stops_or_marks():
    """The watch ends when the mark does; a step marked in there is marked after it."""
    out = run(
        HEAD
        + """
class Slow(leakprobe.Probe):
    def _follow_mark(self, *readings):
        act, self.act = self.act, None
        if act: act()
        return super()._follow_mark(*readings)
    act = None
module.Probe = Slow
with leakprobe.watch() as probe:
    probe.act = probe.step
    probe.step()
    out = [len(probe.report().timeline)]
    probe.act = lambda: (leakprobe.stop(), out.append(leakprobe.is_active()))
    probe.step()
    out.append(probe._state)
print(json.dumps(out + [_core.is_active()]))
"""
    )
    assert out == [2, False, "OFF", False]


def test_a_loop_whose_watch_another_thread_stops_goes_on():
    out = run(
        HEAD
        + """
sys.setswitchinterval(1e-5)
passed = []
for _ in range(20):
    probe = leakprobe.start()
    begun = threading.Event()
    def loop():
        for i in probe.steps(range(3000)):
            if i == 3: begun.set()
        passed.append(i)
    thread = threading.Thread(target=loop)
    thread.start(); begun.wait(); leakprobe.stop(); thread.join()
print(json.dumps([passed == [2999] * 20, _core.is_active()]))
"""
    )
    assert out == [True, False]


def test_a_mark_from_inside_a_report_is_taken_after_it():
    out = run(
        HEAD
        + """
class Interrupted(leakprobe.Probe):
    def _whole_report(self):
        self.step()
        return super()._whole_report()
module.Probe = Interrupted
with leakprobe.watch() as probe:
    probe.step()
    out = [len(probe.report().timeline), probe._steps]
print(json.dumps(out))
"""
    )
    assert out == [1, 2]


@pytest.mark.parametrize("threads", [4, 16])
def test_marks_from_many_threads_are_all_there_and_in_order(threads, tmp_path):
    record = str(tmp_path / "run.leak")
    each = 800 // threads
    out = run(
        HEAD
        + f"""
sys.setswitchinterval(1e-5)
with leakprobe.watch(record={record!r}) as probe:
    together = threading.Barrier({threads})
    def mark():
        together.wait()
        for _ in range({each}):
            probe.step()
    threads = [threading.Thread(target=mark) for _ in range({threads})]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
report = probe.report()
recorded = recording.load({record!r}).report
print(json.dumps([[row["step"] for row in r.timeline] for r in (report, recorded)]
                 + [[row["step"] for row in report.memory], [n.text for n in report.notes if n.kind in ("gap", "dropped")]]))
"""
    )
    whole = list(range(1, 801))
    assert out == [whole, whole, whole, []]


@pytest.mark.parametrize("name", ["on_growth", "on_cycle"])
def test_a_callback_that_raises_does_not_end_the_loop(name):
    out = run(
        HEAD
        + f"""
import logging
records = []
class Keep(logging.Handler):
    def emit(self, record):
        records.append([record.name, record.levelname, record.exc_info[0].__name__])
logging.getLogger("leakprobe").addHandler(Keep())
kept, calls = [], []
def callback(report):
    calls.append(report.verdict)
    raise ValueError("of the callback")
with leakprobe.watch({name}=callback) as probe:
    for i in range(60):
        cycle = {{"data": bytearray(5000)}}; cycle["self"] = cycle
        gc.disable()
        kept.append(bytearray(5000))
        probe.step()
notes = [n.text for n in probe.report().notes if n.kind == "callback"]
print(json.dumps([probe.report().steps["measured"], len(calls), records, len(notes), "ValueError" in notes[0] and {name!r} in notes[0]]))
"""
    )
    assert out == [55, 1, [["leakprobe", "WARNING", "ValueError"]], 1, True]


@pytest.mark.parametrize("error", ["KeyboardInterrupt", "SystemExit"])
def test_a_callback_that_ends_the_program_does(error):
    out = run(
        HEAD
        + f"""
kept = []
def callback(report):
    raise {error}
with leakprobe.watch(on_growth=callback) as probe:
    try:
        for i in range(60):
            kept.append(bytearray(5000))
            probe.step()
    except {error}:
        out = [leakprobe.is_active()]
        probe.step()
print(json.dumps(out + [probe._state]))
"""
    )
    assert out == [True, "OFF"]


def test_the_collector_is_back_on_after_an_exception_between_any_two_instructions():
    out = run(
        HEAD
        + """
def block():
    with _core.QuietCollector():
        return len("x")
class Stop(Exception): pass
states = []
for n in range(40):
    left = [n]
    def follow(frame, event, arg):
        frame.f_trace_opcodes = True
        if event == "opcode":
            left[0] -= 1
            if left[0] < 0: raise Stop
        return follow
    sys.settrace(follow)
    try: block()
    except Stop: pass
    sys.settrace(None)
    states.append(gc.isenabled())
print(json.dumps([len(states), all(states)]))
"""
    )
    assert out == [40, True]
