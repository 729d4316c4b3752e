"""Compares two recordings, or two snapshots: which findings came, went or changed, and which sites hold
more.
"""

import argparse
import os
import sys

from leakprobe.cli import add_json, add_redact, check_writable, print_json
from leakprobe.errors import LeakprobeError
from leakprobe.files import BEGINNING_BYTES, BEGINNINGS, open_regular
from leakprobe.model.report import Report
from leakprobe.recording import load_merged
from leakprobe.report.compare import compare, print_comparison
from leakprobe.report.diff_html import write_comparison
from leakprobe.snapshot import Snapshot


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("older", metavar="A")
    parser.add_argument("newer", metavar="B")
    parser.add_argument(
        "--limit", type=int, default=20, metavar="N", help="rows of sites that are shown (default 20)"
    )
    add_json(parser)
    parser.add_argument("--html", metavar="FILE", help="write one self-contained page")
    add_redact(parser)


def run(args: argparse.Namespace) -> int:
    if args.limit < 1:
        raise LeakprobeError(f"--limit must be 1 or more, not {args.limit}", "bad_argument")
    page = check_writable("--html", args.html, "page", [args.older, args.newer])
    if is_snapshot(args.older) and is_snapshot(args.newer):
        diff = Snapshot.load(args.newer).diff(Snapshot.load(args.older))
        if page:
            diff.to_html(page, redact=args.redact)
        if args.json:
            print_json(diff.to_dict())
        else:
            diff.print(limit=args.limit)
        return 0
    found = compare(report_of(args.older), report_of(args.newer))
    if page:
        write_comparison(found, page, redact=args.redact)
    if args.json:
        print_json(found.to_dict())
    else:
        print_comparison(found, sys.stdout, args.limit)
    return 0


def report_of(path: str) -> Report:
    """The report of a recording, or of a folder of them."""
    return load_merged([path]).report


def is_snapshot(path: str) -> bool:
    """True for a file that begins as Snapshot.save() begins one, damaged or not."""
    try:
        descriptor = open_regular(path)
    except (OSError, LeakprobeError):  # said by load()
        return False
    try:
        return bool(BEGINNINGS["snapshot"].match(os.pread(descriptor, BEGINNING_BYTES, 0)))
    finally:
        os.close(descriptor)
