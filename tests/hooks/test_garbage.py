"""Cycles that wait for the collector, in loops that call it themselves, each with a twin that never does."""

import pytest
from clocked import Looked
from fresh import run

pytest.importorskip("torch", reason="cycles that keep tensors")

LOOP = """
import gc, json, torch, leakprobe
weight = torch.ones(100, 100, requires_grad=True)
class Output:
    def __init__(self, hidden):
        self.me, self.hidden = self, hidden
with leakprobe.watch() as probe:
    for i in range(400):
        i % 50 or gc.disable()
        output = Output((torch.ones(100, 100) @ weight).tanh())
        output.hidden.sum().backward()
        if i % 50 == 49 and {collects}:
            del output
            gc.enable(); gc.collect()
        probe.step()
print(json.dumps(probe.report().to_dict()))
"""


@pytest.mark.parametrize("collects", [True, False])
def test_a_collector_that_is_off_within_epochs_only(collects):
    """A walk in the first epoch meets what the end of it frees."""
    report = run(LOOP.format(collects=collects))
    kinds = [finding["kind"] for finding in report["findings"]]
    assert kinds == ([] if collects else ["reference_cycle"])
    assert report["verdict"] == ("steady" if collects else "growing")
    texts = [note["text"] for note in report["notes"] if note["kind"] == "reference_cycle"]
    assert not collects or all("; as of step " in text for text in texts), "of an older walk than the report"


#: Blocks of 100 KB for each of 300 steps, which are freed six at a time.
RUNS = """
import gc, torch
class Callback:
    def __init__(self, trainer): self.trainer = trainer
class Trainer:
    def __init__(self):
        self.weight, self.callbacks = torch.ones(25_000), CALLBACKS
kept = []
gc.set_threshold(10_000)
with leakprobe.watch() as probe:
    for step in range(1, 301):
        trainer = Trainer(); kept.append(trainer)
        if step % 6 == 0: kept.clear(); gc.collect()
        if CYCLES: kept.clear()
        mark(probe)
"""


@pytest.mark.parametrize("cycles", [True, False])
def test_cycles_that_collections_free_are_found_and_buffers_that_are_freed_at_once_are_not_walked_for(cycles):
    callbacks = "[Callback(self) for _ in range(3)]" if cycles else "[Callback(None) for _ in range(3)]"
    loop = RUNS.replace("CALLBACKS", callbacks).replace("CYCLES", str(cycles))
    found = Looked(loop)
    assert found.verdict == "steady"
    assert found.findings == []
    assert bool(found.walks) == cycles, found.walks
