"""Says what can be seen on this machine: Python, numpy, torch, CUDA, and each hook with its canary's
result.
"""

import argparse
import json
import sys

from leakprobe import _core
from leakprobe.doctor import Row, examine
from leakprobe.model.bounds import STACK_FRAMES
from leakprobe.model.frames import PACKAGE_DIR
from leakprobe.report.text import print_rows

MARKS = {True: "ok", False: "NO", None: ""}
#: Areas of the rows that read otherwise than they are called in JSON.
AREAS = {"medium": "memory"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")


def run(args: argparse.Namespace) -> int:
    _core.start(STACK_FRAMES, PACKAGE_DIR)
    try:
        rows = examine()
    finally:
        _core.stop()
    if args.json:
        print(json.dumps(rows))
    else:
        cells = [cells_of(row) for row in rows]
        print_rows("what leakprobe sees here", ["area", "name", "value", "", "detail"], cells, sys.stdout)
    return 0


def cells_of(row: Row) -> tuple[str, ...]:
    area = AREAS.get(row["area"], row["area"])
    return area, row["name"], text_of(row["value"]), MARKS[row["ok"]], row["detail"] or ""


def text_of(value: object) -> str:
    return "-" if value is None else "yes" if value is True else "no" if value is False else str(value)
