"""A new head for each task, one optimizer for all

The heads of earlier tasks are gone from the program. The optimizer has them still, with two moments of
each weight.
"""

import torch
from torch import nn

import leakprobe

body = nn.Linear(32, 64)
optimizer = torch.optim.Adam(body.parameters())


def train_task(classes):
    head = nn.Linear(64, classes)
    optimizer.add_param_group({"params": list(head.parameters())})
    loss = head(body(torch.randn(16, 32))).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


with leakprobe.watch() as probe:
    for _ in probe.steps(range(60)):
        train_task(100)
probe.report().print()
