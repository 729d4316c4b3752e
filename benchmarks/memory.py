"""Bytes of bookkeeping for a heap of small objects, under each mode, over the heap's own bytes.

A fresh process per mode builds the same objects; its anonymous resident memory, less that of the
plain process, is what the mode keeps.  The heap is what pymalloc holds in arenas for the objects.
Run:  python -m benchmarks memory [--objects 145000] [--depth 10]
"""

import os
import re
import subprocess
import sys
import tempfile

from benchmarks import pairs

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Plain:
    def __init__(self, a, b):
        self.a, self.b = a, b


def build(n):
    return [((i, i + 1.5), {"a": i}, [i, None], "k%d" % i, Plain(i, None)) for i in range(n)]


def anonymous_bytes() -> int:
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("RssAnon")) * 1024


def arena_bytes() -> int:
    """What pymalloc holds, from sys._debugmallocstats(), which writes to standard error."""
    with tempfile.TemporaryFile() as file:
        saved = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            sys._debugmallocstats()
        finally:
            os.dup2(saved, 2)
            os.close(saved)
        file.seek(0)
        found = re.search(r"arenas \* \d+ bytes/arena\s+=\s+([\d,]+)", file.read().decode())
    return int(found.group(1).replace(",", ""))


def child(mode: str, objects: int, depth: int) -> None:
    """Print the growth of anonymous memory, of the arenas, and the probe's own figure."""
    from benchmarks import hooks

    chosen = hooks.modes([mode])
    start, stop = chosen[mode]
    build(1000)
    memory, arenas = anonymous_bytes(), arena_bytes()
    start()
    kept = pairs.at_depth(depth, build, objects)
    grown, own = anonymous_bytes() - memory, 0
    if mode == "leakprobe":
        from leakprobe import _core

        own = _core.overhead_bytes()
    stop()  # with an allocator hook in place there are no figures of pymalloc's
    print(grown, arena_bytes() - arenas, own, len(kept))


def measured(mode: str, args) -> list:
    call = f"from benchmarks import memory; memory.child({mode!r}, {args.objects}, {args.depth})"
    done = subprocess.run([sys.executable, "-c", call], cwd=HERE, check=True, capture_output=True, text=True)
    return [int(word) for word in done.stdout.split()]


def run(args) -> dict:
    from benchmarks import hooks

    plain, heap, _, _ = measured("plain", args)
    rows = {}
    for mode in [m for m in hooks.modes() if m not in ("plain", "empty", "kept")]:
        grown, _, own, _ = measured(mode, args)
        rows[mode] = {"MiB": (grown - plain) / 2**20, "of the heap": (grown - plain) / heap}
        if mode == "leakprobe":
            rows[mode + " (its own figure)"] = {"MiB": own / 2**20, "of the heap": own / heap}
        print(mode, rows[mode], file=sys.stderr)
    result = {
        "benchmark": "memory",
        "depth": args.depth,
        "machine": pairs.machine(),
        "rows": rows,
        "geometric_mean": {},
    }
    return {**result, "heap_bytes": heap}


def add_arguments(parser) -> None:
    parser.add_argument("--objects", type=int, default=145_000, help="records of about 640 bytes")
    parser.add_argument("--depth", type=int, default=10, help="frames on the stack")
