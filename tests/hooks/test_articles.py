"""The cases of the articles that the project began with: who keeps the bytes, each byte once, and nothing is
collected.
"""

import json
import re
import sys

import pytest
from native_support import run_fresh

torch = pytest.importorskip("torch")

PRELUDE = """
import gc, json, sys
import torch, leakprobe
torch.set_num_threads(1)
leakprobe.find_cycles()
gc.collect()
gc.disable()
def tell(name):
    #Print the cycles with such a type; finding them must leave the objects as they were.
    for _ in range(4):
        leakprobe.find_cycles()
    objects, blocks = len(gc.get_objects()), sys.getallocatedblocks()
    for _ in range(20):  # the interpreter keeps a block or two of its own in most of the first twenty calls, then none
        leakprobe.find_cycles()
    objects, blocks = len(gc.get_objects()) - objects, sys.getallocatedblocks() - blocks
    assert objects == 0 and abs(blocks) <= 60, (objects, blocks)
    rows = [c.to_dict() for c in leakprobe.find_cycles() if any(name in p["type"] for p in c.path)]
    paths = [[p["text"] for p in row["path"]] for row in rows]
    print(json.dumps([paths, [(row["members"], row["bytes"]["cpu"], row["collectable"]) for row in rows], gc.collect()]))
"""


def test_a_list_of_numpy_views():
    out = json.loads(
        run_fresh(
            PRELUDE
            + """
history = []
with leakprobe.watch(warmup=3) as probe:
    for i in range(40):
        batch = torch.ones(64, 1000)
        array = batch.numpy()
        history.append((array, array[3:5], batch[7].numpy()))
        del batch, array
        probe.step()
    size = leakprobe.retained_size(history)
    path = [str(p) for p in leakprobe.why(history[0][0].base)]
print(json.dumps([probe.report().to_dict()["findings"], size, path]))
"""
        ).splitlines()[-1]
    )
    findings, size, paths = out
    storage = 64 * 1000 * 4
    (finding,) = findings
    assert finding["medium"] == "cpu"
    # The buffer of a step counts once, though three arrays and two tensors lead to it.
    assert storage <= finding["bytes_per_step"] <= storage + 2500 and finding["count_per_step"] == 1
    texts = [p["text"] for p in finding["path"]]
    module, history, row, array, base, buffer = texts
    items = int(re.fullmatch(r"history \(list, (\d+) items\)", history).group(1))
    assert 20 <= items <= 40  # as of the last trace, at most one for each step
    assert finding["holder"]["text"] == history and finding["holder"]["length"] == items
    assert re.fullmatch(r"\[\d+\] \(tuple, 3 items\)", row) and re.fullmatch(r"\[[012]\] ndarray", array)
    assert (module, base, buffer) == ("__main__", ".base Tensor", f"buffer (cpu, {storage} bytes)")
    assert finding["cause"] == "view_of_large_base"
    assert 40 * storage <= size <= 40 * (storage + 3000)
    assert any(
        "history (list, 40 items) -> [0] (tuple, 3 items) -> [0] ndarray -> .base Tensor" in p for p in paths
    ), paths


SIMPLE = """
class Node:
    def __init__(self, tensor):
        self.tensor, self.link = tensor, None
def simple_leak():
    a, b = Node(torch.zeros(65536)), Node(torch.zeros(65536))
    a.link, b.link = b, a
for _ in range(7):
    simple_leak()
tell("Node")
"""

AWAITABLE = """
class Awaitable:
    def __init__(self, tensor):
        self.tensor = tensor
        self.on_done = lambda: self.tensor.sum()
    def __await__(self):
        yield
        return self.on_done()
async def use():
    return await Awaitable(torch.zeros(1000))
def awaitable_leak():
    running = use()
    running.send(None)
    try:
        running.send(None)
    except StopIteration:
        pass
for _ in range(7):
    awaitable_leak()
tell("Awaitable")
"""


#: An instance with attributes: until 3.10 its dict is an object of its own.
OBJECTS_EACH = 1 if sys.version_info >= (3, 11) else 2


def counted(program):
    paths, sizes, collected = json.loads(run_fresh(PRELUDE + program).splitlines()[-1])
    assert collected > 0
    return paths, sizes


def test_a_pair_of_nodes_with_tensors():
    paths, sizes = counted(SIMPLE)
    assert paths == [["Node", ".link Node", ".link Node"]] * 7
    assert sizes == [[2 * OBJECTS_EACH, 2 * 4 * 65536, True]] * 7


def test_a_callback_that_closes_over_self():
    paths, sizes = counted(AWAITABLE)
    assert len(paths) == 7 and all(
        "self Awaitable" in p or ".on_done function Awaitable.__init__.<locals>.<lambda>" in p for p in paths
    ), paths
    assert [s[1:] for s in sizes] == [[4000, True]] * 7
