"""Loops whose clock is counted, not read: how often leakprobe looks does not depend on the machine, nor on
its load.
"""

from fresh import run

#: Marks take 20 ms, a census 1 ms, a full one 5 ms.  mark(probe) ends a step; looks: [[step, is full]] of
#: the censuses; followed: whether it was asked to follow frees, call by call.
CLOCK = """
import json, sys, time, types
now, step, looks, followed = [0.0], 0, [], []
time.monotonic = time.perf_counter = time.thread_time = time.process_time = lambda: now[0]
import leakprobe
from leakprobe import _core
census, follow_frees = _core.census, _core.follow_frees
def counted_census(full, *rest):
    looks.append([step, bool(full)])
    now[0] += 0.005 if full else 0.001
    return census(full, *rest)
def noted_follow_frees(on):
    followed.append(on)
    return follow_frees(on)
_core.census, _core.follow_frees = counted_census, noted_follow_frees
def mark(probe):
    now[0] += 0.02
    probe.step()
"""
END = """
report = probe.report().to_dict()
print(json.dumps([looks, followed, report["verdict"], report["findings"]]))
"""


class Looked:
    """What a loop gave: the steps of all censuses and of the full ones, the verdict, the findings."""

    def __init__(self, loop: str):
        looks, self.followed, self.verdict, self.findings = run(CLOCK + loop + END)
        self.steps = [step for step, _full in looks]
        self.full = [step for step, full in looks if full]

    def full_between(self, first: int, last: int) -> int:
        return sum(first <= step <= last for step in self.full)
