"""Compares two recordings, or two snapshots: which findings came, went or changed, and which sites hold more."""

import sys

from leakprobe.errors import LeakprobeError
from leakprobe.recording import load
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
    try:
        Snapshot.load(path)
    except LeakprobeError:
        return False
    return True
