"""Compares two recordings, or two snapshots: which findings came, went or changed, and which sites hold
more.
"""

import os
import sys

from leakprobe.errors import LeakprobeError
from leakprobe.recording import load
from leakprobe.report.files import BEGINNING_BYTES, BEGINNINGS, open_regular
from leakprobe.snapshot import Snapshot


def add_arguments(parser) -> None:
    parser.add_argument("older", metavar="A")
    parser.add_argument("newer", metavar="B")
    parser.add_argument(
        "--limit", type=int, default=20, metavar="N", help="rows of sites that are shown (default 20)"
    )


def run(args) -> int:
    if is_snapshot(args.older) and is_snapshot(args.newer):
        Snapshot.load(args.newer).diff(Snapshot.load(args.older)).print(limit=args.limit)
        return 0
    from leakprobe.report.compare import compare, print_comparison

    older, newer = load(args.older).report, load(args.newer).report
    print_comparison(compare(older, newer), sys.stdout, args.limit)
    return 0


def is_snapshot(path) -> bool:
    """True for a file that begins as Snapshot.save() begins one, damaged or not."""
    try:
        descriptor = open_regular(path)
    except (OSError, LeakprobeError):  # said by load()
        return False
    try:
        return bool(BEGINNINGS["snapshot"].match(os.pread(descriptor, BEGINNING_BYTES, 0)))
    finally:
        os.close(descriptor)
