"""Shows what recordings hold, also while they are written or after their process was killed; several merge
into one.
"""

from leakprobe.cli import EXIT_CODES, check_distinct, check_writable
from leakprobe.judge.suppressions import load_rules, suppress
from leakprobe.recording import load_merged
from leakprobe.report.annotations import to_annotations


def add_arguments(parser) -> None:
    parser.add_argument(
        "recordings",
        nargs="+",
        metavar="REC",
        help="a recording, a report in JSON, a folder of recordings, or a recorded test's id or node id",
    )
    parser.add_argument("--html", metavar="FILE", help="write one self-contained page")
    parser.add_argument("--json", metavar="FILE", help="write the report as JSON")
    parser.add_argument(
        "--suppressions", metavar="FILE", help="rules for growth that is known (docs/suppressions.md)"
    )
    parser.add_argument(
        "--annotate", action="store_true", help="print an annotation of GitHub Actions for each finding"
    )
    parser.add_argument(
        "--redact", action="store_true", help="leave names of folders and of the program out of the page"
    )
    parser.add_argument("--no-source", action="store_true", help="leave lines of source code out of the page")


def run(args) -> int:
    page = check_writable("--html", args.html, "page", args.recordings)
    data = check_writable("--json", args.json, "report", args.recordings)
    check_distinct({"--html": page, "--json": data})
    rules = load_rules(args.suppressions) if args.suppressions else []
    report = suppress(load_merged(args.recordings).report, rules)
    if page:
        report.to_html(page, redact=args.redact, source=not args.no_source)
    if data:
        report.to_json(data)
    report.print()
    if args.annotate:
        print(to_annotations(report), end="")
    return EXIT_CODES[report.verdict]
