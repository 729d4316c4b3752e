"""What lives on and does not grow: a note, and no finding."""

import json

import forked
import pytest
from native_support import needs_torch

SCRIPT = """
import json
import torch
import leakprobe
from torch import nn

net = nn.Sequential(nn.Linear(31, 250), nn.ReLU(), nn.Linear(250, 1))
optimizer = torch.optim.SGD(net.parameters(), 1e-6)
with leakprobe.watch() as probe:
    for i in probe.steps(range(40)):
        {body}
        net(torch.randn(9, 31)).square().mean().backward()
        optimizer.step()
print(json.dumps(probe.report().to_dict()))
"""
SIZE = 4 * (31 * 250 + 250 + 250 + 1)


def lasting(folder, body):
    """The notes on gradients of a loop that is steady."""
    script = folder / "fit.py"
    script.write_text(SCRIPT.format(body=body))
    done = forked.run([script])
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout.strip().splitlines()[-1])
    assert report["findings"] == [] and report["verdict"] == "steady"
    return [note for note in report["notes"] if note["text"].startswith("gradients of ")]


@needs_torch
def test_gradients_that_are_never_reset_are_noted_with_their_bytes(tmp_path):
    (note,) = lasting(tmp_path, "pass")
    assert note["live_bytes"] == SIZE and "gradients of 4 parameters" in note["text"]
    assert "optimizer.zero_grad()" in note["text"] and note["bytes_per_step"] == 0


@needs_torch
@pytest.mark.parametrize("body", ["optimizer.zero_grad()", "optimizer.zero_grad() if i % 4 == 0 else None"])
def test_gradients_of_a_few_steps_are_not(body, tmp_path):
    assert lasting(tmp_path, body) == []
