"""The data and the model of the demos: scikit-learn's 1,797 images of handwritten digits and a small CNN."""

import itertools
from collections.abc import Iterator
from typing import Any

import torch
from sklearn.datasets import load_digits
from torch import nn

BATCH_SIZE = 128


def loader(size: int = BATCH_SIZE) -> torch.utils.data.DataLoader:
    """Shuffled batches: images (size, 1, 8, 8) float32 in 0..1 and labels (size,)."""
    digits: Any = load_digits()  # a Bunch
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target)
    data = torch.utils.data.TensorDataset(images, labels)
    return torch.utils.data.DataLoader(data, batch_size=size, shuffle=True, drop_last=True)


def batches(count: int, size: int = BATCH_SIZE) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """``count`` batches, epoch after epoch."""
    epochs = itertools.chain.from_iterable(itertools.repeat(loader(size)))
    return itertools.islice(epochs, count)


def model() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 32, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 8 * 8, 10),
    )
