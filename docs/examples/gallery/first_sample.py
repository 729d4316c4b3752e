"""One image of each batch, for the report

The slice is 12 KiB. It is a view: the batch of 768 KiB lives as long as it does.
"""

import torch

import leakprobe

gallery = []


def batches(count):
    for _ in range(count):
        yield torch.rand(64, 3, 32, 32)


with leakprobe.watch() as probe:
    for batch in probe.steps(batches(60)):
        gallery.append(batch[0])
probe.report().print()
