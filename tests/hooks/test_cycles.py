"""find_cycles(): garbage found without collecting, told apart by whether the collector can free it."""

import json
import subprocess
import sys
import textwrap

import forked
import fresh
import pytest

PRELUDE = """
import gc, sys, warnings, weakref
warnings.simplefilter("ignore")
import leakprobe
from leakprobe import _core
with leakprobe.watch():  # the first use imports modules: from 3.14 on a class with slots leaves a cycle
    leakprobe.find_cycles()
gc.collect()
gc.disable()
class Node: pass
"""


def run(body: str) -> str:
    """Run body in a process of its own, where no other test has left garbage."""
    path = "import sys; sys.path[:0] = " + repr(sys.path) + "\n"
    command = ["-c", path + PRELUDE + textwrap.dedent(body)]
    if "torch" in body:
        done = forked.run(command)
    else:
        done = subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def names(kind):
    cycle_rows = pytest.importorskip("torch") and __import__("cycle_rows")
    return [f.__name__ for f in getattr(cycle_rows, kind)]


ROWS = """
import collections, json, torch, cycle_rows
torch.ones(3, requires_grad=True).exp().sum().backward()
before = collections.Counter()  # what earlier rows left, told by path
def new():
    rest, found = before.copy(), []
    for cycle in leakprobe.find_cycles():
        key = str(cycle.path)
        rest[key] -= 1
        if rest[key] < 0:
            found.append(cycle.to_dict())
    return found
def row(make):
    gc.collect()
    before.clear()
    before.update(str(c.path) for c in leakprobe.find_cycles())
    made = make()
    member = weakref.ref(made)
    alive = len(new())
    del made
    found = new()
    again = new()
    gc.collect()
    gc.collect()
    return {"alive": alive, "found": found, "same": found == again, "leaks": member() is not None,
            "left": len(new()), "gc_garbage": len(gc.garbage)}
print(json.dumps({f.__name__: row(f) for f in [*cycle_rows.LEAKS, *cycle_rows.COLLECTED]}))
"""


@pytest.fixture(scope="module")
def rows():
    """What became of each row's cycle, all in one process: torch takes seconds to import."""
    return json.loads(run(ROWS).splitlines()[-1])


@pytest.mark.parametrize("row", names("LEAKS"))
def test_what_leaks_is_named_with_the_edge_that_the_collector_lacks(rows, row):
    import cycle_rows

    got = rows[row]
    assert got["leaks"] and got["gc_garbage"] == 0 and got["alive"] == 0 and got["same"], got
    (cycle,) = [c for c in got["found"] if c["lacks"]]
    assert (
        not cycle["collectable"] and cycle["lacks"]["edge"] in cycle_rows.LEAKS[getattr(cycle_rows, row)]
    ), cycle["lacks"]
    path = cycle["path"]
    assert path[0]["type"] == path[-1]["type"] and path[1]["text"] == cycle["lacks"]["text"]
    assert cycle["bytes"]["cpu"] > 0 and "torch" in str(cycle["objects"])


