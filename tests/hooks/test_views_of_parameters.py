"""A view of a parameter that an optimizer has written is not asked for its function, which torch might
replace; as an owner of that function it is known all the same: a graph in a cycle is garbage as a whole.
"""

import pytest
from clocked import FREE
from fresh import run

pytest.importorskip("torch")

LOOP = """
import gc, json
import leakprobe, torch
gc.disable()
layer = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(layer.parameters(), 0.1)

class Node:
    pass

def chain(y):
    for _ in range(12):
        y = NEXT
    return y

chain(torch.randn(4, 8)).sum().backward()
optimizer.step()
assert layer.weight._version
with leakprobe.watch(warmup=3) as probe:
    for _ in range(30):
        node = Node()
        node.me, node.kept = node, chain(torch.randn(SHAPE))
        del node
        probe.step()
found = probe.report().to_dict()["findings"]
print(json.dumps([[f["kind"], f["bytes_per_step"], f["evidence"]] for f in found]))
"""
FORMS = {
    "linear": ("layer(y)", "4, 8"),
    "linear of batches": ("layer(y)", "4, 3, 8"),
    "transposed": ("y @ layer.weight.t()", "4, 8"),
    "view of a view": ("y @ layer.weight.view(4, 16).t().reshape(8, 8)", "4, 8"),
    "two views": ("y + (layer.weight.t() @ layer.weight.view(8, 8)).sum(0)", "4, 8"),
    "of an expression": ("y @ (layer.weight * 2).t()", "4, 8"),
    "one view twice": ("(lambda w: y @ w @ w)(layer.weight.t())", "4, 8"),
    "expanded": ("y * layer.bias.expand(4, 8)", "4, 8"),
    "not saved": ("y + layer.weight[1]", "4, 8"),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_graph_in_a_cycle_is_one_finding(form):
    code, shape = FORMS[form]
    found = run(FREE + LOOP.replace("NEXT", code).replace("SHAPE", shape))
    assert [kind for kind, _, _ in found] == ["reference_cycle"], found


TREES = """
import gc, json
import leakprobe, torch
gc.disable()
words = torch.nn.Embedding(20, 8)
kept = []

class Node:
    __slots__ = ("parent", "children", "state")

def tree(step):
    root = Node()
    root.parent, root.children = None, [Node(), Node()]
    for number, leaf in enumerate(root.children):
        leaf.parent, leaf.children, leaf.state = root, [], words.weight[number]
    root.state = torch.cat([leaf.state for leaf in root.children])
    return root

with leakprobe.watch(warmup=3) as probe:
    for step in probe.steps(range(30)):
        KEEP(tree(step))
found = probe.report().to_dict()["findings"]
print(json.dumps([[f["kind"], f["cause"]] for f in found]))
"""


def test_views_that_objects_of_a_cycle_keep_are_garbage_with_their_functions():
    found = run(FREE + TREES.replace("KEEP", "type"))
    assert [kind for kind, _ in found] == ["reference_cycle"], found


def test_views_that_are_kept_are_found_in_what_keeps_them():
    found = run(FREE + TREES.replace("KEEP", "kept.append"))
    assert found == [["retained", "graph_kept"]], found
