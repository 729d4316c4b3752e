"""Shows the reference cycles of a recording: those that are findings, and those that wait for the
collector.
"""

import argparse
import sys

from leakprobe.recording import load


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recording", metavar="REC")


def run(args: argparse.Namespace) -> int:
    from leakprobe.report.paths import print_cycles

    report = load(args.recording).report
    print_cycles([*report.findings, *report.notes], sys.stdout)
    return 0
