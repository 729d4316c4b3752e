"""A producer that is faster than its consumer

Two batches go into the queue in each step, and one comes out.
"""

import queue

import numpy as np

import leakprobe

batches = queue.Queue()

with leakprobe.watch() as probe:
    for _ in probe.steps(range(80)):
        for _ in range(2):
            batches.put(np.random.rand(32, 128))
        batches.get().mean()
probe.report().print()
