"""Cost of the object hook: time of allocation-heavy loops under each mode over plain time.

Rows: workloads; columns: an empty hook (the floor), leakprobe, on versions before 3.13 leakprobe with
CPython's free lists kept in use ("kept"), a hash-table hook, tracemalloc(1) and (25), and memray with
Python's allocators where it is installed.  Run from the repository:  python -m benchmarks hooks [--depth 10]
"""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tracemalloc

from benchmarks import pairs, workloads

HERE = pathlib.Path(__file__).parent
SLOW = ["tracemalloc(1)", "tracemalloc(25)", "memray"]


def build_floor():
    """Compile and import the extension with the empty hook and the hash-table hook."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="leakprobe-bench-"))
    target = folder / ("floor" + sysconfig.get_config_var("EXT_SUFFIX"))
    compiler = (sysconfig.get_config_var("CC") or "cc").split()
    include = sysconfig.get_path("include")
    source = HERE / "baselines" / "floor.c"
    subprocess.run(
        [*compiler, "-O3", "-shared", "-fPIC", f"-I{include}", str(source), "-o", str(target)], check=True
    )
    spec = importlib.util.spec_from_file_location("floor", target)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    shutil.rmtree(folder)
    return module


class Memray:
    """memray with Python's allocators, recording into a file that goes when it stops."""

    def start(self):
        import memray

        self.folder = tempfile.mkdtemp(prefix="leakprobe-bench-")
        self.tracker = memray.Tracker(pathlib.Path(self.folder, "out.bin"), trace_python_allocators=True)
        self.tracker.__enter__()

    def stop(self):
        self.tracker.__exit__(None, None, None)
        shutil.rmtree(self.folder)


def start_with_free_lists():
    """leakprobe as it would run before a suspect shows up, if that were what closes the free lists."""
    from leakprobe import _core
    from leakprobe.model.frames import PACKAGE_DIR

    os.environ["LEAKPROBE_FREE_LISTS"] = "kept"
    try:
        _core.start(16, PACKAGE_DIR)
    finally:
        del os.environ["LEAKPROBE_FREE_LISTS"]


def modes(only=None):
    """{name: (start, stop)} of the modes that are at hand here."""
    from leakprobe import _core
    from leakprobe.model.frames import PACKAGE_DIR

    floor = build_floor()
    nothing = lambda: None
    memray = Memray()
    found = {
        "plain": (nothing, nothing),
        "empty": (floor.start_empty, floor.stop),
        "leakprobe": (lambda: _core.start(16, PACKAGE_DIR), _core.stop),
        "kept": (start_with_free_lists, _core.stop),
        "table": (floor.start_table, floor.stop),
        "tracemalloc(1)": (lambda: tracemalloc.start(1), tracemalloc.stop),
        "tracemalloc(25)": (lambda: tracemalloc.start(25), tracemalloc.stop),
        "memray": (memray.start, memray.stop),
    }
    if sys.version_info >= (3, 13):
        del found["kept"]  # no free list to close: creation events see all
    if importlib.util.find_spec("memray") is None:
        del found["memray"]
    return {name: pair for name, pair in found.items() if only is None or name in only}


def measure(args) -> dict:
    """{workload: {mode: ratio to plain}} and the noise of plain."""
    chosen = modes(None if args.only is None else ["plain", *args.only])
    fewer = dict.fromkeys(SLOW, args.slow_repetitions)
    rows = {}
    for work in workloads.ALL:
        at_depth = lambda work=work: pairs.at_depth(args.depth, pairs.timed, work, args.size)
        times = pairs.interleave(chosen, at_depth, args.repetitions, seed=len(rows), fewer=fewer)
        rows[work.__name__] = {m: round(pairs.ratio(times, m, "plain"), 3) for m in chosen if m != "plain"}
        rows[work.__name__]["noise of plain"] = round(pairs.spread(times["plain"]), 3)
        print(
            f"{work.__name__:12}",
            " ".join(f"{m}={r:.2f}" for m, r in rows[work.__name__].items()),
            file=sys.stderr,
        )
    return rows


def run(args) -> dict:
    rows = measure(args)
    names = [m for m in next(iter(rows.values())) if m != "noise of plain"]
    means = {m: round(pairs.geometric_mean([row[m] for row in rows.values()]), 3) for m in names}
    return {
        "benchmark": "hooks",
        "depth": args.depth,
        "machine": pairs.machine(),
        "rows": rows,
        "geometric_mean": means,
    }


def add_arguments(parser) -> None:
    parser.add_argument("--depth", type=int, default=10, help="frames on the stack (default 10)")
    parser.add_argument("--repetitions", type=int, default=15)
    parser.add_argument(
        "--slow-repetitions", type=int, default=3, help="of tracemalloc and memray (default 3)"
    )
    parser.add_argument("--size", type=int, default=100_000, help="objects per loop")
    parser.add_argument("--only", nargs="*", help="modes to run beside plain")
