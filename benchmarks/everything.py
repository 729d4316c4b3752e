"""All benchmarks in one run, each in a process of its own, and the targets beside what was reached.

The result is benchmarks/results/all.json; --parts measures some of them again and leaves the others as they
were.
--also runs those about Python's objects under other interpreters too, for which the extension must be built.
"""

import json
import pathlib
import shlex
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).parent
RESULT = HERE / "results" / "all.json"
QUICK = ["--repetitions", "7", "--slow-repetitions", "3", "--size", "30000"]

#: part => (benchmark, arguments, also under the other interpreters)
PARTS = {
    "hooks, depth 10": ("hooks", ["--depth", "10", *QUICK], True),
    "hooks, depth 60": ("hooks", ["--depth", "60", *QUICK], True),
    "recycled": ("recycled", [], True),
    "memory": ("memory", [], True),
    "instructions": ("instructions", [], True),
    "native": ("native", [], False),
    "mallocs": ("mallocs", [], False),
    "training": (
        "training",
        [
            "--batches",
            "640",
            "--only",
            "watch()",
            "tracemalloc(1)",
            "tracemalloc(25)",
            "memray",
            "memray, Python's allocators",
        ],
        False,
    ),
    "training, in turns": ("turns", [], False),
    "training, long": ("turns", ["--batches", "5000", "--pairs", "6"], False),
    "training, steps of more": ("turns", ["--batches", "320", "--size", "640", "--pairs", "6"], False),
    "delays": ("delays", [], False),
    "workers": ("workers", ["--pairs", "6", "--without-parent"], False),
    "workers, long": ("workers", ["--pairs", "4", "--seconds", "30", "--without-parent"], False),
    "marks": ("marks", [], False),
    "graph": ("graph", ["--repetitions", "5"], False),
    "graph, shuffled": ("graph", ["--repetitions", "5", "--heap", "shuffled"], False),
    "graph, rivals": ("graph", ["--units", "6500", "--rivals", "6500"], False),
    "graph, growing": (
        "graph",
        ["--repetitions", "2", "--scaling", "13000", "52000", "210000", "1310000"],
        False,
    ),
    "differences": ("differences", [], False),
}


def add_arguments(parser) -> None:
    parser.add_argument(
        "--also",
        nargs="*",
        default=[],
        metavar="PYTHON",
        help="other interpreters for the parts about Python's objects",
    )
    parser.add_argument(
        "--parts", nargs="*", choices=PARTS, metavar="PART", help=f"only these: {'; '.join(PARTS)}"
    )
    parser.add_argument(
        "--through", default="", metavar="COMMAND", help="what each part is run by, such as 'taskset -c 1'"
    )
    parser.add_argument(
        "--json",
        type=pathlib.Path,
        default=RESULT,
        help="where the result lies (default benchmarks/results/all.json)",
    )


def measure(python: str, name: str, arguments: list, through: str) -> dict:
    """The result of one part, or {"failed": the last line of what it said}."""
    with tempfile.TemporaryDirectory(prefix="leakprobe-bench-") as folder:
        out = pathlib.Path(folder, "result.json")
        command = [*shlex.split(through), python, "-m", "benchmarks", name, *arguments, "--json", str(out)]
        done = subprocess.run(
            command, cwd=HERE.parent, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        if done.returncode or not out.exists():
            return {"failed": (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]}
        return json.loads(out.read_text())


def printed(command: list) -> str:
    """What a command prints; empty where it can't be run."""
    try:
        done = subprocess.run(command, cwd=HERE.parent, capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def version_of(python: str) -> str:
    """The version of an interpreter, which names its results, also those of parts that fail."""
    version = printed([python, "-c", "import platform; print(platform.python_version())"])
    if not version:
        raise SystemExit(f"{python}: cannot be run")
    return version


def run(args) -> int:
    """1 if any part failed: what it measured before is gone then, so that no old figure stands for it."""
    from benchmarks import page

    result = json.loads(args.json.read_text()) if args.parts and args.json.exists() else {"parts": {}}
    versions = {python: version_of(python) for python in [sys.executable, *args.also]}
    commit, has_failed = printed(["git", "describe", "--always", "--dirty"]), False
    for part, (name, arguments, everywhere) in PARTS.items():
        if args.parts and part not in args.parts:
            continue
        for python in versions if everywhere else [sys.executable]:
            began = time.time()
            print(f"{part}, {python}", file=sys.stderr, flush=True)
            made = measure(python, name, arguments, args.through)
            if "failed" in made:
                has_failed = True
                print(f"  failed: {made['failed']}", file=sys.stderr, flush=True)
            made |= {
                "benchmark": name,
                "arguments": arguments,
                "date": time.strftime("%Y-%m-%d", time.gmtime(began)),
                "commit": commit,
                "seconds": round(time.time() - began),
            }
            result["parts"].setdefault(part, {})[versions[python]] = made
            args.json.write_text(json.dumps(result, indent=1) + "\n")
    tables = page.tables(result)
    print(f"{tables['all parts']}\n\n### Targets\n\n{tables['targets']}")
    return int(has_failed)
