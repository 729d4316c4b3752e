"""Writes a recording for other programs: a trace for Perfetto, a table (CSV), or paths as a graph (Graphviz dot)."""

import os
import sys

from leakprobe.cli import check_writable
from leakprobe.errors import LeakprobeError
from leakprobe.recording import load_merged
from leakprobe.report.exports import FORMATS


def add_arguments(parser) -> None:
    parser.add_argument("recordings", nargs="+", metavar="REC")
    parser.add_argument("--format", required=True, choices=[*FORMATS, "memory_viz"], help="memory_viz comes with CUDA support")
    parser.add_argument("-o", "--output", metavar="FILE", help="default: standard output")


def run(args) -> int:
    if args.format == "memory_viz":
        raise LeakprobeError("memory_viz is for CUDA memory, which this version does not follow; use perfetto, csv or dot", "not_available")
    path = check_writable("--output", args.output)
    text = FORMATS[args.format](load_merged(args.recordings).report)
    if path is None:
        sys.stdout.write(text)
        return 0
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    return 0
