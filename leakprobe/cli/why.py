"""Shows in full who keeps what a finding of a recording names: every step of the path, and the stack."""

import argparse
import sys
from collections.abc import Sequence

from leakprobe.cli import add_json, print_json
from leakprobe.errors import LeakprobeError
from leakprobe.model.finding import Finding
from leakprobe.recording import load_merged
from leakprobe.report.paths import print_path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recording", metavar="REC", help="a recording, or a folder of them")
    add_json(parser)
    parser.add_argument(
        "finding",
        metavar="FINDING",
        nargs="?",
        default="1",
        help="its number, or the beginning of its fingerprint (default 1)",
    )


def run(args: argparse.Namespace) -> int:
    report = load_merged([args.recording]).report
    number, finding = pick(report.findings, args.finding)
    if args.json:
        print_json(finding.to_dict())
        return 0
    print_path(number, finding, report, sys.stdout)
    return 0


def pick(findings: Sequence[Finding], wanted: str) -> tuple[int, Finding]:
    """(number, Finding) of a number from 1 or the beginning of a fingerprint."""
    if not findings:
        raise LeakprobeError("this recording has no findings", "no_finding")
    numbered = list(enumerate(findings, 1))
    found = [item for item in numbered if str(item[0]) == wanted] or [
        item for item in numbered if item[1].fingerprint.startswith(wanted)
    ]
    if len(found) != 1:
        known = ", ".join(f"{number} ({f.fingerprint})" for number, f in numbered[:20])
        raise LeakprobeError(
            f"{'no' if not found else 'more than one'} finding {wanted}; this recording has {known}",
            "no_finding",
        )
    return found[0]
