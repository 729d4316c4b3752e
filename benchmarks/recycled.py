"""What the closed free lists are worth: lines of leaked objects while another function churns the same types.

Two processes, one with the free lists closed from the start and one where they stay in use, as they
would until a suspect shows up.  Run:  LEAKPROBE_MECHANISM=allocator python -m benchmarks recycled
"""

import json
import os
import subprocess
import sys

from benchmarks import pairs

CODE = """
import json
from leakprobe import _core
def churn():
    for i in range(50):
        a, b, c, d = [], {}, (x, x), x * 0.5
x = 1.5
kept = []
def leak():
    kept.append([])
    kept.append({})
    kept.append((kept, kept))
    kept.append(x * 3)
_core.start(8, "/nowhere/")
for _ in range(300):
    churn()
    leak()
    churn()
    _core.mark()
counts = {name: [0, 0, 0] for name in ("list", "dict", "tuple", "float")}
first = leak.__code__.co_firstlineno + 1
for i, op in enumerate(kept):
    stamp = _core.site_of(op)
    if stamp is None or stamp[0] == 3:
        counts[type(op).__name__][1] += 1
    else:
        line = _core.site_frames(stamp[0])[0][1]
        counts[type(op).__name__][0 if line == first + i % 4 else 2] += 1
print(json.dumps(counts))
"""


def counted(free_lists: str) -> dict:
    """{type: [right, unknown, wrong]}."""
    env = {**os.environ, "LEAKPROBE_FREE_LISTS": free_lists}
    return json.loads(subprocess.run([sys.executable, "-c", CODE], env=env, check=True, capture_output=True, text=True).stdout)


def run(args) -> dict:
    rows = {}
    for name, free_lists in (("closed", ""), ("in use", "kept")):
        for kind, (right, unknown, wrong) in counted(free_lists).items():
            rows[f"{name}: {kind}"] = {"right": right, "unknown": unknown, "wrong": wrong}
    return {"benchmark": "recycled", "unit": "objects of 300", "machine": pairs.machine(), "rows": rows, "geometric_mean": {}}


def add_arguments(parser) -> None:
    del parser
