"""What descriptors that rise say of the finding of the objects that have them."""

import types

import pytest
from sample_reports import finding

from leakprobe.judge.rises import Rise
from leakprobe.watch import resource_findings
from leakprobe.watch.count_findings import attached, makers_of, says_already

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


@pytest.mark.parametrize(
    "change, is_said",
    [
        ({}, True),
        ({"count_per_step": 3.0}, True),  # the files of one database
        ({"count_per_step": 1.5}, False),
        ({"onset_step": 40}, False),
        ({"type": "socket.socket"}, False),
        ({"medium": "thread"}, False),
    ],
)
def test_descriptors_of_objects_that_are_not_known_to_have_some(change, is_said):
    objects = finding(medium="python", cause="never_closed", count_per_step=1.0, onset_step=5)
    rise = {"medium": "fd", "type": None, "allocation": None, "count_per_step": 1.0}
    found = finding(**({"cause": "never_closed", "onset_step": 6} | rise | change))
    assert says_already(objects, found) == is_said


def test_descriptors_of_the_warm_up_name_no_line():
    """A line with a hundred sockets of the warm-up and ten of later has ten of those that leak."""
    rows = {70: ((2, 100, 0), *((step, 1, 0) for step in range(5, 15))), 80: ((9, 90, 0),)}
    groups = [
        types.SimpleNamespace(
            type="socket.socket", site=site, series=row, live_count=sum(n for _, n, _ in row)
        )
        for site, row in rows.items()
    ]
    engine = types.SimpleNamespace(
        warmup=5,
        resources=types.SimpleNamespace(makers={}),
        last_look=types.SimpleNamespace(suspects=groups),
    )
    assert makers_of("fd", engine) == {("socket.socket", 70): 10, ("socket.socket", 80): 90}


def test_native_memory_that_items_own_is_told_once(monkeypatch):
    monkeypatch.setattr(resource_findings, "owns", lambda owner, *_: owner.kind == "retained")
    parts = [finding(kind="native_growth", bytes_per_step=float(k << 10), live_bytes=k) for k in (1, 2, 4)]
    findings = [finding(bytes_per_step=1024.0, live_bytes=1)]
    resource_findings.add_native(parts, [], findings)
    (whole,) = findings
    assert whole.bytes_per_step == 8 << 10 and whole.live_bytes == 8
    assert whole.evidence.count("that its items own") == 1
    assert "+7.0 KiB/step of it is memory of a library" in whole.evidence
