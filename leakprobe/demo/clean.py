"""a clean loop: the validation loss is kept as a number

What kept_loss.py and numpy_view.py do wrong, done right.
"""

from collections.abc import Iterable

import torch
from torch.nn import functional as F

from leakprobe.demo.digits import batches, model

__all__ = ["batches", "train"]


def train(steps: Iterable[tuple[torch.Tensor, torch.Tensor]]) -> list[float]:
    net = model()
    optimizer = torch.optim.Adam(net.parameters())
    history = []
    for images, labels in steps:
        optimizer.zero_grad()
        F.cross_entropy(net(images), labels).backward()
        optimizer.step()
        with torch.no_grad():
            history.append(F.cross_entropy(net(images), labels).item())
    return history
