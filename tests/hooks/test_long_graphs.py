"""A walk makes a wrapper for each autograd node that it reads, and torch keeps it as long as the node: long
chains are freed all the same, in whatever thread and order. Each in a process of its own, which a stack
overflow would end.
"""

import json

import forked
import pytest
from native_support import needs_torch

pytestmark = [needs_torch, pytest.mark.slow]

PRELUDE = """
import gc, json, threading
import torch, leakprobe

NODES = 80_000

def chain(leaf, nodes=NODES):
    value = leaf
    for _ in range(nodes):
        value = value * 1.0
    return value

def walk():
    leakprobe.snapshot(graph=True)

def left():
    gc.collect()
    return sum(type(o).__name__ == "MulBackward0" for o in gc.get_objects())

leaf = torch.zeros(1, requires_grad=True)
"""


def left_by(body: str) -> int:
    """Wrappers that are left once the chain is gone."""
    done = forked.run(["-c", PRELUDE + body + "\nprint(json.dumps(left()))\n"])
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_the_walk_has_made_wrappers():
    assert left_by("value = chain(leaf); walk(); print(flush=True)") > 30_000


def test_freed_at_once():
    assert left_by("value = chain(leaf); walk(); del value") == 0


def test_walked_again_when_it_had_grown():
    body = "value = chain(leaf, 50_000); walk(); value = chain(value, 50_000); walk(); del value"
    assert left_by(body) == 0


def test_freed_by_a_thread_with_a_small_stack():
    body = """
def work():
    value = chain(leaf)
    walk()

threading.stack_size(128 * 1024)
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""
    assert left_by(body) == 0


def test_freed_by_the_garbage_collector():
    assert left_by("cycle = [chain(leaf)]; cycle.append(cycle); walk(); del cycle") == 0


def test_at_the_bottom_of_nested_lists():
    """Their deallocation is what the interpreter puts off when the chain's begins."""
    body = """
value = [chain(leaf)]
walk()
for _ in range(100_000):
    value = [value]
del value
"""
    assert left_by(body) == 0


KEEPING = """
class Keeping(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value, bottom=None):
        kept = bottom
        for _ in range(100_000):
            kept = [kept]
        ctx.kept = kept
        return value * 1.0

    @staticmethod
    def backward(ctx, grad):
        return grad, None
"""


def test_lists_at_the_end_of_a_chain():
    """What a node keeps may nest deep itself."""
    body = "value = chain(Keeping.apply(chain(leaf))); walk(); del value"
    assert left_by(KEEPING + body) == 0


def test_what_the_interpreter_puts_off_lies_between_the_nodes():
    """It comes to those at a moment when as many nodes are being freed as may be at once."""
    body = """
value = leaf
for nodes in (60, 20, 60, 30, 60):
    value = chain(Keeping.apply(leaf, chain(value, nodes)), nodes)
walk()
del value
"""
    assert left_by(KEEPING + body) == 0


def test_many_heads_of_one_chain():
    body = """
value, heads = leaf, []
for _ in range(30_000):
    value = value * 1.0
    heads.append(value.sum())
walk()
del value
heads.reverse()
heads.clear()
"""
    assert left_by(body) == 0


def test_backward_through_a_chain_that_was_read():
    body = """
value = chain(leaf, 20_000)
walk()
value.sum().backward()
del value
assert leaf.grad.item() == 1.0
"""
    assert left_by(body) == 0
