"""Cycles while the garbage collector is off

Switched off for speed, as many training scripts do: now nothing frees objects that refer to each other.
"""

import gc

import numpy as np

import leakprobe


class Node:
    def __init__(self, parent=None):
        self.parent = parent
        self.children = []
        self.embedding = np.zeros(2_000)


def parse(depth):
    root = Node()
    for _ in range(depth):
        root.children.append(Node(root))
    return len(root.children)


gc.disable()
with leakprobe.watch() as probe:
    for _ in probe.steps(range(60)):
        parse(3)
probe.report().print()
