"""A running total of the loss

`+=` of a loss adds a number, and a link to a graph that grows with each step.
"""

import torch
from torch import nn

import leakprobe


class Trainer:
    def __init__(self):
        self.model = nn.Linear(32, 4)
        self.optimizer = torch.optim.Adam(self.model.parameters())
        self.total = 0.0

    def step(self, x, y):
        loss = nn.functional.mse_loss(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.total += loss


trainer = Trainer()
with leakprobe.watch() as probe:
    for _ in probe.steps(range(80)):
        trainer.step(torch.randn(64, 32), torch.randn(64, 4))
probe.report().print()
