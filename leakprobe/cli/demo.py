"""Trains a small CNN on scikit-learn's digits through a DataLoader, with a known leak, and shows the
report.
"""

import argparse
import importlib
import importlib.util
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from leakprobe import switch
from leakprobe.cli import EXIT_CODES, add_verbose, tell
from leakprobe.errors import LeakprobeError
from leakprobe.probe import Probe, watch
from leakprobe.watch.marking import marked_by_caller

#: name => module of leakprobe.demo
VARIANTS = {"kept-loss": "kept_loss", "numpy-view": "numpy_view", "clean": "clean"}
STEPS, WARMUP = 60, 5
#: Module => the package that has it.
PACKAGES = {"torch": "torch", "numpy": "numpy", "sklearn": "scikit-learn"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name", nargs="?", default="kept-loss", choices=VARIANTS, help="which loop (default kept-loss)"
    )
    add_verbose(parser)
    parser.add_argument("--json", metavar="FILE", help="write the report as JSON too")


def run(args: argparse.Namespace) -> int:
    missing = [package for name, package in PACKAGES.items() if not importlib.util.find_spec(name)]
    if missing:
        raise LeakprobeError(
            f"the demo needs {', '.join(missing)}: python3 -m pip install {' '.join(missing)}",
            "missing_package",
        )
    module = importlib.import_module(f"leakprobe.demo.{VARIANTS[args.name]}")
    print(f"leakprobe demo {args.name}: {(module.__doc__ or '').partition(chr(10))[0]}")
    with marked_by_caller(watch(warmup=WARMUP)) as probe:
        module.train(progress(probe, module.batches(STEPS + WARMUP)))
    off = switch.disabled_line()
    if off is not None:
        tell(off)
        return 0
    report = probe.report()
    print()
    report.print(verbose=args.verbose)
    if args.json:
        report.to_json(args.json)
    return EXIT_CODES[report.verdict]


def progress(probe: Probe, batches: Iterable[Any]) -> Iterator[Any]:
    """The batches as steps of the probe, with one live line on a terminal."""
    terminal = sys.stderr is not None and sys.stderr.isatty()
    for number, batch in enumerate(probe.steps(batches), 1):
        yield batch
        if terminal and (number % 5 == 0 or number == STEPS + WARMUP):
            print(
                f"\rstep {number} of {STEPS + WARMUP}",
                end="\n" if number == STEPS + WARMUP else "",
                file=sys.stderr,
                flush=True,
            )
