"""Writes a recording for other programs: Perfetto, PyTorch's memory_viz, a table (CSV), or paths as a graph
(dot).
"""

import sys

from leakprobe.cli import check_writable
from leakprobe.recording import load_merged
from leakprobe.report.exports import FORMATS
from leakprobe.report.files import write_private
from leakprobe.report.memory_viz import to_memory_viz


def add_arguments(parser) -> None:
    parser.add_argument("recordings", nargs="+", metavar="REC")
    parser.add_argument(
        "--format",
        required=True,
        choices=[*FORMATS, "memory_viz"],
        help="memory_viz: a pickle for pytorch.org/memory_viz; to draw what is alive, by the step of its birth",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="default: standard output")


def run(args) -> int:
    path = check_writable("--output", args.output, args.format, args.recordings)
    report = load_merged(args.recordings).report
    data = to_memory_viz(report) if args.format == "memory_viz" else FORMATS[args.format](report).encode()
    if path is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return 0
    write_private(path, data, args.format)
    return 0
