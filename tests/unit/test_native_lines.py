"""The trace function that follows lines comes and goes on its own thread, and never takes off another's."""

import _thread
import sys
import threading

import pytest

import leakprobe
from leakprobe.watch.native_lines import READERS, NativeLines


@pytest.fixture(autouse=True)
def traces_as_before(monkeypatch):
    monkeypatch.setattr(_thread, "_count", lambda: 0)  # pytest's own threads allocate nothing here
    before = sys.gettrace(), threading.gettrace()
    sys.settrace(None)
    threading.settrace(None)
    yield
    sys.settrace(before[0])
    threading.settrace(before[1])


def following() -> NativeLines:
    made = NativeLines()
    made.want("fd")
    return made


def in_another_thread(function) -> list:
    """What ``function()`` returned; threading.settrace() does not reach this thread."""
    found, is_done = [], _thread.allocate_lock()
    is_done.acquire()

    def run():
        try:
            found.append(function())
        finally:
            is_done.release()

    _thread.start_new_thread(run, ())
    is_done.acquire()
    return found


def user_function():
    return sys.gettrace()


def theirs(frame, event, arg):
    return None


def test_it_comes_and_goes():
    lines, frame = following(), sys._getframe()
    lines.begin()
    assert sys.gettrace() is not None and threading.gettrace() is not None
    user_function()
    lines.end()
    assert sys.gettrace() is None and threading.gettrace() is None and frame.f_trace is None
    assert lines.verdict(1, "fd") == ([], "")


def test_steps_that_go_on_in_another_thread():
    lines = following()

    def step():
        sys.settrace(theirs)
        lines.end()
        return sys.gettrace()

    lines.begin()
    assert in_another_thread(step) == [theirs]
    assert user_function() is None, "it takes itself off at the next call"
    assert sys.gettrace() is None and threading.gettrace() is None
    stack, text = lines.verdict(1, "fd")
    assert stack == [] and "in another thread" in text


def test_it_goes_when_the_watch_follows_another_thread_by_now():
    lines, frame = following(), sys._getframe()
    lines.begin()
    lines._thread += 1
    line_event_here = frame.f_trace
    assert line_event_here is None and sys.gettrace() is None


def test_a_debugger_that_comes_in_a_step_stays():
    lines = following()
    lines.begin()
    sys.settrace(theirs)
    lines.end()
    assert sys.gettrace() is theirs
    assert "another trace function" in lines.verdict(1, "fd")[1]


def test_what_a_debugger_sets_for_threads_stays():
    lines = following()
    lines.begin()
    threading.settrace(theirs)
    lines.end()
    assert threading.gettrace() is theirs and sys.gettrace() is None


def test_nothing_is_followed_beside_a_debugger():
    lines = following()
    sys.settrace(theirs)
    lines.begin()
    assert sys.gettrace() is theirs and threading.gettrace() is None
    lines.end()
    assert sys.gettrace() is theirs


def test_a_reading_that_fails_does_not_reach_the_program(monkeypatch):
    readings = iter([1])  # begin()'s own; the next one fails
    monkeypatch.setitem(READERS, "fd", lambda: next(readings))
    lines = following()
    lines.begin()
    user_function()
    assert sys.gettrace() is None, "it takes itself off"
    lines.end()
    assert "leakprobe failed with StopIteration" in lines.verdict(1, "fd")[1]


def test_a_line_that_is_charged_while_another_thread_ends_the_step():
    class Charged(dict):
        def items(self):
            for pair in super().items():
                self["a line", len(self), "f"] = (1,)
                yield pair

    lines = following()
    lines.begin()
    user_function()
    lines._gained = Charged({("a line", 0, "f"): (1,)})
    lines.end()
    assert lines.verdict(1, "fd") == ([], "")


@pytest.mark.parametrize("part", ["begin", "end"])
def test_lines_that_fail_do_not_reach_the_program(part, monkeypatch):
    def fails(self):
        raise OSError("of the probe")

    monkeypatch.setattr(NativeLines, part, fails)
    with leakprobe.watch() as probe:
        for _ in range(3):
            probe.step()
        monkeypatch.undo()  # leaving ends the lines once more
    report = probe.report()
    assert sum(report.steps.values()) == 3
    assert [n.text for n in report.notes if n.kind == "gap"] == [
        "leakprobe failed at the mark of step 1 (OSError: of the probe): its report may lack that step"
    ]