@pytest.mark.parametrize("row", names("COLLECTED"))
def test_what_is_collected_is_not_called_uncollectable(rows, row):
    got = rows[row]
    assert not got["leaks"] and got["alive"] == got["left"] == 0 and got["same"], got
    assert got["found"] and all(c["collectable"] and c["lacks"] is None for c in got["found"])


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
        objects = 2 if sys.version_info >= (3, 11) else 4  # the dicts of instances are objects there
        assert cycle.collectable and cycle.members == objects and cycle.bytes["cpu"] == 12000
        assert texts == ["Node", ".other Node", ".other Node"], texts
        assert "gc.collect() frees it" in cycle.text()
        del cycle, texts
        assert abs(len(gc.get_objects()) - before) <= 2
        """
    )


def test_a_cycle_is_told_the_same_whichever_member_is_older():
    run(
        """
        class Apple: pass
        class Pear: pass
        def tie(first, second):
            one, two = first(), second()
            one.other, two.other = two, one
        for _ in range(20):
            tie(Apple, Pear)
            tie(Pear, Apple)
        assert {cycle.path[0]["text"] for cycle in leakprobe.find_cycles()} == {"Apple"}
        """
    )


def test_looking_at_autograd_nodes_leaves_nothing_in_them():
    pytest.importorskip("torch")
    run(
        """
        import torch
        def nodes():
            kept = []
            for _ in range(1000):
                x = torch.ones(3, requires_grad=True)
                y = x.view(3)
                kept.append((x, y, y.grad_fn, y.grad_fn.next_functions[0][0]))
            for row in kept:  # what follows one node's hooks in memory is the hook of another
                row[2].register_hook(print)
            return kept
        kept = [nodes()]
        leakprobe.find_cycles()  # the first look makes what stays
        gc.collect()
        leakprobe.find_cycles()
        kept.append(nodes())
        before = sys.getallocatedblocks()
        leakprobe.find_cycles()
        assert sys.getallocatedblocks() - before < 100, sys.getallocatedblocks() - before
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


def test_an_object_array_that_contains_itself():
    pytest.importorskip("numpy")
    out = run(
        """
        import numpy
        gc.collect()
        with leakprobe.watch():
            def plant():
                one = numpy.empty(3, object); one[1] = one
                two, three = numpy.empty(5, object), numpy.empty((2, 2), object)
                two[4], three[1, 0], two[0] = three, two, bytes(1000)
                view = numpy.empty(4, object); view[3] = view[:1]
                large = numpy.empty(4000, object); large[3000] = large
            alive = numpy.empty(3, object); alive[0] = alive
            assert leakprobe.find_cycles() == []
            plant()
            found = leakprobe.find_cycles()
            gc.collect()
            assert len(leakprobe.find_cycles()) == len(found) == 4
            for cycle in found:
                assert not cycle.collectable and cycle.lacks["source"] == "numpy.ndarray", cycle
                assert cycle.lacks["edge"] in ("index", "base") and cycle.sites[0][0][2] == "plant"
                print(cycle.members, cycle.bytes["numpy"], sorted(p["text"] for p in cycle.path))  # it may begin anywhere
        """
    )
    assert out.splitlines() == [
        "1 32000 ['[3000] ndarray', 'ndarray']",
        "2 72 ['[2] ndarray', '[4] ndarray', 'ndarray']",
        "2 32 ['.base ndarray', '[3] ndarray', 'ndarray']",
        "1 24 ['[1] ndarray', 'ndarray']",
    ]


def test_importing_leakprobe_leaves_no_garbage_of_its_own():
    found = fresh.run(
        """
        import gc, json
        gc.disable()
        import leakprobe
        from leakprobe import _core
        own = [f.__qualname__ for f in gc.get_objects()
               if getattr(getattr(f, "__code__", None), "co_filename", "") == "<leakprobe check>"]
        print(json.dumps(own))
        """
    )
    assert found == []


def test_the_sum_is_that_of_the_cycles():
    body = """
    import json
    def cycle(size):
        node = Node()
        node.self, node.data = node, bytes(size)
    for size in (1000, 50_000, 2000):
        cycle(size)
    cycles = [c for c in leakprobe.find_cycles() if c.collectable]
    sums = [_core.collectable(medium) for medium in ("", "python", "cuda", "cuda:1")]
    print(json.dumps([
        [sum(c.bytes["python"] for c in cycles), len(cycles), list(cycles[0].path)],
        *([s["bytes"], s["count"], s["path"]] for s in sums),
    ]))
    """
    expected, host, python, *cuda = json.loads(run(body))
    assert host == python == expected and expected[1] == 3 and expected[0] > 53_000
    assert cuda == [[0, 0, []]] * 2


def test_many_calls_leave_memory_flat():
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
