"""A training loop under watch() over the same loop without, in two processes that take turns.

The loop is that of the benchmark "training"; each process trains a network of its own and goes on for so many
steps (``--turn``) while the other waits, so that whatever the machine does meets both alike.  Told is the sum
of what the watched turns took over that of the plain ones, with its 95 % interval (bootstrap over the turns
of all pairs of processes); starting the watch and what it does at the end are in its first and last turn,
and importing leakprobe, which is told beside, in none.
"""

import array
import contextlib
import json
import pathlib
import random
import statistics
import subprocess
import sys
import time

from benchmarks import pairs

ROOT = pathlib.Path(__file__).parent.parent
CHILD = "from benchmarks import turns; turns.child({kind!r}, {steps}, {turn}, {size})"
CLOCKS = {"processor": time.process_time, "clock": time.perf_counter}


def add_arguments(parser) -> None:
    parser.add_argument("--pairs", type=int, default=5, help="pairs of processes (default 5)")
    parser.add_argument("--batches", type=int, default=640, help="steps of a loop (default 640)")
    parser.add_argument("--size", type=int, default=128, help="images of a step (default 128)")
    parser.add_argument("--turn", type=int, default=20, help="steps of a turn (default 20)")


def readings() -> list[float]:
    return [read() for read in CLOCKS.values()]


class Turns:
    """Passes batches on, and waits at the end of each turn until it is told to go on.  What each turn took is
    written to an array that is made before the watch: a list would grow in it.
    """

    def __init__(self, steps: int, turns: int):
        self.steps, self.number = steps, 0
        self.took = array.array("d", bytes(8 * len(CLOCKS) * turns))
        self.began = readings()

    def end(self) -> None:
        for now, before in zip(readings(), self.began):
            self.took[self.number] = now - before
            self.number += 1
        print(flush=True)

    def begin(self) -> None:
        sys.stdin.readline()
        self.began = readings()

    def take(self, batches):
        for number, batch in enumerate(batches):
            if number and number % self.steps == 0:
                self.end()
                self.begin()
            yield batch


def child(kind: str, count: int, turn: int, size: int) -> None:
    """Train in turns; the last line that is printed has what they took, by turn and clock, and in what time
    leakprobe was imported.
    """
    from benchmarks import training
    from leakprobe.demo.digits import batches

    net, optimizer = training.prepare()
    training.train(batches(20, size), net, optimizer)
    began = time.process_time()
    import leakprobe.probe

    said = {"imported": time.process_time() - began}
    turns = Turns(turn, turns_of(count, turn))
    turns.begin()
    with leakprobe.watch() if kind == "watch()" else contextlib.nullcontext() as probe:
        paced = turns.take(batches(count, size))
        training.train(probe.steps(paced) if probe else paced, net, optimizer)
    turns.end()
    if probe:
        said |= {"verdict": probe.report().verdict, "looks": probe._readings.engine.spent_s()}
    sys.stdin.readline()
    took = list(turns.took)
    print(json.dumps({"took": [took[i :: len(CLOCKS)] for i in range(len(CLOCKS))]} | said), flush=True)


def turns_of(count: int, turn: int) -> int:
    return -(-count // turn)


def started(kind: str, args) -> subprocess.Popen:
    code = CHILD.format(kind=kind, steps=args.batches, turn=args.turn, size=args.size)
    command = [sys.executable, "-c", code]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True)


def go_on(process: subprocess.Popen) -> str:
    """Let a process take its next turn, and wait for the line that ends it."""
    process.stdin.write("\n")
    process.stdin.flush()
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"a loop ended early with exit code {process.wait()}")
    return line


def pair(args, rng) -> dict:
    """{kind: what its process said} of two processes that took turns."""
    processes = {kind: started(kind, args) for kind in ("plain", "watch()")}
    try:
        for _ in range(turns_of(args.batches, args.turn)):
            for kind in rng.sample(list(processes), len(processes)):
                go_on(processes[kind])
        return {kind: json.loads(go_on(process)) for kind, process in processes.items()}
    finally:
        for process in processes.values():
            process.kill()
            process.communicate()


def ratio(sampled) -> float:
    """Of (watched, plain) seconds of turns."""
    return sum(watched for watched, _ in sampled) / sum(plain for _, plain in sampled)


def summary(both: list) -> dict:
    rng = random.Random(1)
    drawn = sorted(ratio(rng.choices(both, k=len(both))) for _ in range(2000))
    return {"ratio": ratio(both), "low": drawn[50], "high": drawn[-50]}


def run(args) -> dict:
    import torch

    rng, rows = random.Random(0), {}
    found = [pair(args, rng) for _ in range(args.pairs)]
    for i, clock in enumerate(CLOCKS):
        took = [zip(f["watch()"]["took"][i], f["plain"]["took"][i]) for f in found]
        rows[f"watch(), {clock}"] = summary([both for turns in took for both in turns])
    plain = statistics.median(sum(f["plain"]["took"][0]) for f in found)
    facts = {
        "batches": args.batches,
        "pairs": args.pairs,
        "seconds of a plain loop": plain,
        "ms of a plain step": 1000 * plain / args.batches,
        "seconds of the looks": statistics.median(f["watch()"]["looks"] for f in found),
        "seconds of the import": statistics.median(f["watch()"]["imported"] for f in found),
        "verdicts": json.dumps(sorted({f["watch()"]["verdict"] for f in found})),
    }
    machine = pairs.machine() | {"torch": torch.__version__}
    return {"benchmark": "turns", "machine": machine, "rows": rows, "facts": facts}
