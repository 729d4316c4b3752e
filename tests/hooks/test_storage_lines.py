"""Lines of tensor storages against the truth, which a dispatch mode writes down operator by operator."""

import pytest
from test_coexistence import run

try:
    import torch
except ImportError:  # also a torch that was built for another Python
    torch = None

TRUTH = """
    import json, os, sys
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves
    import leakprobe
    from leakprobe import _core
    from leakprobe.model.frames import is_user_file

    HERE = "<string>"

    def user_line(frame):
        while frame is not None and not (frame.f_code.co_filename == HERE and frame.f_code.co_name != "__torch_dispatch__"):
            frame = frame.f_back
        return frame.f_lineno if frame else None

    class Truth(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.lines = {}
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            old = {t.untyped_storage().data_ptr() for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)}
            out = func(*args, **(kwargs or {}))
            line = user_line(sys._getframe(1))
            for t in tree_leaves(out):
                if isinstance(t, torch.Tensor) and t.untyped_storage().data_ptr() not in old:
                    self.lines[t.untyped_storage().data_ptr()] = line
            return out

    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Flatten(), torch.nn.Linear(8 * 16, 10))
    optimizer = torch.optim.Adam(model.parameters())
    data = torch.utils.data.TensorDataset(torch.rand(640, 1, 8, 8), torch.randint(0, 10, (640,)))
    kept = []

    def train(images, labels):
        logits = model(images)
        loss = torch.nn.functional.cross_entropy(logits, labels)
        kept.append(torch.nn.functional.cross_entropy(model(images), labels))
        kept.append(logits.softmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        kept.append(images[:2].clone())

    truth = Truth()
    with leakprobe.watch(stack_depth=32) as probe:
        with truth:
            for images, labels in probe.steps(torch.utils.data.DataLoader(data, batch_size=32)):
                train(images, labels)
        right = wrong = 0
        for address, size, medium, site, step in _core.ledger_blocks():
            if medium != "cpu" or address not in truth.lines:
                continue
            frames = [f for f in _core.site_frames(site) if f[0] == HERE and f[2].rpartition(".")[2] != "__torch_dispatch__"]
            line = frames[0][1] if frames else None
            right += line == truth.lines[address]
            wrong += line != truth.lines[address]
    print(json.dumps([right, wrong]))
"""


@pytest.mark.skipif(torch is None, reason="torch is not installed")
def test_storages_carry_the_users_line():
    right, wrong = run(TRUTH)
    assert right > 200
    assert wrong <= 0.01 * (right + wrong)
