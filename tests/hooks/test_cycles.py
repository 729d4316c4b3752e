"""find_cycles(): garbage found without collecting, told apart by whether the collector can free it."""

import subprocess
import sys
import textwrap

import pytest

PRELUDE = """
import gc, sys, warnings, weakref
warnings.simplefilter("ignore")
import leakprobe
from leakprobe import _core
leakprobe.find_cycles()  # the first use imports modules
gc.collect()
gc.disable()
class Node: pass
"""


def run(body: str) -> str:
    """Run body in a fresh interpreter, where no other test has left garbage."""
    path = "import sys; sys.path[:0] = " + repr(sys.path) + "\n"
    done = subprocess.run([sys.executable, "-c", path + PRELUDE + textwrap.dedent(body)], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def names(kind):
    cycle_rows = pytest.importorskip("torch") and __import__("cycle_rows")
    return [f.__name__ for f in getattr(cycle_rows, kind)]


ROW = """
import torch, cycle_rows
gc.collect()
assert leakprobe.find_cycles() == []
made = cycle_rows.{row}()
member = weakref.ref(made)
assert leakprobe.find_cycles() == [], "alive"
del made
found = leakprobe.find_cycles()
again = leakprobe.find_cycles()
assert [c.to_dict() for c in found] == [c.to_dict() for c in again]
gc.collect(); gc.collect()
"""


@pytest.mark.parametrize("row", names("LEAKS"))
def test_what_leaks_is_named_with_the_edge_that_the_collector_lacks(row):
    run(
        ROW.format(row=row)
        + f"""
assert member() is not None and gc.garbage == []
cycle = [c for c in found if c.lacks][0]
assert not any(c.collectable for c in found if c.lacks) and len(found) >= 1
assert cycle.lacks["edge"] in cycle_rows.LEAKS[cycle_rows.{row}], cycle.lacks
assert cycle.path[0]["type"] == cycle.path[-1]["type"] and cycle.bytes["cpu"] > 0
assert cycle.path[1]["text"] == cycle.lacks["text"] and "torch" in str(cycle.objects)
"""
    )


@pytest.mark.parametrize("row", names("COLLECTED"))
def test_what_is_collected_is_not_called_uncollectable(row):
    run(
        ROW.format(row=row)
        + """
assert member() is None
assert found and all(c.collectable and c.lacks is None for c in found)
assert leakprobe.find_cycles() == []
"""
    )


def test_an_object_array_and_a_list_that_hold_each_other():
    pytest.importorskip("numpy")
    run(
        """
        import numpy
        gc.collect()
        a = numpy.empty(3, object); rows = [a]; a[0] = rows
        assert leakprobe.find_cycles() == []
        del a, rows
        (cycle,) = leakprobe.find_cycles()
        assert not cycle.collectable and cycle.lacks["source"] == "numpy.ndarray" and cycle.lacks["edge"] == "index"
        gc.collect()
        assert len(leakprobe.find_cycles()) == 1
        """
    )


def test_two_nodes_with_tensors():
    pytest.importorskip("torch")
    run(
        """
        import torch
        gc.collect()
        a, b = Node(), Node()
        a.other, b.other, a.t, b.t = b, a, torch.ones(1000), torch.ones(2000)
        before = len(gc.get_objects())
        del a, b
        (cycle,) = leakprobe.find_cycles()
        texts = [p["text"] for p in cycle.path]
        assert cycle.collectable and cycle.members == 2 and cycle.bytes["cpu"] == 12000
        assert texts == ["Node", ".other Node", ".other Node"], texts
        assert "gc.collect() frees it" in cycle.text()
        del cycle, texts
        assert abs(len(gc.get_objects()) - before) <= 2
        """
    )


def test_a_callback_that_closes_over_self():
    pytest.importorskip("torch")
    run(
        """
        import torch
        gc.collect()
        class Awaitable:
            def __init__(self):
                self.t = torch.ones(500)
                self.callback = lambda: self
        Awaitable()
        found = [c for c in leakprobe.find_cycles() if "Awaitable" in c.path[0]["type"]]
        assert len(found) == 1 and found[0].bytes["cpu"] == 2000
        assert any(p["edge"] == "closure" for p in found[0].path)
        """
    )


PLANT = """
import collections, contextlib, functools
def generator(box):
    yield box
def make(i):
    kind = i % 9
    node = Node()
    if kind == 0:
        node.me = node
    elif kind == 1:
        d = collections.OrderedDict(); d["me"] = d; d["n"] = node
    elif kind == 2:
        q = collections.deque([node]); q.append(q)
    elif kind == 3:
        def inner(): return inner, node
    elif kind == 4:
        try:
            raise ValueError(node)
        except ValueError as error:
            node.error = error
    elif kind == 5:
        node.method = node.__init__; node.frozen = frozenset([node.method])
    elif kind == 6:
        type("Made", (), {"node": node})
    elif kind == 7:
        l = [node, (1, [node])]; l.append(l); node.l = {"l": l}
    else:
        node.ref = weakref.ref(node, lambda r, n=node: n)
"""


def test_what_is_called_garbage_is_what_the_collector_then_finds():
    run(
        PLANT
        + """
import threading
live_generator = generator(Node()); next(live_generator)
@functools.lru_cache
def cached(i): return [Node()]
[cached(i) for i in range(50)]
go, ready = threading.Event(), threading.Event()
def blocked():
    local = Node(); local.me = local
    ready.set(); go.wait()
threads = [threading.Thread(target=blocked, daemon=True) for _ in range(3)]
for t in threads: t.start()
ready.wait()
gc.collect()
assert leakprobe.find_cycles() == []
for i in range(315): make(i)
found = leakprobe.find_cycles()
assert all(c.collectable for c in found)
tracked = sum(c.tracked for c in found)
del found
gc.set_debug(gc.DEBUG_SAVEALL)
gc.collect()
saved = len(gc.garbage)
assert saved > 1000 and tracked == saved, (tracked, saved)
gc.set_debug(0)
gc.garbage.clear()
gc.collect()
# The finalizer of a generator breaks its cycle before the collector saves it: count deaths.
refs = []
for i in range(30):
    node = Node(); node.g = generator(node); next(node.g); refs.append(weakref.ref(node))
del node
found = leakprobe.find_cycles()
assert len(found) == 30 and all(c.collectable for c in found)
del found
gc.collect()
assert not any(r() for r in refs) and leakprobe.find_cycles() == []
go.set()
"""
    )


def test_many_calls_leave_the_process_flat():
    run(
        """
        import os
        def rss(): return int(open("/proc/self/statm").read().split()[1]) * 4096
        kept = [Node() for _ in range(1000)]
        for i in range(100):
            n = Node(); n.me = n
        del n
        for _ in range(20): leakprobe.find_cycles()
        objects, before = len(gc.get_objects()), rss()
        for _ in range(200): leakprobe.find_cycles()
        assert abs(len(gc.get_objects()) - objects) <= 3
        assert rss() - before < 2 << 20, rss() - before
        """
    )


def test_sites_are_told_while_a_watch_runs():
    out = run(
        """
        leakprobe.start()
        def plant():
            node = Node()
            node.me = node
        plant()
        cycle = [c for c in leakprobe.find_cycles() if c.path[0]["type"].endswith("Node")][0]
        print(cycle.sites[0][0][2])
        leakprobe.stop()
        """
    )
    assert out.strip() == "plant"


def test_inside_a_collection_it_says_so():
    run(
        """
        codes = []
        def callback(phase, info):
            try:
                leakprobe.find_cycles()
            except leakprobe.LeakprobeError as error:
                codes.append(error.code)
        gc.callbacks.append(callback)
        gc.collect()
        gc.callbacks.clear()
        assert "gc_running" in codes or codes == [], codes
        """
    )
