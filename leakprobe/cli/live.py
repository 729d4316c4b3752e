"""Follows a recording on the terminal while a run writes it: what grows, who keeps it, memory over steps.

It reads what a commit has left in the file, and disturbs the run no more than any reader does.  Keys: arrows
choose a finding, tab and 1 to 4 the view, p pauses, q ends.
"""

import argparse
import importlib.util

from leakprobe.cli import EXIT_CODES
from leakprobe.errors import LeakprobeError
from leakprobe.record.follower import Follower


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "recordings",
        nargs="+",
        metavar="REC",
        help="a recording or a folder of them, also one that is not there yet",
    )


def run(args: argparse.Namespace) -> int:
    """The exit code is that of the last report."""
    if importlib.util.find_spec("textual") is None:
        raise LeakprobeError("the live view needs textual: python3 -m pip install textual", "missing_package")
    from leakprobe.cli.live_view import LiveView  # it imports textual, which is optional

    follower = Follower(args.recordings)
    LiveView(follower).run()
    if follower.recording is None:
        return EXIT_CODES["inconclusive"]
    return EXIT_CODES[follower.recording.report.verdict]
