"""A gradient penalty with create_graph

The gradient has a graph of its own, which leads back to the parameter that holds the gradient.
"""

import torch

import leakprobe


def penalty(size):
    point = torch.rand(size, requires_grad=True)
    (point**3).sum().backward(create_graph=True)
    return point.grad.norm().item()


with leakprobe.watch() as probe:
    for _ in probe.steps(range(60)):
        penalty(50_000)
probe.report().print()
