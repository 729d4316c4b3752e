"""Cycles that wait for the collector, in loops that call it themselves, each with a twin that never does."""

import pytest
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
