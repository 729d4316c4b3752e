"""What torch keeps beside the data of a tensor counts in its rate, as malloc tells it: of small tensors it is
most.
"""

import pytest
from fresh import run

from leakprobe import _core

torch = pytest.importorskip("torch")
needs_malloc = pytest.mark.skipif(
    _core.malloc_why_not() is not None, reason="malloc's numbers can't be had here"
)

LOOP = """
import itertools, json, statistics, torch, leakprobe
from leakprobe import _core
readings, kept, base, rows = [], [], torch.zeros({size}), torch.zeros(400, {size})
def in_use():
    info = _core.malloc_info()
    return info["in_use"] - info["probe"]
with leakprobe.watch() as probe:
    for i in range(120):
        for _ in range(20):
            kept.append({made})
        probe.step()
        if i >= 40 and i % 10 == 0:
            readings.append(in_use())
    # the middle one: what a look takes once, as it begins to follow lines, is in one of them
    grown = statistics.median(b - a for a, b in itertools.pairwise(readings)) / 10
print(json.dumps([grown, probe.report().to_dict()["findings"]]))
"""
#: Bytes of the wrapper, in Python's own memory, and of its place in the list.
WRAPPER = 88 + 9
#: What a thread's cache of malloc keeps of freed blocks counts as in use: leaders of aligned ones, as many as
#: it happens to take.
NO_CACHE = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
MADE = {
    "scalar": ("base.sum()", 8),
    "small": ("base * 2", 16),
    "large": ("base * 2", 4096),
    "detached": ("(base * 2).detach()", 16),
    "leaf": ("(base * 2).requires_grad_()", 16),
    "views": ("rows[i]", 64),
}


@needs_malloc
@pytest.mark.parametrize("name", MADE)
def test_the_rate_is_what_malloc_gives_out(name):
    made, size = MADE[name]
    grown, findings = run(LOOP.format(made=made, size=size), env=NO_CACHE)
    found = sum(finding["bytes_per_step"] for finding in findings)
    assert len(findings) == 1, [f["evidence"] for f in findings]
    assert found == pytest.approx(grown + 20 * WRAPPER, rel=0.2), (found, grown)
