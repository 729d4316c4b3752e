"""Cost of the object graph on a mixed heap, over one gc.collect() of the same heap, interleaved.

Rows: what is asked; columns: time over gc.collect() (minimum over minimum), the same for the medians, and ns
a node.
--units 105000 makes 1.6 million objects; --heap shuffled lays them out in random order.
--scaling measures rising sizes, each in a process of its own, with
the peak of memory; --rivals other tools on a heap they bear.  Run from the repository:  python -m benchmarks
graph
"""

import gc
import json
import random
import statistics
import subprocess
import sys
import time

from benchmarks import heaps, pairs

RIVALS = {
    "guppy3 heap()": "import guppy; h = guppy.hpy(); call = lambda: h.heap()",
    "guppy3 heap(), by type": "import guppy; h = guppy.hpy(); call = lambda: h.heap().bytype.size",
    "objgraph growth()": "import objgraph; call = lambda: objgraph.growth(shortnames=False)",
    "pympler muppy, summary": "from pympler import muppy, summary; call = lambda: summary.summarize(muppy.get_objects())",
    "refcycle objects_reachable_from": "import refcycle; call = lambda: refcycle.objects_reachable_from(kept)",
    "refcycle snapshot()": "import refcycle; call = lambda: refcycle.snapshot()",
}


def add_arguments(command) -> None:
    command.add_argument("--units", type=int, default=105_000, help="16 objects each")
    command.add_argument(
        "--heap", choices=list(heaps.HEAPS), default="in order", help="how objects lie in memory"
    )
    command.add_argument("--reach", type=int, default=1000, help="how many units back a unit may refer")
    command.add_argument("--repetitions", type=int, default=7)
    command.add_argument(
        "--rivals", type=int, metavar="UNITS", help="other tools too, on a heap of so many units"
    )
    command.add_argument(
        "--scaling", type=int, nargs="+", metavar="UNITS", help="instead: these sizes, with peak memory"
    )


def modes(some):
    import leakprobe
    from leakprobe import _core

    return {
        "gc.collect()": gc.collect,
        "graph with types and sizes": lambda: _core.graph_take(True, 0, False),
        "find_cycles()": leakprobe.find_cycles,
        "why()": lambda: leakprobe.why(some, 1),
        "retained_size()": lambda: leakprobe.retained_size(some),
        "snapshot graph: dominators, all retained sizes, cycles, names": lambda: _core.graph_take(True, 0),
        "snapshot(graph=True), as called": lambda: leakprobe.snapshot(graph=True),
    }


def timed(call) -> float:
    began = time.thread_time()
    result = call()
    seconds = time.thread_time() - began
    del result
    return seconds


def measure(calls, repetitions, seed=0):
    rng, times = random.Random(seed), {name: [] for name in calls}
    for repetition in range(repetitions + 1):
        names = list(calls)
        rng.shuffle(names)
        for name in names:
            seconds = timed(calls[name])
            if repetition:  # the first time maps memory
                times[name].append(seconds)
    return times


def rows_of(times, nodes):
    base = times["gc.collect()"]
    rows = {}
    for name, seconds in times.items():
        rows[name] = {
            "over gc.collect()": min(seconds) / min(base),
            "of medians": statistics.median(seconds) / statistics.median(base),
            "spread": pairs.spread(seconds),
            "ns/node": min(seconds) / nodes * 1e9,
        }
    return rows


def status(key) -> int:
    """A line of /proc/self/status in bytes."""
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(key))


def peak_of(call) -> int:
    """Bytes that the resident set rises by while call() runs."""
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")
    before = status("VmRSS")
    result = call()
    del result
    return status("VmHWM") - before


