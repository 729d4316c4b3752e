"""Instructions that the object hook adds to one created object, counted by callgrind.

Each figure is the difference of two runs of a fresh interpreter that create different numbers of
objects, so that start-up cancels out.  Run:  python -m benchmarks instructions
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from benchmarks import pairs

LOOPS = {
    "tuple": "(i, k)",
    "list": "[i]",
    "dict": "{k: i}",
    "float": "i * 0.5",
    "instance": "Plain()",
}
CODE = """
import sys
class Plain: pass
{start}
def loop(n):
    k = None
    kept = [None] * 64
    for i in range(n):
        kept[i & 63] = {expression}
loop({count})
"""
START = "from leakprobe import _core; _core.start(16, '/nowhere/')"
FEW, MANY = 2_000, 22_000


def instructions(start: str, expression: str, count: int) -> int:
    """Instructions of one interpreter run."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "out")
        code = CODE.format(start=start, expression=expression, count=count)
        command = [
            "valgrind",
            "--tool=callgrind",
            f"--callgrind-out-file={out}",
            sys.executable,
            "-S",
            "-c",
            code,
        ]
        if start:
            command = [c for c in command if c != "-S"]
        done = subprocess.run(command, capture_output=True, text=True, env=environment())
        found = re.search(r"Collected : (\d+)", done.stderr)
        if found is None:
            raise SystemExit(f"callgrind failed: {done.stderr[-500:]}")
        return int(found.group(1))


def environment() -> dict:
    """Python's own allocator and a fixed hash seed, so that runs repeat."""
    import os

    return {**os.environ, "PYTHONMALLOC": "pymalloc", "PYTHONHASHSEED": "0"}


def per_object(start: str, expression: str) -> float:
    few = instructions(start, expression, FEW)
    return (instructions(start, expression, MANY) - few) / (MANY - FEW)


def run(args) -> dict:
    if shutil.which("valgrind") is None:
        raise SystemExit("valgrind is not installed: apt install valgrind")
    rows = {}
    for name, expression in LOOPS.items():
        plain, hooked = per_object("", expression), per_object(START, expression)
        rows[name] = {
            "plain": round(plain, 1),
            "leakprobe": round(hooked, 1),
            "added": round(hooked - plain, 1),
        }
        print(name, rows[name], file=sys.stderr)
    return {
        "benchmark": "instructions",
        "unit": "instructions per loop turn",
        "machine": pairs.machine(),
        "rows": rows,
        "geometric_mean": {},
    }


def add_arguments(parser) -> None:
    del parser
