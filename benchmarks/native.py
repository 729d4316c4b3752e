"""Nanoseconds that the hooks add to one tensor allocation and its free, and the bytes they keep for a live
block.

Time: torch.empty(4096) in a loop, 16 frames deep, processor time; every mode once per repetition in random
order; the minimum of each less the minimum of plain.  "native hooks, no stack": the hooks of torch's
allocator alone;
"objects": the hook of Python's objects alone; "16 frames": both, as in a watch().  Bytes: growth of anonymous
memory with 200,000 live tensors, a fresh process for each mode, both hooks less the objects' hook alone.
"""

import importlib.util
import subprocess
import sys

from benchmarks import hooks, memory, pairs

SIZE = 4096  # floats of a tensor


def add_arguments(parser) -> None:
    parser.add_argument("--repetitions", type=int, default=25)
    parser.add_argument("--count", type=int, default=20_000, help="tensors of a timed loop")
    parser.add_argument("--blocks", type=int, default=200_000, help="live tensors of the memory figure")


def modes() -> dict:
    from leakprobe import _core
    from leakprobe.model.frames import PACKAGE_DIR

    def both(depth):
        _core.start(depth, PACKAGE_DIR)
        _core.native_install(["cpu"])

    def neither():
        _core.native_uninstall()
        _core.stop()

    memray = hooks.Memray()
    found = {
        "plain": (lambda: None, lambda: None),
        "native hooks, no stack": (lambda: _core.native_install(["cpu"]), _core.native_uninstall),
        "objects": (lambda: _core.start(16, PACKAGE_DIR), _core.stop),
        "both, 1 frame": (lambda: both(1), neither),
        "both, 16 frames": (lambda: both(16), neither),
        "memray": (memray.start, memray.stop),
    }
    if importlib.util.find_spec("memray") is None:
        del found["memray"]
    return found


def allocate(count: int) -> None:
    from torch import empty

    for _ in range(count):
        empty(SIZE)


def keep(count: int) -> list:
    from torch import empty

    return [empty(16) for _ in range(count)]


def child(mode: str, count: int) -> None:
    """Print the growth of anonymous memory with so many tensors alive, and how many blocks the ledger has."""
    from leakprobe import _core

    start, stop = modes()[mode]
    keep(1000)
    before = memory.anonymous_bytes()
    start()
    kept = pairs.at_depth(16, keep, count)
    grown, blocks = (
        memory.anonymous_bytes() - before,
        _core.ledger_totals().get("cpu", {}).get("live_count", 0),
    )
    stop()
    print(grown, blocks, len(kept))


def grown(mode: str, count: int) -> int:
    call = f"from benchmarks import native; native.child({mode!r}, {count})"
    done = subprocess.run(
        [sys.executable, "-c", call], cwd=memory.HERE, check=True, capture_output=True, text=True
    )
    return int(done.stdout.split()[0])


def run(args) -> dict:
    import torch

    torch.set_num_threads(1)
    chosen = modes()
    work = lambda: pairs.at_depth(16, pairs.timed, allocate, args.count)
    times = pairs.interleave(chosen, work, args.repetitions)
    each = {mode: [t / args.count * 1e9 for t in seconds] for mode, seconds in times.items()}
    rows = {
        mode: {"ns": min(ns), "added, ns": min(ns) - min(each["plain"]), "spread": pairs.spread(ns)}
        for mode, ns in each.items()
    }
    bytes_per_block = (grown("both, 16 frames", args.blocks) - grown("objects", args.blocks)) / args.blocks
    facts = {"bytes a live block": bytes_per_block, "live blocks": args.blocks, "tensors a loop": args.count}
    return {
        "benchmark": "native",
        "machine": pairs.machine() | {"torch": torch.__version__},
        "rows": rows,
        "facts": facts,
    }
