"""Outputs collected for the end of an epoch

Written for a few batches; with no epoch's end in sight, the module keeps all of them.
"""

import torch
from torch import nn

import leakprobe


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(48, 100)
        self.validation_outputs = []

    def validation_step(self, batch):
        with torch.no_grad():
            logits = self.layer(batch)
        self.validation_outputs.append({"logits": logits, "best": logits.argmax(1)})


model = Classifier()
with leakprobe.watch() as probe:
    for _ in probe.steps(range(60)):
        model.validation_step(torch.randn(256, 48))
probe.report().print()
