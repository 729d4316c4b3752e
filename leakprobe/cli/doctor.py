"""Says what can be seen on this machine: Python, numpy, torch, CUDA, and each hook with its canary's
result.
"""

import argparse
import json
import sys

from leakprobe.report.text import print_rows

MARKS = {True: "ok", False: "NO", None: ""}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")


def run(args: argparse.Namespace) -> int:
    from leakprobe import _core
    from leakprobe.doctor import examine
    from leakprobe.model.frames import PACKAGE_DIR

    _core.start(16, PACKAGE_DIR)
    try:
        rows = examine()
    finally:
        _core.stop()
    if args.json:
        print(json.dumps(rows))
    else:
        cells = [(r["area"], r["name"], text_of(r["value"]), MARKS[r["ok"]], r["detail"] or "") for r in rows]
        print_rows("what leakprobe sees here", ["area", "name", "value", "", "detail"], cells, sys.stdout)
    return 0


def text_of(value: object) -> str:
    return "-" if value is None else "yes" if value is True else "no" if value is False else str(value)
