"""Cycles that wait for the collector, in loops that call it themselves, each with a twin that never does."""

import pytest
from fresh import run

pytest.importorskip("numpy", reason="cycles that keep arrays")

LOOP = """
import gc, json, leakprobe, numpy
class Output:
    def __init__(self, i):
        self.me, self.rows = self, numpy.zeros(10_000)
with leakprobe.watch() as probe:
    for i in range(240):
        i % 40 or gc.disable()
        Output(i)
        if i % 40 == 39 and {collects}:
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
