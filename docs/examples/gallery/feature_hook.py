"""A hook that is registered in each evaluation

`extract()` looks like a pure function. It leaves a hook behind, and each later call
of the model runs all of them.
"""

import torch
from torch import nn

import leakprobe

model = nn.Sequential(nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 5))


def extract(batch):
    features = {}

    def keep(module, args, output):
        features["hidden"] = output.detach()

    model[0].register_forward_hook(keep)
    with torch.no_grad():
        model(batch)
    return features["hidden"].mean(0)


with leakprobe.watch() as probe:
    for _ in probe.steps(range(60)):
        extract(torch.randn(40, 32))
probe.report().print()
