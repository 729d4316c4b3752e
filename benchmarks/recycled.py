"""What the closed free lists cost and are worth, where the allocator hook serves (before Python 3.13).

"closed": from the start; "in use": as they would be until a suspect shows up.  Counts: lines of leaked
objects while another function churns the same types.  Time: a loop that makes such objects and drops
them at once, over plain time; all that free lists are good for.  Run:  python -m benchmarks recycled
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
    return json.loads(
        subprocess.run(
            [sys.executable, "-c", CODE], env=env, check=True, capture_output=True, text=True
        ).stdout
    )


def churn(n):
    x = 1.5
    for i in range(n):
        a, b, c, d = [], {}, (x, i), x * 0.5
        a = b = c = d = None


def churn_times(args) -> dict:
    """{mode: time over plain time} of churn()."""
    from benchmarks import hooks

    chosen = hooks.modes(["plain", "leakprobe", "kept"])
    times = pairs.interleave(
        chosen, lambda: pairs.at_depth(10, pairs.timed, churn, args.size), args.repetitions
    )
    return {mode: pairs.ratio(times, mode, "plain") for mode in chosen if mode != "plain"}


def run(args) -> dict:
    rows, times = {}, churn_times(args)
    for name, free_lists in (("closed", ""), ("in use", "kept")):
        for kind, (right, unknown, wrong) in counted(free_lists).items():
            rows[f"{name}: {kind}"] = {"right": right, "unknown": unknown, "wrong": wrong}
    for mode, ratio in times.items():
        print(
            f"churn, {'free lists in use' if mode == 'kept' else 'free lists closed'}: {ratio:.2f} of plain time"
        )
    return {
        "benchmark": "recycled",
        "unit": "objects of 300",
        "churn": times,
        "machine": pairs.machine(),
        "rows": rows,
        "geometric_mean": {},
    }


def add_arguments(parser) -> None:
    parser.add_argument("--repetitions", type=int, default=15)
    parser.add_argument("--size", type=int, default=100_000, help="turns of the loop that is timed")
