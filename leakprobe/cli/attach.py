"""Watches the next steps of a process that is already running, and shows what grows.  Both processes need
CPython 3.14 or later.

A step is an optimizer step of the process, else a batch of a DataLoader.  The watch ends by itself; the
modules that it imported stay loaded.
"""

import argparse
import os
import sys
import tempfile
import time

from leakprobe.attached import attach, check_version
from leakprobe.cli import EXIT_CODES, add_verbose, check_writable
from leakprobe.cli.live_line import line_of_report
from leakprobe.errors import LeakprobeError
from leakprobe.model.report import Report
from leakprobe.recording import load


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pid", type=int, metavar="PID")
    parser.add_argument(
        "--steps", type=int, default=100, metavar="N", help="measured steps, after the warm-up (default 100)"
    )
    parser.add_argument(
        "--warmup", type=int, default=5, metavar="N", help="steps that are not judged (default 5)"
    )
    parser.add_argument(
        "--limit",
        default="256 B/step",
        metavar="RATE",
        help='what a finding must exceed (default "256 B/step")',
    )
    add_verbose(parser)
    parser.add_argument("--json", metavar="FILE", help="write the report as JSON too")
    parser.add_argument("-o", "--record", metavar="REC", help="keep the recording")


def run(args: argparse.Namespace) -> int:
    check_version()
    if args.steps < 1:
        raise LeakprobeError(f"--steps must be 1 or more, not {args.steps}", "bad_argument")
    kept = check_writable("--record", args.record)
    data = check_writable("--json", args.json)
    with tempfile.TemporaryDirectory(prefix="leakprobe-") as folder:
        record = kept or os.path.join(folder, "attached.leak")
        attach(args.pid, record, steps=args.warmup + args.steps, warmup=args.warmup, limit=args.limit)
        report = follow(record)
    report.print(verbose=args.verbose)
    if data:
        report.to_json(data)
    return EXIT_CODES[report.verdict]


def follow(record: str) -> Report:
    """The report, once the watch has ended; Ctrl-C shows what there is."""
    terminal = sys.stderr is not None and sys.stderr.isatty()
    try:
        while True:
            found = load(record)
            if terminal:
                print(f"\r\x1b[2K{line_of_report(found.report)}", end="", file=sys.stderr, flush=True)
            if found.state != "running":
                break
            time.sleep(0.5)
    except KeyboardInterrupt:
        found = load(record)
    if terminal:
        print("\r\x1b[2K", end="", file=sys.stderr, flush=True)
    return found.report
