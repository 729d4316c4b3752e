"""How long a step waits for watch() beside a large heap, and what it takes of the processor: a loop of plain
Python, with the heap born before the watch or in its first step, clean and leaking.

Each round runs the loop without watch(), with the hooks alone, which see 45,000 containers a step come and
go, and with watch(), in random order, in one process that is warm.  A step's delay is its own time less the
median of the loop's steps, both by the clock; the longest is the delay of its mark, or of what else the
machine did, which the loop without shows.  "Longest delay" is that of all rounds, "of a round" the median
of the rounds' own.  The collector is off: a collection of
such a heap is longer than all of it.
"""

import contextlib
import gc
import json
import random
import statistics
import sys
import time

from benchmarks import heaps, pairs

#: Objects of benchmarks.heaps.mixed() for each unit.
OBJECTS_A_UNIT = 20


def add_arguments(parser) -> None:
    parser.add_argument("--objects", type=int, default=2_000_000, help="live objects (default 2,000,000)")
    parser.add_argument("--steps", type=int, default=300, help="steps of a loop (default 300)")
    parser.add_argument("--pairs", type=int, default=3, help="rounds (default 3)")
    parser.add_argument(
        "--work", type=int, default=360_000, help="turns of a step's loop (default 360,000: about 20 ms)"
    )


def step(items: int) -> int:
    """The work of one step: mostly arithmetic, and small objects that die in it."""
    total = 0
    for i in range(items):
        total += i * i % 7
        if i % 16 == 0:
            total += len({"number": i}) + len([i, total])
    return total


@contextlib.contextmanager
def hooks_alone():
    from leakprobe import _core
    from leakprobe.model.bounds import STACK_FRAMES
    from leakprobe.model.frames import PACKAGE_DIR

    _core.start(STACK_FRAMES, PACKAGE_DIR)
    try:
        yield None
    finally:
        _core.stop()


def loop(args, born: str, leaks: bool, mode: str) -> dict:
    """Seconds of the steps by the clock, and of the whole on the processor."""
    import leakprobe

    gc.collect()  # the heap of the loop before has cycles
    units = int(args.objects / OBJECTS_A_UNIT)
    heap = heaps.mixed(units) if born == "before" else []
    kept, seconds = [], []
    begin = {"plain": contextlib.nullcontext, "hooks": hooks_alone, "watch": leakprobe.watch}[mode]
    began = time.process_time()
    with begin() as probe:
        for number in range(args.steps):
            if born == "within" and number == 0:
                heap = heaps.mixed(units)
            entered = time.perf_counter()
            step(args.work)
            if leaks:
                kept.append(["kept %d" % number] * 64)
            if probe is not None:
                probe.step()
            seconds.append(time.perf_counter() - entered)
    spent = time.process_time() - began
    verdict = probe.report().verdict if probe is not None else None
    del heap, kept
    middle = statistics.median(seconds)
    long = sorted((s - middle for s in seconds[1:]), reverse=True)
    return {"processor": spent, "delays": long[:4], "step": middle, "verdict": verdict}


def delays_of(rounds: list[dict]) -> dict:
    """Milliseconds: the longest of all rounds, and the median over the rounds, with watch() and without."""

    def of_mode(mode: str, place: int) -> list[float]:
        return [found[mode]["delays"][place] * 1e3 for found in rounds]

    return {
        "longest delay, ms": max(of_mode("watch", 0)),
        "longest of a round, ms": statistics.median(of_mode("watch", 0)),
        "fourth of a round, ms": statistics.median(of_mode("watch", 3)),
        "longest without, ms": max(of_mode("plain", 0)),
        "longest of a round without, ms": statistics.median(of_mode("plain", 0)),
    }


def measure(args, born: str, leaks: bool) -> dict:
    rng, rounds = random.Random(0), []
    for _ in range(args.pairs):
        order = ["plain", "hooks", "watch"]
        rng.shuffle(order)
        rounds.append({mode: loop(args, born, leaks, mode) for mode in order})
    ratios, over_hooks = (
        [found["watch"]["processor"] / found[base]["processor"] for found in rounds]
        for base in ("plain", "hooks")
    )
    milliseconds = delays_of(rounds)
    verdicts = sorted({found["watch"]["verdict"] for found in rounds})
    print(born, leaks, milliseconds, verdicts, file=sys.stderr, flush=True)
    shares = {"over the hooks alone": statistics.median(over_hooks), "verdict": json.dumps(verdicts)}
    return pairs.summary(ratios) | milliseconds | shares


def run(args) -> dict:
    gc.disable()
    rows = {}
    for born, name in (("before", "before the watch"), ("within", "in it")):
        for leaks in (False, True):
            rows[f"born {name}, {'leaking' if leaks else 'clean'}"] = measure(args, born, leaks)
    facts = {"objects": args.objects, "steps": args.steps, "pairs": args.pairs}
    return {"benchmark": "delays", "machine": pairs.machine(), "rows": rows, "facts": facts}
