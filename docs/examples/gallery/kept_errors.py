"""Errors collected to be shown at the end

An exception leads to the frames it came through, and these to all their local variables.
"""

import numpy as np

import leakprobe


def decode(sample):
    pixels = np.zeros((256, 256, 3))
    if sample % 2:
        raise ValueError(f"sample {sample} is truncated")
    return pixels.mean()


failures = []
with leakprobe.watch() as probe:
    for sample in probe.steps(range(120)):
        try:
            decode(sample)
        except ValueError as error:
            failures.append(error)
probe.report().print()
