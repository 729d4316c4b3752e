"""What the probe itself takes, from one mark to the next, while the heap is walked for what grows."""

from fresh import run

CODE = """
import json, sys, leakprobe
from leakprobe import _core
heap = [[str(k)] for k in range(300_000)]
kept, own = [], []
with leakprobe.watch() as probe:
    for step in range(120):
        kept.append(["%d of many" % step] * 40)
        probe.step()
        own.append(_core.overhead_bytes())
print(json.dumps([own, sys.getallocatedblocks(), len(probe.report().findings)]))
"""
LEAST_OF_A_BLOCK = 48  # bytes, on average, of the lists and strings above
AT_REST = (0.15, 8 << 20)  # a part of Python's heap, and bytes


def test_what_a_walk_took_is_given_back_by_the_next_mark():
    own, blocks, findings = run(CODE)
    assert findings == 1, "the heap was not walked"
    part, least = AT_REST
    assert max(own) < part * blocks * LEAST_OF_A_BLOCK + least, own
