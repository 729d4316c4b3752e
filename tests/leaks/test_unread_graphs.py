"""A torch that does not show what autograd nodes have saved: no cause is made up."""

import json

import forked
from native_support import needs_torch

SCRIPT = """
import json
import torch
import leakprobe
from torch import nn

if hasattr(torch._C._autograd.SavedTensor, "data"):
    del torch._C._autograd.SavedTensor.data
net = nn.Sequential(nn.Linear(21, 340), nn.Tanh(), nn.Linear(340, 1))
curve, best = [], {{}}
with leakprobe.watch() as probe:
    for i in range(40):
        score = net(torch.randn(12, 21)).square().mean()
        {body}
        probe.step()
print(json.dumps(probe.report().to_dict()))
"""
SAVED = 4 * 12 * 340


def report_of(folder, body):
    script = folder / "fit.py"
    script.write_text(SCRIPT.format(body=body))
    done = forked.run([script])
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.strip().splitlines()[-1])


@needs_torch
def test_saved_tensors_are_counted_with_the_one_graph_that_is_kept(tmp_path):
    (finding,) = report_of(tmp_path, "curve.append(score)")["findings"]
    assert finding["cause"] == "graph_kept" and "curve" in finding["holder"]["text"]
    assert finding["bytes_per_step"] > SAVED
    assert "does not show what autograd graphs have saved" in finding["evidence"]


@needs_torch
def test_of_several_graphs_none_is_blamed(tmp_path):
    body = "curve.append(score); best[i] = net(torch.randn(12, 21)).amax()"
    largest, *others = report_of(tmp_path, body)["findings"]
    assert largest["cause"] == "held_outside_python" and largest["kind"] == "retained"
    assert largest["bytes_per_step"] > SAVED and "does not show" in largest["fix"]
    assert {f["cause"] for f in others} == {"graph_kept"}
    assert {f["holder"]["text"].split(" ")[0] for f in others} == {"curve", "best"}
    shown = {f["holder"]["text"].split(" ")[0]: f["fix"] for f in others}
    assert "`curve.append(score)`" in shown["curve"] and "`best[i] =" in shown["best"]


@needs_torch
def test_without_growth_it_is_silent(tmp_path):
    report = report_of(tmp_path, "curve.append(score.item()); score.backward(); net.zero_grad()")
    assert report["findings"] == [] and report["verdict"] == "steady"
