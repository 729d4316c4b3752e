"""What descriptors that rise say of the finding of the objects that have them."""

import types

import pytest
from sample_reports import finding

from leakprobe.judge.rises import Rise
from leakprobe.watch.count_findings import attached

RISE = Rise(first=(5, 9), last=(60, 64), rises=50, of=50, slope=1.0, spread=0.1, usual=1.0)
RESOURCES = types.SimpleNamespace(fastest_kind=lambda: "shm")


@pytest.mark.parametrize(
    "medium, kept, cause",
    [
        ("python", "growing_container", "never_closed"),  # files in a list
        ("shared", "growing_container", "growing_container"),  # tensors: they have no close()
        ("python", "batch_memory_kept", "batch_memory_kept"),
    ],
)
def test_descriptors_change_the_cause_of_what_can_be_closed(medium, kept, cause):
    found = attached(finding(medium=medium, cause=kept), "fd", RISE, RESOURCES)
    assert found.cause == cause and ("close it" in (found.fix or "")) == (cause == "never_closed")
    assert "open descriptors rose at 50 of 50 marks, from 9 to 64" in found.evidence