def on_heap(units, reach, repetitions, with_garbage=True, heap="in order"):
    """(rows, facts) of one heap in this process."""
    from leakprobe import _core

    gc.disable()
    kept = heaps.HEAPS[heap](units, reach)
    gc.collect()
    bare = peak_of(lambda: _core.graph_take(True, 0, False))
    info = _core.graph_take(True, 0, False)[0].info()
    peak = peak_of(lambda: _core.graph_take(True, 0))
    full = _core.graph_take(True, 0)[0].info()
    facts = {
        "nodes": info["nodes"],
        "edges": info["edges"],
        "tracked": len(gc.get_objects()),
        "bytes/node, types and sizes": info["bytes"] / info["nodes"],
        "bytes/node, with dominators": full["bytes"] / info["nodes"],
        "peak bytes/node, types and sizes": bare / info["nodes"],
        "peak bytes/node, with dominators": peak / info["nodes"],
    }
    times = measure(modes(kept[units // 2]), repetitions)
    if with_garbage:
        heaps.garbage(20_000)
        name = "find_cycles(), 20,000 cycles of garbage"
        times[name] = [timed(_core.find_cycles) for _ in range(max(repetitions // 2, 1))]
    gc.enable()
    return rows_of(times, info["nodes"]), facts


CHILD = "import json, sys; from benchmarks import graph; print(json.dumps(graph.{call}))"


def in_child(call):
    done = subprocess.run(
        [sys.executable, "-c", CHILD.format(call=call)], capture_output=True, text=True, check=False
    )
    return (
        json.loads(done.stdout.splitlines()[-1])
        if done.returncode == 0
        else done.stderr.strip().splitlines()[-1:]
    )


def rival(name, units, reach):
    """The tool over gc.collect(), interleaved, the least of three over the least of three."""
    kept = heaps.mixed(units, reach)
    scope = {"kept": kept}
    exec(RIVALS[name], scope)
    gc.collect()
    times = measure({"gc.collect()": gc.collect, name: scope["call"]}, 3)
    return {"over gc.collect()": min(times[name]) / min(times["gc.collect()"])}


def ours(units, reach):
    rows, _ = on_heap(units, reach, 5, False)
    return rows


def run(args) -> dict:
    result = {
        "benchmark": "graph",
        "machine": pairs.machine(),
        "reach": args.reach,
        "heap": args.heap,
        "rows": {},
        "facts": {},
    }
    if args.scaling:
        for units in args.scaling:
            made = in_child(f"on_heap({units}, {args.reach}, {args.repetitions}, False, {args.heap!r})")
            if len(made) < 2:
                raise SystemExit(f"{units} units: {made}")
            rows, facts = made
            short = {name.split(",")[0]: row["ns/node"] for name, row in rows.items()}
            result["rows"][f"{facts['nodes']:,} nodes"] = {
                **{f"{n}, ns/node": v for n, v in short.items()},
                **{k: v for k, v in facts.items() if "node" in k and k != "nodes"},
            }
            result["facts"][str(units)] = facts
        return result
    result["rows"], result["facts"] = on_heap(args.units, args.reach, args.repetitions, heap=args.heap)
    if args.rivals:
        small = in_child(f"ours({args.rivals}, {args.reach})")
        result["rivals"] = {
            f"leakprobe {name}": {"over gc.collect()": row["over gc.collect()"]}
            for name, row in small.items()
            if name != "gc.collect()"
        }
        for name in RIVALS:
            result["rivals"][name] = in_child(f"rival({name!r}, {args.rivals}, {args.reach})")
    return result


def table(result) -> str:
    """Markdown."""
    columns = list(next(iter(result["rows"].values())))
    lines = ["| | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for name, row in result["rows"].items():
        lines.append(
            f"| {name} | "
            + " | ".join(
                f"{row.get(c, float('nan')):.3g}" if row.get(c, 0) < 100 else f"{row[c]:.0f}" for c in columns
            )
            + " |"
        )
    if "rivals" in result:
        lines += ["", "| tool, on the smaller heap | over gc.collect() |", "|---|---|"]
        for name, row in result["rivals"].items():
            lines.append(
                f"| {name} | {row['over gc.collect()']:.3g} |"
                if isinstance(row, dict)
                else f"| {name} | failed: {row} |"
            )
    if "nodes" in result["facts"]:
        lines += [
            "",
            ", ".join(
                f"{name} {value:,.1f}".replace(".0,", ",").removesuffix(".0")
                for name, value in result["facts"].items()
            ),
        ]
    return "\n".join(lines)
