"""Each request for the probe's own memory fails in turn: nothing crashes, the watched loop sees no exception,
and what was lost is told.  Needs a build with LEAKPROBE_FAULTS=1 (.ci/faults makes one)."""

import pytest
from fresh import run

from leakprobe import _core

pytestmark = pytest.mark.skipif(
    not hasattr(_core, "_inject_faults"), reason="needs a build with LEAKPROBE_FAULTS=1"
)

#: Each request alone; each request and all that follow; two in a row.
MOST = {"one": 1, "two": 2, "all from then on": 2**62}

WATCH = """
    import gc, json, sys
    import leakprobe
    from leakprobe import _core
    from leakprobe.errors import LeakprobeError
    try:
        import numpy
    except ImportError:
        numpy = None

    EXPECTED = (LeakprobeError, MemoryError)

    def work(after, most):
        kept, arrays, rings = [], [], []
        raised, report = [], None
        _core._inject_faults(after, most)
        try:
            with leakprobe.watch(warmup=1) as probe:
                for i in range(12):
                    kept.append([[i], [i + 1], {i: [i]}])
                    if numpy is not None:
                        arrays.append(numpy.ones(500))
                    ring = [i]
                    ring.append(ring)
                    try:
                        probe.step()
                    except BaseException as error:
                        raised.append(("step", repr(error)))
            report = probe.report().to_dict()
        except EXPECTED as error:
            raised.append(("watch", repr(error)))
        made, failed = _core._inject_faults()
        if leakprobe.is_active():
            leakprobe.stop()
            raised.append(("left active", ""))
        gc.collect()
        return made, failed, raised, report
"""

CALLS = """
    import gc, json, sys
    import leakprobe
    from leakprobe import _core
    from leakprobe.errors import LeakprobeError

    class Node: pass
    a, b = Node(), Node()
    a.b, b.a = b, a
    rows = [[i, str(i)] for i in range(50)]
    calls = {
        "snapshot": lambda: leakprobe.snapshot().to_dict(),
        "graph": lambda: leakprobe.snapshot(graph=True).paths("list"),
        "cycles": lambda: [str(c) for c in leakprobe.find_cycles()],
        "why": lambda: [str(p) for p in leakprobe.why(rows)],
        "retained": lambda: leakprobe.retained_size(rows),
    }

    def work(after, most):
        errors = []
        _core._inject_faults(after, most)
        try:
            CALL()
        except (LeakprobeError, MemoryError) as error:
            errors.append(repr(error))
        made, failed = _core._inject_faults()
        return made, failed, errors, None
"""

LOOP = """
    most, first, stride = {most}, {first}, {stride}
    total, _, _, whole = work(-1, 0)
    total = max(total, work(-1, 0)[0])
    rows = []
    for n in range(first, total, stride):
        print(n, file=sys.stderr, flush=True)
        made, failed, raised, report = work(n, most)
        rows.append([n, failed, raised, report and [report["verdict"], [f["kind"] for f in report["findings"]], [x["kind"] for x in report["notes"]]]])
    print(json.dumps([total, whole and [whole["verdict"], [f["kind"] for f in whole["findings"]]], rows]))
"""


def failing(code, most, first, stride):
    return run(code + LOOP.format(most=most, first=first, stride=stride), timeout=1200)


@pytest.mark.parametrize("most", MOST.values(), ids=MOST)
def test_a_watch_goes_on(most):
    total, whole, rows = failing(WATCH, most, 0, 1 if most == 1 else 7)
    assert whole[0] == "growing" and total > 50
    for n, failed, raised, report in rows:
        assert all(where == "watch" for where, _ in raised), (n, raised)
        if failed and not raised:
            told = {"dropped", "gap"} & set(report[2])
            assert told or report[1] == whole[1], (n, report)
    assert sum(failed > 0 for _, failed, _, _ in rows) > len(rows) / 2


@pytest.mark.parametrize("most", MOST.values(), ids=MOST)
@pytest.mark.parametrize("call", ["snapshot", "graph", "cycles", "why", "retained"])
def test_a_call_says_that_memory_is_out(call, most):
    code = CALLS.replace("CALL()", f"calls[{call!r}]()")
    total, _, rows = failing(code, most, 0, 1 if most == 1 else 7)
    assert total > 0
    told = [bool(errors) for _, failed, errors, _ in rows if failed]
    assert told and any(told)
    assert not any(errors for _, failed, errors, _ in rows if not failed)
