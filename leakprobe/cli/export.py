"""Writes a recording for other programs: what grows as stacks for flame graphs, speedscope and pprof, findings
for code scanning (SARIF) and as annotations of GitHub, marks for Perfetto or as a table (CSV), blocks for
PyTorch's memory_viz, paths as a graph (dot).
"""

import argparse
import sys
from collections.abc import Callable

from leakprobe.cli import add_json, check_writable, print_json
from leakprobe.errors import LeakprobeError
from leakprobe.files import write_private
from leakprobe.model.report import Report
from leakprobe.recording import Recording, load_all, merged
from leakprobe.report.annotations import to_annotations
from leakprobe.report.exports import FORMATS
from leakprobe.report.folded import to_folded
from leakprobe.report.memory_viz import to_memory_viz
from leakprobe.report.pprof import to_pprof
from leakprobe.report.samples import AMOUNTS
from leakprobe.report.sarif import to_sarif
from leakprobe.report.speedscope import to_speedscope

#: What is made of the recordings, each as it is, so that stacks say which one they are of.
OF_EACH: dict[str, Callable[[list[Recording], argparse.Namespace], str | bytes]] = {
    "folded": lambda found, args: to_folded(parts(found), args.amount),
    "speedscope": lambda found, _args: to_speedscope(parts(found)),
    "pprof": lambda found, _args: to_pprof(parts(found)),
}
#: What is made of their merged report.
OF_ALL: dict[str, Callable[[list[Recording], argparse.Namespace], str | bytes]] = {
    "sarif": lambda found, args: to_sarif(merged(found).report, args.root),
    "github": lambda found, args: to_annotations(merged(found).report, args.root),
    "memory_viz": lambda found, _args: to_memory_viz(merged(found).report),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recordings", nargs="+", metavar="REC")
    parser.add_argument(
        "--format",
        required=True,
        choices=[*OF_EACH, *FORMATS, *OF_ALL],
        help="folded: stacks for flame graphs; sarif: code scanning; github: annotations of GitHub Actions; "
        "memory_viz: a pickle for pytorch.org/memory_viz that draws what is alive, by the step of its birth",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="default: standard output")
    parser.add_argument(
        "--amount", choices=list(AMOUNTS), default="growth", help="what folded stacks count (default growth)"
    )
    add_json(parser, "print what was written, as JSON; needs --output")
    parser.add_argument(
        "--root",
        metavar="DIR",
        help="the folder that paths of sarif and github are relative to (default: the current one)",
    )


def run(args: argparse.Namespace) -> int:
    if args.json and not args.output:
        raise LeakprobeError(
            "--json prints what was written, not the export itself: give --output too", "bad_argument"
        )
    path = check_writable("--output", args.output, args.format, args.recordings)
    if path is None and sys.stdout is None:
        raise LeakprobeError("standard output is closed: give --output", "unwritable_file")
    data = made(args.format, load_all(args.recordings), args)
    if path is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return 0
    write_private(path, data, args.format)
    if args.json:
        print_json({"file": path, "format": args.format, "bytes": len(data)})
    return 0


def made(kind: str, found: list[Recording], args: argparse.Namespace) -> bytes:
    """The bytes of the file."""
    make = OF_EACH.get(kind) or OF_ALL.get(kind)
    data = make(found, args) if make is not None else FORMATS[kind](merged(found).report)
    return data.encode() if isinstance(data, str) else data


def parts(found: list[Recording]) -> list[tuple[str, Report]]:
    """Each with the label that its stacks begin with, where there are several."""
    return [(recording.label, recording.report) for recording in found]
