"""Shows what recordings hold, also while they are written or after their process was killed; several merge
into one.
"""

import argparse

from leakprobe.cli import EXIT_CODES, add_redact, add_verbose, check_distinct, check_writable, tell
from leakprobe.cli.follower import Follower
from leakprobe.cli.serve import Pages, Server
from leakprobe.errors import LeakprobeError
from leakprobe.judge.suppressions import Rule, load_rules, suppress
from leakprobe.recording import load_merged
from leakprobe.report.annotations import to_annotations
from leakprobe.report.clean import clean
from leakprobe.report.html import check_packages


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "recordings",
        nargs="+",
        metavar="REC",
        help="a recording, a report in JSON, a folder of recordings, or a recorded test's id or node id",
    )
    parser.add_argument("--html", metavar="FILE", help="write one self-contained page")
    parser.add_argument("--json", metavar="FILE", help="write the report as JSON")
    parser.add_argument(
        "--suppressions", metavar="FILE", help="rules for known growth (docs/suppressions.md)"
    )
    parser.add_argument(
        "--annotate", action="store_true", help="print an annotation of GitHub Actions for each finding"
    )
    add_verbose(parser)
    add_redact(parser)
    parser.add_argument("--no-source", action="store_true", help="leave lines of source code out of the page")
    parser.add_argument(
        "--serve",
        nargs="?",
        type=port,
        const=0,
        metavar="PORT",
        help="show the page on this machine's loopback address, and follow runs in progress; without PORT a "
        "free port is chosen; write it after the recordings; Ctrl-C ends it",
    )


def port(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no port (put --serve behind the recordings)") from None


def run(args: argparse.Namespace) -> int:
    page = check_writable("--html", args.html, "page", args.recordings)
    data = check_writable("--json", args.json, "report", args.recordings)
    check_distinct({"--html": page, "--json": data})
    rules = load_rules(args.suppressions) if args.suppressions else []
    if args.serve is not None:
        return serve(args, rules)
    report = suppress(load_merged(args.recordings).report, rules)
    if page:
        report.to_html(page, redact=args.redact, source=not args.no_source)
    if data:
        report.to_json(data)
    report.print(verbose=args.verbose)
    if args.annotate:
        print(to_annotations(report), end="")
    return EXIT_CODES[report.verdict]


def serve(args: argparse.Namespace, rules: list[Rule]) -> int:
    """Until Ctrl-C; the exit code is that of the last report."""
    if args.html or args.json:
        raise LeakprobeError("--serve writes no file: leave out --html and --json", "bad_argument")
    check_packages()
    follower = Follower(args.recordings)
    pages = Pages(follower, lambda report: suppress(report, rules), args.redact, not args.no_source)
    follower.poll()
    follower.check()
    with Server(pages, args.serve) as server:
        tell(f"leakprobe: {clean(follower.describe())}")
        tell(f"leakprobe: {server.url}  (Ctrl-C ends it)")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            tell("")
    if follower.recording is None:
        return EXIT_CODES["inconclusive"]
    return EXIT_CODES[suppress(follower.recording.report, rules).verdict]
