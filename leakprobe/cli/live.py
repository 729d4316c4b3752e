"""Follows a recording on the terminal while a run writes it: what grows, who keeps it, memory over steps.

It reads what a commit has left in the file, and disturbs the run no more than any reader does.  Keys: arrows
choose a finding, tab and 1 to 4 the view, p pauses, q ends.
"""

import argparse
import importlib.util
import json
import time

from leakprobe.cli import EXIT_CODES, add_json
from leakprobe.cli.follower import Follower
from leakprobe.errors import LeakprobeError

#: Seconds between two questions whether the recording has changed.
INTERVAL_S = 0.5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "recordings",
        nargs="+",
        metavar="REC",
        help="a recording or a folder of them, which need not exist yet",
    )

    add_json(parser, "print a line of JSON for each change, without a screen, until the run ends")


def run(args: argparse.Namespace) -> int:
    """The exit code is that of the last report."""
    if args.json:
        return print_changes(Follower(args.recordings))
    if importlib.util.find_spec("textual") is None:
        raise LeakprobeError("the live view needs textual: python3 -m pip install textual", "missing_package")
    from leakprobe.cli.live_view import LiveView  # it imports textual, which is optional

    follower = Follower(args.recordings)
    LiveView(follower).run()
    if follower.recording is None:
        return EXIT_CODES["inconclusive"]
    return EXIT_CODES[follower.recording.report.verdict]


def print_changes(follower: Follower) -> int:
    """Until the run ends or Ctrl-C: {"version", "state", "report"} at each change."""
    shown = -1
    try:
        while True:
            follower.poll()
            if follower.recording is not None and follower.version != shown:
                shown = follower.version
                row = {
                    "version": shown,
                    "state": follower.state,
                    "report": follower.recording.report.to_dict(),
                }
                print(json.dumps(row), flush=True)
            if follower.recording is not None and follower.state != "running":
                break
            time.sleep(INTERVAL_S)
    except KeyboardInterrupt:
        pass
    if follower.recording is None:
        return EXIT_CODES["inconclusive"]
    return EXIT_CODES[follower.recording.report.verdict]
