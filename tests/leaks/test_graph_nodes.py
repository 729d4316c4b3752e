"""Graphs whose saved tensors are gone: backward() has freed them, and only the nodes are left, in malloc's
memory.

Python sees one tensor that does not grow, torch's CPU allocator nothing.
"""

import json

import forked
import pytest
from native_support import needs_torch

from leakprobe import _core
from leakprobe.evidence.autograd_steps import AutogradSteps
from leakprobe.model.bounds import MOST_MARKS

SCRIPT = """
import json, sys
import torch
import leakprobe
from torch import nn

from leakprobe import _core

net = nn.Sequential(nn.Linear(24, 48), nn.Tanh(), nn.Linear(48, 1))
optimizer = torch.optim.SGD(net.parameters(), 0.01)
figures = {{}}

def fit(steps):
    seen, sums, epoch = [], torch.zeros(()), 0.0
    for i in range(steps):
        optimizer.zero_grad()
        loss = net(torch.randn(8, 24)).square().mean()
        loss.backward()
        optimizer.step()
        {body}
        probe.step()

with leakprobe.watch() as probe:
    fit({steps})
print(json.dumps(probe.report().to_dict()))
"""

#: body of the loop, cause, owner; each keeps the nodes of six operations a step, or one more.
LEAKS = [
    ("sums += loss", "graph_chain", "sums"),
    ("epoch = epoch + loss", "graph_chain", "epoch"),
    ("figures['mean'] = figures.get('mean', 0.0) * 0.9 + loss", "graph_chain", "figures"),
    ("seen.append(loss)", "graph_kept", "seen"),
]
CLEAN = ["sums += loss.detach()", "epoch = epoch + loss.item()"]


def report_of(folder, body, steps=70):
    script = folder / "fit.py"
    script.write_text(SCRIPT.format(body=body, steps=steps))
    done = forked.run([script])
    assert done.returncode == 0, done.stderr
    line = next(i for i, text in enumerate(script.read_text().splitlines(), 1) if body in text)
    return json.loads(done.stdout.strip().splitlines()[-1]), line


@needs_torch
@pytest.mark.parametrize("body, cause, owner", LEAKS, ids=[b for b, *_ in LEAKS])
def test_nodes_are_one_finding_with_owner_and_cause(body, cause, owner, tmp_path):
    report, line = report_of(tmp_path, body)
    assert report["verdict"] == "growing"
    finding, *others = report["findings"]
    assert not others, [f["evidence"] for f in others]
    assert finding["cause"] == cause
    assert owner in json.dumps([finding["path"], finding["holder"]])
    # A node takes over 300 bytes with what it knows of its inputs; six or seven are made in a step.
    assert 6 * 300 < finding["bytes_per_step"] < 7 * 1500
    if "+=" not in body:  # else the tensor stays the same one, made before the loop
        assert finding["holder"]["grown_at"]["lineno"] == line


@needs_torch
@pytest.mark.parametrize("body", CLEAN)
def test_without_the_graph_it_is_silent(body, tmp_path):
    report, _ = report_of(tmp_path, body)
    assert report["verdict"] == "steady" and report["findings"] == []


@needs_torch
@pytest.mark.skipif(_core.malloc_why_not() is not None, reason="malloc's numbers can't be had here")
def test_a_detached_loss_has_no_graph(tmp_path):
    """It has 4 bytes of data, 80 of the wrapper, and what torch keeps beside."""
    report, line = report_of(tmp_path, "seen.append(loss.detach())")
    (finding,) = report["findings"]
    assert finding["cause"] == "growing_container" and finding["holder"]["grown_at"]["lineno"] == line
    assert 300 < finding["bytes_per_step"] < 700


@needs_torch
def test_kept_tensors_are_followed_while_other_memory_is_freed(tmp_path):
    """Then malloc's total does not tell that there are ever more nodes."""
    body = "Resources.malloc_rises = lambda self: False; seen.append(loss)"
    report, _ = report_of(tmp_path, f"from leakprobe.watch.resources import Resources; {body}")
    assert [f["cause"] for f in report["findings"]] == ["graph_kept"]
    assert 6 * 300 < report["findings"][0]["bytes_per_step"] < 7 * 1500


BEST = (
    "score = i + 30 * torch.rand(()).item()"
    "; net.best = sorted([*getattr(net, 'best', ()), (score, i, loss)])[-{kept}:]"
)


@needs_torch
@pytest.mark.parametrize("kept", [8, 20])
def test_as_many_nodes_as_an_earlier_walk_met_are_no_growth(kept, tmp_path):
    """The best of ever better scores, with their graphs: all of them came of late, and as many were freed."""
    report, _ = report_of(tmp_path, BEST.format(kept=kept), steps=240)
    assert report["verdict"] == "steady" and report["findings"] == []


@needs_torch
def test_nodes_that_begin_late_are_growth_once_they_have_gone_on_for_long(tmp_path):
    report, _ = report_of(tmp_path, "if i > 60: sums += loss", steps=160)
    (finding,) = report["findings"]
    assert finding["cause"] == "graph_chain" and 60 <= finding["onset_step"] <= 70


GENERATOR = """
import json
import torch
import leakprobe
from torch import nn

def states(net, steps):
    memory = torch.zeros(12, 40)
    for _ in range(steps):
        memory = torch.tanh(net(memory) + torch.randn(12, 40))
        yield memory.norm().item()

with leakprobe.watch() as probe:
    for norm in states(nn.Linear(40, 40), 60):
        probe.step()
print(json.dumps(probe.report().to_dict()))
"""


@needs_torch
def test_a_chain_that_several_walks_have_met_is_one_finding(tmp_path):
    """Wrappers that a walk makes of nodes live on, and are no older part of the chain."""
    script = tmp_path / "states.py"
    script.write_text(GENERATOR)
    report = json.loads(forked.run([script]).stdout.strip().splitlines()[-1])
    (finding,) = report["findings"]
    assert finding["cause"] == "graph_chain" and finding["onset_step"] == report["steps"]["warmup"]
    assert "generator states" in finding["path"][1]["text"]
    assert [note for note in report["notes"] if note["kind"] == "stopped"] == []


def test_marks_are_thinned_to_ranges():
    steps, now = AutogradSteps(), [0]
    steps._next_number = lambda: 7 * now[0]
    for now[0] in range(3 * MOST_MARKS):
        steps.mark(now[0])
    marks, merged = steps.marks(), {last: first for first, last in steps.merged()}
    assert len(marks) <= MOST_MARKS
    for number in range(0, 7 * 2 * MOST_MARKS, 1001):
        last = [step for first_number, step in marks if first_number <= number][-1]
        assert merged.get(last, last) <= number // 7 <= last
