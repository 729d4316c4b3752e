"""A training loop under watch() and under other tools, over the same loop without: a CNN on scikit-learn's
digits.

DataLoader without workers, one thread; malloc keeps what is freed (pairs.keep_freed_memory()).  Every round
runs each mode once, in random order, in one process that is warm; a round's ratio is its time over that of
the plain loop of the same round.  Told is the median of the rounds' ratios with its 95 % interval
(bootstrap over the rounds), for processor time and for the clock.  Scalene can't be switched on inside a
process: it runs in one of its own, beside a plain one, and each times its own loop.

"between the looks": watch() less the looks it took, which have a budget of their own (0.5 s and 1 % of
the run; walks 2 s and 2 %), so that a short loop pays more for them than a long one.
"""

import importlib.util
import json
import os
import pathlib
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc

from benchmarks import hooks, pairs

ROOT = pathlib.Path(__file__).parent.parent
CHILD = "import sys; sys.path.insert(0, {root!r}); from benchmarks import training; training.child({batches})"


def add_arguments(parser) -> None:
    parser.add_argument("--pairs", type=int, default=7, help="rounds (default 7)")
    parser.add_argument("--batches", type=int, default=140, help="steps of a loop (default 140)")
    parser.add_argument("--only", nargs="*", help="modes to run beside plain")


def train(batches, model, optimizer) -> float:
    """The sum of the losses."""
    from torch.nn import functional

    total = 0.0
    for images, labels in batches:
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total


def prepare():
    """(model, optimizer) of a process that trains on one thread."""
    import torch

    from leakprobe.demo.digits import model

    torch.set_num_threads(1)
    pairs.keep_freed_memory()
    net = model()
    return net, torch.optim.SGD(net.parameters(), 0.01)


def loop(kind: str, count: int, net, optimizer) -> dict:
    """Seconds of one loop, of its looks, and what the watch said."""
    import leakprobe
    from leakprobe.demo.digits import batches

    start, stop = TOOLS.get(kind, lambda: (lambda: None, lambda: None))()
    began, began_cpu, looks, verdict = time.perf_counter(), time.process_time(), 0.0, None
    start()
    if kind == "watch()":
        with leakprobe.watch() as probe:
            train(probe.steps(batches(count)), net, optimizer)
        verdict = probe.report().verdict
        looks = probe._readings.engine.spent_s()
    else:
        train(batches(count), net, optimizer)
    stop()
    return {
        "processor": time.process_time() - began_cpu,
        "clock": time.perf_counter() - began,
        "looks": looks,
        "verdict": verdict,
    }


def memray_mode():
    """memray as it is by default: without Python's own allocators."""
    import memray

    folder = tempfile.mkdtemp(prefix="leakprobe-bench-")
    tracker = memray.Tracker(pathlib.Path(folder, "out.bin"))

    def stop():
        tracker.__exit__(None, None, None)
        shutil.rmtree(folder)

    return tracker.__enter__, stop


def memray_python_mode():
    memray = hooks.Memray()
    return memray.start, memray.stop


TOOLS = {
    "tracemalloc(1)": lambda: (lambda: tracemalloc.start(1), tracemalloc.stop),
    "tracemalloc(25)": lambda: (lambda: tracemalloc.start(25), tracemalloc.stop),
    "memray": memray_mode,
    "memray, Python's allocators": memray_python_mode,
}


def modes(only) -> list:
    found = ["watch()", *TOOLS]
    if importlib.util.find_spec("memray") is None:
        found = [m for m in found if "memray" not in m]
    return ["plain", *(m for m in found if only is None or m in only)]


def child(count: int) -> None:
    """Print the processor seconds of a plain loop, warm, and end without what a profiler does at the end."""
    net, optimizer = prepare()
    loop("plain", 20, net, optimizer)
    print("seconds", loop("plain", count, net, optimizer)["processor"], flush=True)
    os._exit(0)


def child_seconds(under: list, count: int) -> float:
    with tempfile.TemporaryDirectory(prefix="leakprobe-bench-") as folder:
        script = pathlib.Path(folder, "train.py")
        script.write_text(CHILD.format(root=str(ROOT), batches=count) + "\n")
        command = [sys.executable, *under, str(script)]
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        try:
            printed, _ = process.communicate(timeout=120)
        finally:
            if process.poll() is None:  # its children too
                os.killpg(process.pid, signal.SIGKILL)
    return float(next(line.split()[1] for line in printed.splitlines() if line.startswith("seconds")))


def scalene_ratios(rounds: int, count: int) -> list:
    under = ["-m", "scalene", "run", "--outfile", os.devnull]
    return [child_seconds(under, count) / child_seconds([], count) for _ in range(rounds)]


def measure(args) -> dict:
    """{mode: [loop(), ...]} of the rounds."""
    net, optimizer = prepare()
    kinds, rng = modes(args.only), random.Random(0)
    for kind in kinds:
        loop(kind, 20, net, optimizer)
    found = {kind: [] for kind in kinds}
    for number in range(args.pairs):
        rng.shuffle(kinds)
        for kind in kinds:
            found[kind].append(loop(kind, args.batches, net, optimizer))
        print(
            f"round {number + 1}",
            {k: round(v[-1]["processor"], 2) for k, v in found.items()},
            file=sys.stderr,
            flush=True,
        )
    return found


def run(args) -> dict:
    import torch

    found = measure(args)
    plain, rows = found.pop("plain"), {}
    for kind, loops in found.items():
        for clock in ("processor", "clock"):
            rows[f"{kind}, {clock}"] = pairs.summary([a[clock] / b[clock] for a, b in zip(loops, plain)])
        if kind == "watch()":
            rows["watch() between the looks, processor"] = pairs.summary(
                [(a["processor"] - a["looks"]) / b["processor"] for a, b in zip(loops, plain)]
            )
    failed = None
    if importlib.util.find_spec("scalene") and (args.only is None or "scalene" in args.only):
        try:
            rows["Scalene, processor"] = pairs.summary(scalene_ratios(min(3, args.pairs), args.batches))
        except (subprocess.SubprocessError, StopIteration) as error:
            failed = f"Scalene: {type(error).__name__}"
    facts = {
        "batches": args.batches,
        "pairs": args.pairs,
        "seconds of a plain loop": statistics.median(p["processor"] for p in plain),
    }
    if failed:
        facts["failed"] = failed
    if "watch()" in found:
        facts["seconds of the looks"] = statistics.median(w["looks"] for w in found["watch()"])
        facts["verdicts"] = json.dumps(sorted({w["verdict"] for w in found["watch()"]}))
    return {
        "benchmark": "training",
        "machine": pairs.machine() | {"torch": torch.__version__},
        "rows": rows,
        "facts": facts,
    }
