"""What follows lines comes and goes on its own thread, and takes nothing from other tools: a trace
function, and from Python 3.12 on sys.monitoring.
"""

import _thread
import os
import sys
import threading

import pytest

import leakprobe
from leakprobe.model.facts import TOOL_IDS
from leakprobe.watch.line_monitor import LineMonitor
from leakprobe.watch.native_lines import READERS, NativeLines


@pytest.fixture(autouse=True)
def traces_as_before(monkeypatch, request):
    if "monitoring" not in request.fixturenames:
        monkeypatch.setattr(LineMonitor, "taken", lambda listener: None)  # as before Python 3.12
    monkeypatch.setattr(_thread, "_count", lambda: 0)  # pytest's own threads allocate nothing here
    before = sys.gettrace(), threading.gettrace()
    sys.settrace(None)
    threading.settrace(None)
    yield
    sys.settrace(before[0])
    threading.settrace(before[1])


def following() -> NativeLines:
    made = NativeLines()
    made.want("fd", 1.0)
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


# ---- sys.monitoring ----


@pytest.fixture
def monitoring():
    """sys.monitoring, of which no tool id is taken before and after."""
    found = getattr(sys, "monitoring", None)
    if found is None:
        pytest.skip("sys.monitoring is of Python 3.12")
    assert not any(found.get_tool(tool) for tool in TOOL_IDS)
    yield found
    taken = [tool for tool in TOOL_IDS if found.get_tool(tool)]
    for tool in taken:
        found.free_tool_id(tool)
    assert not taken


def opens_files(folder, count):
    return [open(folder / "f", "w") for _ in range(count)]


def closes(files):
    for file in files:
        file.close()


def steps_that_open(lines, folder, kept, count=5):
    """Steps that each leave one descriptor open, at the last line of this function's loop."""
    for _ in range(count):
        lines.begin()
        user_function()
        kept += opens_files(folder, 1)
        lines.end()


def test_the_line_is_found_by_monitoring(monitoring, tmp_path):
    lines, kept = following(), []
    before = sys.gettrace()
    steps_that_open(lines, tmp_path, kept)
    closes(kept)
    assert sys.gettrace() is before
    stack, text = lines.verdict(1, "fd")
    assert stack[0][1:] == (opens_files.__code__.co_firstlineno + 1, "opens_files"), text
    assert stack[1][1:] == (steps_that_open.__code__.co_firstlineno + 5, "steps_that_open")


def test_files_of_which_another_line_closes_some(monitoring, tmp_path):
    lines, kept = following(), []
    for _ in range(5):
        lines.begin()
        opened = opens_files(tmp_path, 3)
        opened.pop().close()
        kept.extend(opened)
        lines.end()
    closes(kept)
    assert lines.verdict(2, "fd")[0][0][2] == "opens_files"


def test_lines_of_growth_that_was_released_are_asked_for_anew(monitoring, tmp_path, monkeypatch):
    lines, kept, now = following(), [], iter(range(10, 20))
    monkeypatch.setattr("leakprobe._core.step", lambda: next(now))
    steps_that_open(lines, tmp_path, kept)
    lines.want("fd", 1.0, 9)
    assert lines.verdict(1, "fd")[0]
    lines.want("fd", 1.0, 100)
    assert not lines.verdict(1, "fd")[0]
    closes(kept)


def test_generators_exceptions_and_threads_while_lines_are_followed(monitoring, tmp_path):
    def generate():
        try:
            yield 1
            yield 2
        except ValueError:
            yield 3

    def fails():
        raise KeyError

    def step():
        made = generate()
        next(made)
        assert made.throw(ValueError) == 3
        with pytest.raises(KeyError):
            fails()
        kept.extend(opens_files(tmp_path, 1))

    lines, kept = following(), []
    for _ in range(5):
        lines.begin()
        step()
        lines.end()
    closes(kept)
    assert lines.verdict(1, "fd")[0][0][2] == "opens_files"
    lines = following()
    lines.begin()
    in_another_thread(user_function)
    assert lines._has_thread_begun
    lines.end()


def test_other_tools_keep_their_events_and_their_trace_functions(monitoring, tmp_path):
    seen, tool, line = [], monitoring.COVERAGE_ID, monitoring.events.LINE
    traced = []
    monitoring.use_tool_id(tool, "theirs")
    try:
        monitoring.register_callback(tool, line, lambda code, number: seen.append(number))
        monitoring.set_local_events(tool, opens_files.__code__, line)
        lines, kept = following(), []
        sys.settrace(lambda frame, event, arg: traced.append(frame.f_code.co_filename))
        steps_that_open(lines, tmp_path, kept)
        sys.settrace(None)
        closes(kept)
        assert len(seen) == 5, "one line, five times"
        assert monitoring.get_tool(tool) == "theirs"
        assert monitoring.get_local_events(tool, opens_files.__code__) == line
        assert traced
        assert lines.verdict(1, "fd")[0][0][2] == "opens_files"
    finally:
        sys.settrace(None)
        monitoring.set_local_events(tool, opens_files.__code__, 0)
        monitoring.free_tool_id(tool)


def test_the_other_id_is_taken_where_one_is_in_use(monitoring, tmp_path):
    lines, kept = following(), []
    monitoring.use_tool_id(TOOL_IDS[0], "theirs")
    try:
        lines.begin()
        assert monitoring.get_tool(TOOL_IDS[1]) == "leakprobe"
        lines.end()
        assert monitoring.get_tool(TOOL_IDS[0]) == "theirs"
        assert monitoring.get_tool(TOOL_IDS[1]) is None
    finally:
        monitoring.free_tool_id(TOOL_IDS[0])


def test_without_a_free_id_lines_are_traced(monitoring):
    for tool in TOOL_IDS:
        monitoring.use_tool_id(tool, "theirs")
    try:
        lines = following()
        lines.begin()
        assert sys.gettrace() is not None
        lines.end()
        assert sys.gettrace() is None
    finally:
        for tool in TOOL_IDS:
            monitoring.free_tool_id(tool)


def test_a_step_that_ends_on_another_thread_gives_the_id_back(monitoring):
    lines = following()
    lines.begin()
    in_another_thread(lines.end)
    assert "in another thread" in lines.verdict(1, "fd")[1]


def test_a_forked_child_gives_the_id_back(monitoring):
    lines = following()
    lines.begin()
    child = os.fork()
    if child == 0:
        user_function()
        os._exit(0 if not any(monitoring.get_tool(tool) for tool in TOOL_IDS) else 1)
    assert os.waitpid(child, 0)[1] == 0
    lines.end()


def test_a_mark_that_was_cut_short_keeps_no_id(monitoring, monkeypatch):
    lines = following()
    monkeypatch.setattr(LineMonitor, "begin", lambda self, frame: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        lines.begin()
    monkeypatch.undo()
    lines.end()


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
