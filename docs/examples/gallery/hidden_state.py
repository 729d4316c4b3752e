"""A recurrent state carried from batch to batch

Truncated backpropagation without the truncation: the state of step n leads to the graphs of all steps before.
"""

import torch
from torch import nn

import leakprobe

cell = nn.GRUCell(16, 64)
hidden = torch.zeros(8, 64)

with leakprobe.watch() as probe:
    for _ in probe.steps(range(60)):
        hidden = cell(torch.randn(8, 16), hidden)
        score = hidden.mean().item()
probe.report().print()
