"""What sampling of native blocks costs C code that makes two million blocks of 64 bytes a second.

A loop of C, called by Python at 16 frames, makes a block, drops the one that it made 1,024 blocks before,
and works between the two for as long as makes two million blocks a second.  Two processes run it, one of
them under the library of `leakprobe run --native`; "slots" and "preloaded, sampled" sample as often as a
watch lets them, for 1 % of the time; memray writes every call to a file.  Every mode once per repetition in
random order, processor time; a ratio is that of a mode and of plain in the same repetition, with a 95 %
interval, by bootstrap.
"""

import importlib.util
import multiprocessing
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import tempfile

from benchmarks import hooks, pairs

SOURCE = pathlib.Path(__file__).parent / "baselines" / "mallocs.c"
BYTES, RATE, DEPTH = 64, 2_000_000, 16


def add_arguments(parser) -> None:
    parser.add_argument("--repetitions", type=int, default=40)
    parser.add_argument("--count", type=int, default=500_000, help="blocks of a timed loop")


def modes() -> dict:
    """{name: (start, stop, is preloaded)}."""
    from leakprobe import _core
    from leakprobe.model.bounds import SAMPLE_S, SAMPLES_SHARE
    from leakprobe.model.frames import PACKAGE_DIR

    def sample():
        _core.start(DEPTH, PACKAGE_DIR)
        assert _core.native_follow(round(BYTES * RATE * SAMPLE_S / SAMPLES_SHARE))

    def end():
        _core.native_unfollow()
        _core.stop()

    def nothing():
        pass

    memray = hooks.Memray()
    found = {
        "plain": (nothing, nothing, False),
        "preloaded, nothing sampled": (nothing, nothing, True),
        "slots": (sample, end, False),
        "preloaded, sampled": (sample, end, True),
        "memray": (memray.start, memray.stop, False),
    }
    if importlib.util.find_spec("memray") is None:
        del found["memray"]
    return found


def serve(pipe, library: str) -> None:
    """Run the loop as asked: (mode, count, turns) -> seconds; in a process of its own."""
    import ctypes

    churn = ctypes.CDLL(library).churn
    churn.restype, churn.argtypes = ctypes.c_double, [ctypes.c_size_t, ctypes.c_size_t, ctypes.c_uint]
    known = modes()
    while True:
        asked = pipe.recv()
        if asked is None:
            return
        mode, count, turns = asked
        start, stop, _ = known[mode]
        start()
        try:
            pairs.at_depth(DEPTH, churn, count // 10, BYTES, turns)
            pipe.send(pairs.at_depth(DEPTH, churn, count, BYTES, turns))
        finally:
            stop()


class Loop:
    """A process that runs the loop."""

    def __init__(self, library: pathlib.Path, is_preloaded: bool):
        from leakprobe import preload

        context = multiprocessing.get_context("spawn")
        before = dict(os.environ)
        os.environ.update(preload.environment() if is_preloaded else {})
        try:
            self._pipe, there = context.Pipe()
            self._process = context.Process(target=serve, args=(there, str(library)))
            self._process.start()
        finally:
            os.environ.clear()
            os.environ.update(before)

    def seconds(self, mode: str, count: int, turns: int) -> float:
        self._pipe.send((mode, count, turns))
        return self._pipe.recv()

    def end(self) -> None:
        self._pipe.send(None)
        self._process.join()


def turns_for_rate(loop: Loop, count: int) -> int:
    """Turns of work with which plain makes so many blocks a second."""
    none, many = (min(loop.seconds("plain", count, turns) for _ in range(5)) for turns in (0, 1000))
    return max(0, round((count / RATE - none) / (many - none) * 1000))


def run(args) -> dict:
    folder = pathlib.Path(tempfile.mkdtemp(prefix="leakprobe-bench-"))
    library = folder / "mallocs.so"
    subprocess.run(
        ["cc", "-O2", "-fno-builtin", "-shared", "-fPIC", "-o", str(library), str(SOURCE)], check=True
    )
    loops = {is_preloaded: Loop(library, is_preloaded) for is_preloaded in (False, True)}
    chosen, rng, load = modes(), random.Random(0), os.getloadavg()[0]
    try:
        turns = turns_for_rate(loops[False], args.count)
        times = {mode: [] for mode in chosen}
        for _ in range(args.repetitions):
            for mode in rng.sample(list(chosen), len(chosen)):
                times[mode].append(loops[chosen[mode][2]].seconds(mode, args.count, turns))
    finally:
        for loop in loops.values():
            loop.end()
        shutil.rmtree(folder)
    rows = {}
    for mode, seconds in times.items():
        over = pairs.summary([a / b for a, b in zip(seconds, times["plain"])])
        ns = [1e9 * s / args.count for s in seconds]
        added = statistics.median(ns) - statistics.median(1e9 * s / args.count for s in times["plain"])
        rows[mode] = {**over, "ns a block": statistics.median(ns), "added, ns": added}
        rows[mode]["spread"] = pairs.spread(ns)
    facts = {
        "blocks a second, plain": 1e9 / rows["plain"]["ns a block"],
        "blocks a loop": args.count,
        "repetitions": args.repetitions,
        "load of the machine when it began": load,
        "and when it ended": os.getloadavg()[0],
    }
    return {"benchmark": "mallocs", "machine": pairs.machine(), "rows": rows, "facts": facts}
