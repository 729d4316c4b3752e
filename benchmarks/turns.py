"""A training loop under watch() over the same loop without, in two processes that take turns.

The loop is that of the benchmark "training"; each process trains a network of its own and goes on for so many
steps (``--turn``) while the other waits, so that whatever the machine does meets both alike.  Two plain
processes differ by 3 to 5 % for as long as they live, as their memory lies elsewhere, so both first make
``--before`` steps without watch(): a pair's ratio is that of the watched process to the plain one, over that
of the same two before.  Reported is the geometric mean of the pairs, with its 95 % interval (bootstrap over
pairs, and over the turns of each); starting the watch and what it does at the end are in its first and last
turn, and importing leakprobe, which is reported beside, in none.  ``--control`` watches neither process: what
it shows is the error of the method.
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
CHILD = "from benchmarks import turns; turns.child({kind!r}, {before}, {steps}, {turn}, {size})"
WATCHED, PLAIN = "watch()", "plain"
CLOCKS = {"processor": time.process_time, "clock": time.perf_counter}


def add_arguments(parser) -> None:
    parser.add_argument("--pairs", type=int, default=5, help="pairs of processes (default 5)")
    parser.add_argument("--batches", type=int, default=640, help="steps of a loop (default 640)")
    parser.add_argument("--size", type=int, default=128, help="images of a step (default 128)")
    parser.add_argument("--turn", type=int, default=20, help="steps of a turn (default 20)")
    parser.add_argument("--before", type=int, default=400, help="plain steps of both before (default 400)")
    parser.add_argument("--control", action="store_true", help="watch neither process")


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

    def by_clock(self) -> list[list[float]]:
        took = list(self.took)
        return [took[i :: len(CLOCKS)] for i in range(len(CLOCKS))]

    def take(self, batches):
        for number, batch in enumerate(batches):
            if number and number % self.steps == 0:
                self.end()
                self.begin()
            yield batch


def child(kind: str, before: int, count: int, turn: int, size: int) -> None:
    """Train in turns, first without a watch; the last line that is printed has what the turns took, by loop,
    clock and turn, and in what time leakprobe was imported.
    """
    from benchmarks import training
    from leakprobe.demo.digits import batches

    net, optimizer = training.prepare()
    training.train(batches(20, size), net, optimizer)
    began = time.process_time()
    import leakprobe.probe

    said = {"imported": time.process_time() - began}
    earlier, turns = Turns(turn, turns_of(before, turn)), Turns(turn, turns_of(count, turn))
    earlier.begin()
    training.train(earlier.take(batches(before, size)), net, optimizer)
    earlier.end()
    turns.begin()
    with leakprobe.watch() if kind == WATCHED else contextlib.nullcontext() as probe:
        paced = turns.take(batches(count, size))
        training.train(probe.steps(paced) if probe else paced, net, optimizer)
    turns.end()
    if probe:
        said |= {"verdict": probe.report().verdict, "looks": probe._readings.engine.spent_s()}
    sys.stdin.readline()
    print(json.dumps({"before": earlier.by_clock(), "took": turns.by_clock()} | said), flush=True)


def turns_of(count: int, turn: int) -> int:
    return -(-count // turn)


def started(kind: str, args) -> subprocess.Popen:
    code = CHILD.format(kind=kind, before=args.before, steps=args.batches, turn=args.turn, size=args.size)
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


def pair(args, rng) -> tuple[dict, dict]:
    """What the watched process and the plain one said, after they took turns."""
    processes = [started(PLAIN if args.control else WATCHED, args), started(PLAIN, args)]
    try:
        for _ in range(turns_of(args.before, args.turn) + turns_of(args.batches, args.turn)):
            for process in rng.sample(processes, len(processes)):
                go_on(process)
        watched, plain = (json.loads(go_on(process)) for process in processes)
        return watched, plain
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def ratio(turns) -> float:
    """Of (watched, plain) seconds of turns."""
    return sum(watched for watched, _ in turns) / sum(plain for _, plain in turns)


def summary(found: list, clock: int) -> dict:
    """Of pairs of processes, by the clock of that number."""
    loops = [[list(zip(w[part][clock], p[part][clock])) for part in ("took", "before")] for w, p in found]
    rng = random.Random(1)

    def drawn() -> float:
        sampled = [
            [rng.choices(turns, k=len(turns)) for turns in both] for both in rng.choices(loops, k=len(loops))
        ]
        return over_before(sampled)

    means = sorted(drawn() for _ in range(2000))
    return {"ratio": over_before(loops), "low": means[50], "high": means[-50]}


def over_before(loops) -> float:
    """The geometric mean of the pairs' ratios, each over that of its plain loops."""
    return pairs.geometric_mean([ratio(took) / ratio(before) for took, before in loops])


def run(args) -> dict:
    import torch

    rng = random.Random(0)
    found = [pair(args, rng) for _ in range(args.pairs)]
    rows = {f"watch(), {clock}": summary(found, i) for i, clock in enumerate(CLOCKS)}
    seconds = statistics.median(sum(plain["took"][0]) for _, plain in found)
    facts = {
        "batches": args.batches,
        "pairs": args.pairs,
        "seconds of a plain loop": seconds,
        "ms of a plain step": 1000 * seconds / args.batches,
        "seconds of the looks": statistics.median(watched.get("looks", 0.0) for watched, _ in found),
        "seconds of the import": statistics.median(watched["imported"] for watched, _ in found),
        "verdicts": json.dumps(sorted({watched.get("verdict", "none") for watched, _ in found})),
        "of the pairs": json.dumps([round(summary([both], 0)["ratio"], 3) for both in found]),
    }
    machine = pairs.machine() | {"torch": torch.__version__}
    return {"benchmark": "turns", "machine": machine, "rows": rows, "facts": facts}
