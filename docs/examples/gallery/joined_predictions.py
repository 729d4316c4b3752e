"""Predictions that are joined in each step

One tensor that is replaced by a larger one: memory grows, and each step copies all that came before.
"""

import torch
from torch import nn

import leakprobe

model = nn.Linear(20, 10)
predictions = torch.empty(0, 10)

with leakprobe.watch() as probe, torch.no_grad():
    for _ in probe.steps(range(80)):
        predictions = torch.cat([predictions, model(torch.randn(100, 20))])
probe.report().print()
