"""What real loops keep: the function of each payload makes one item of about so many bytes, on a line of its
own.
"""

import numpy as np

#: No item is smaller.
LEAST_BYTES = 64


def plain_list(size: int):
    return [None] * max(1, (size - 56) // 8)


def plain_dict(size: int):
    return dict.fromkeys(range(max(1, size // 64)))


def string(size: int):
    return "x" * max(1, size - 49)


def array(size: int):
    return np.ones(max(1, size // 8))


def view(size: int):
    """A view, which keeps the whole array behind it."""
    return np.ones(max(4, size // 8))[1:3]


def tensor(size: int):
    import torch

    return torch.ones(max(1, size // 4))


class Graph:
    """Losses that are kept with their graph, and so with the input that it saved."""

    def __init__(self):
        self.weight = None

    def __call__(self, size: int):
        import torch

        if self.weight is None:
            self.weight = torch.ones(1, requires_grad=True)
        batch = torch.ones(max(1, size // 4))
        return (self.weight * batch).sum()


PAYLOADS = {
    "list": plain_list,
    "dict": plain_dict,
    "string": string,
    "array": array,
    "view": view,
    "tensor": tensor,
    "graph": Graph(),
}
#: Those that need torch.
OF_TORCH = frozenset({"tensor", "graph"})
