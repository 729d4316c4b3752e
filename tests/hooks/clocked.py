"""Loops whose clock is counted, not read: how often leakprobe walks the heap does not depend on the machine,
nor on its load.
"""

from fresh import run

#: Marks take 20 ms, a walk 5 ms.  mark(probe) ends a step; walks: the steps of the walks that met the heap.
CLOCK = """
import json, sys, time, types
now, step, walks = [0.0], 0, []
for name in ('monotonic', 'perf_counter', 'thread_time', 'process_time'):
    setattr(time, name, lambda: now[0])
import leakprobe
from leakprobe import _core
confirm = _core.confirm
def counted_confirm(*arguments):
    walks.append(_core.step())
    now[0] += 0.005
    return confirm(*arguments)
_core.confirm = counted_confirm
def mark(probe):
    now[0] += 0.02
    probe.step()
"""
#: To leakprobe its own work takes no time, so that none is put off on a slow machine, nor do the steps: which
#: marks are read is a matter of their number.
FREE = """
import time, types; from leakprobe.model import budget; from leakprobe.watch import schedule
budget.time = types.SimpleNamespace(monotonic=time.monotonic, thread_time=lambda: 0.0)
schedule.time = types.SimpleNamespace(monotonic=lambda: 0.0)
"""
END = """
report = probe.report().to_dict()
print(json.dumps([walks, report["verdict"], report["findings"]]))
"""


class Looked:
    """What a loop gave: the steps of its walks, the verdict, the findings."""

    def __init__(self, loop: str):
        self.walks, self.verdict, self.findings = run(CLOCK + loop + END)

    def between(self, first: int, last: int) -> int:
        return sum(first <= step <= last for step in self.walks)
