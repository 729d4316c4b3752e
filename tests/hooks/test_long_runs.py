"""Runs with more steps than an epoch's 12 bits can number, and what the probe itself costs in memory."""

import pathlib
import sys

import orders
import pytest
from test_coexistence import run

MECHANISMS = ["events", "allocator"] if sys.version_info >= (3, 13) else ["allocator"]


def test_20_000_steps_keep_birth_steps_and_rate():
    result = run(
        """
        import json, leakprobe
        from leakprobe import _core
        kept = []
        with leakprobe.watch(limit=16) as probe:
            for i in range(20_000):
                kept.append([i, None, None])
                probe.step()
            wrong, width, young = 0, 0, 0
            for i, op in enumerate(kept):
                site, first, last = _core.site_of(op)
                wrong += not first <= i <= last
                width = max(width, last - first)
                young += first == last
        report = probe.report()
        finding = report.findings[0]
        print(json.dumps([wrong, width, young, report.verdict, finding.bytes_per_step, finding.allocation.lineno,
                          finding.evidence]))
        """,
        timeout=600,
    )
    wrong, width, young, verdict, rate, line, evidence = result
    assert wrong == 0 and young >= 1000 and width <= 2048
    # A list of three pointers, an int and a place in the list that keeps it.
    assert verdict == "growing" and 100 < rate < 160 and line == 6
    # Scans before and after epochs were merged: nobody died in between.
    assert "none of them was freed" in evidence


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_start_and_stop_1000_times_leave_the_process_where_it_was(mechanism, tmp_path):
    orders.load_layer(tmp_path)
    before, after, grown = run(
        """
        import contextlib, gc, json, os, sys, threading
        sys.path.insert(0, FOLDER)
        import orders
        from leakprobe import _core
        layer = orders.load_layer(BUILT)
        counted = [int, list, dict, tuple, float, type, _core, gc.callbacks, sys.modules, gc.get_objects, "leakprobe"]
        def rss():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        def state():
            objects = gc.get_objects()
            types = sum(isinstance(op, type) for op in objects)
            return [str(layer.state()), [sys.getrefcount(op) for op in counted], types, len(gc.callbacks), threading.active_count(),
                    len(os.listdir("/proc/self/fd")), sys.getprofile() is None, sys.gettrace() is None, gc.isenabled(), gc.get_freeze_count()]
        def around():
            _core.start(16, "/nowhere/")
            kept = [{i: [i]} for i in range(200)]
            _core.mark()
            _core.stop()
        around()
        gc.collect()
        first = state()
        for _ in range(100):
            around()
        gc.collect()
        objects, bytes = len(gc.get_objects()), rss()
        for _ in range(900):
            around()
        gc.collect()
        print(json.dumps([first, state(), [len(gc.get_objects()) - objects, rss() - bytes]]))
        """,
        env={"LEAKPROBE_MECHANISM": mechanism},
        FOLDER=str(pathlib.Path(__file__).parent),
        BUILT=str(tmp_path),
    )
    assert before == after
    assert grown[0] < 10 and grown[1] < 1 << 20


def test_code_that_is_made_and_dropped_for_ever_takes_no_more_room():
    """A loop that compiles the same source over and over, as exec, namedtuple and templates do."""
    early, late, lines = run(
        """
        import json
        from leakprobe import _core
        kept = []
        SOURCE = "def make():\\n    return [1, {}]\\nkept.append(make())\\nkept.append((kept, 1))"
        def loop(rounds, keep):
            for i in range(rounds):
                names = {"kept": kept}
                exec(SOURCE, names)
                if not keep:
                    del kept[:]
                if i % 500 == 0:
                    _core.mark()
            return _core.hook_status()["sites"], _core.hook_status()["site_overflow"]
        _core.start(8, "/nowhere/")
        early = loop(2000, False)
        late = loop(12000, False)
        loop(100, True)
        lines = [[frame[:2] for frame in _core.site_frames(_core.site_of(op)[0])][:1] for op in kept]
        print(json.dumps([early, late, [list(x) for x in {json.dumps(line): 0 for line in lines}]]))
        """
    )
    # As many as were alive at once: functions and their globals are cycles, which a collection frees
    # together.
    assert early[1] == late[1] == 0 and late[0] < early[0] + 500
    assert len(lines) == 2
