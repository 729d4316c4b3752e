"""On a debug build of CPython: no call of leakprobe makes or loses a reference.

python3.14-dbg -m pytest tests/hooks/test_refcounts.py
"""

import sys
import textwrap

import pytest
from fresh import run

pytestmark = pytest.mark.skipif(not hasattr(sys, "gettotalrefcount"), reason="needs a debug build of CPython")

CALLS = {
    "watch": """
        with leakprobe.watch(warmup=1) as probe:
            kept = []
            for i in probe.steps(range(12)):
                kept.append([i] * 20)
        probe.report().to_dict()
    """,
    "start and stop": "leakprobe.start(); leakprobe.stop()",
    "census": "_core.start(16, '/nowhere/'); _core.census(True, 0, 9, 0).groups; _core.census(False, 0, 9, 0); _core.stop()",
    "snapshot": "leakprobe.snapshot(graph=True).paths('list')",
    "diff": "a = leakprobe.snapshot(graph=True); b = leakprobe.snapshot(graph=True); leakprobe.diff(a, b).to_dict()",
    "why": "[str(path) for path in leakprobe.why(rows)]",
    "retained size": "leakprobe.retained_size(rows)",
    "cycles": "[str(cycle) for cycle in leakprobe.find_cycles()]",
    "frames": "_core.start(16, '/nowhere/'); _core.set_deep(17); x = [[i] for i in range(9)]; del x; _core.mark(); _core.stop()",
    "bad arguments": """
        for call in (leakprobe.watch, leakprobe.why, leakprobe.retained_size, _core.census, _core.start):
            try:
                call(1, 2, 3, 4, 5, 6, 7)
            except TypeError:
                pass
    """,
}

LOOP = """
    import array, gc, json, sys
    import leakprobe
    from leakprobe import _core
    class Node: pass
    a, b = Node(), Node()
    a.b, b.a = b, a
    rows = [[i, str(i)] for i in range(50)]
    code = compile({text!r}, "call", "exec")
    def once():
        space = dict(leakprobe=leakprobe, _core=_core, rows=rows)
        exec(code, space)
        del space
        gc.collect()
        return sys.gettotalrefcount()
    counts = array.array("q", bytes(8 * {times}))  # keeps no reference itself
    for i in range({times}):
        counts[i] = once()
    print(json.dumps(list(counts)))
"""


@pytest.mark.parametrize("text", CALLS.values(), ids=CALLS)
def test_the_total_count_is_level(text):
    """Caches may fill in the first rounds; a reference lost in each round would show in every one."""
    counts = run(LOOP.format(text=textwrap.dedent(text), times=14), timeout=600)
    steps = [b - a for a, b in zip(counts[6:], counts[7:])]
    assert min(steps) <= 0 and sum(steps) < 3 * len(steps), counts
