"""Shows the reference cycles of a recording: those that are findings, and those that wait for the
collector.
"""

import argparse
import sys

from leakprobe.cli import add_json, print_json
from leakprobe.model.finding import Finding, Note
from leakprobe.recording import load_merged
from leakprobe.report.paths import print_cycles


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recording", metavar="REC", help="a recording, or a folder of them")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    report = load_merged([args.recording]).report
    items: list[Finding | Note] = [*report.findings, *report.notes]
    if args.json:
        print_json([item.to_dict() for item in items if item.cycle])
    else:
        print_cycles(items, sys.stdout)
    return 0
