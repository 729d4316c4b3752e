"""A validation loss is kept with its graph

The list looks like sixty numbers. Each is a tensor, and behind each stands all that its backward
pass would need.
"""

import torch
from torch import nn

import leakprobe

model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 10))
optimizer = torch.optim.SGD(model.parameters(), 0.01)
criterion = nn.CrossEntropyLoss()
history = []

with leakprobe.watch() as probe:
    for _ in probe.steps(range(60)):
        images, labels = torch.randn(128, 64), torch.randint(10, (128,))
        optimizer.zero_grad()
        criterion(model(images), labels).backward()
        optimizer.step()
        history.append(criterion(model(images), labels))
probe.report().print()
