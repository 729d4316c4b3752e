"""Follows a recording on the terminal while a run writes it: what grows, who keeps it, memory over steps.

It reads what a commit has left in the file, and disturbs the run no more than any reader does.  Keys: arrows
choose a finding, tab and 1 to 4 the view, p pauses, q ends.
"""

import argparse
import importlib.util
import json
import sys
import time

from leakprobe.cli import EXIT_CODES, INTERNAL, add_json, say_error
from leakprobe.cli.follower import Follower
from leakprobe.errors import LeakprobeError
from leakprobe.report.clean import clean

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
    if not args.json and importlib.util.find_spec("textual") is None:
        raise LeakprobeError("the live view needs textual: python3 -m pip install textual", "missing_package")
    follower = Follower(args.recordings)
    follower.poll()
    follower.check()
    if args.json:
        return print_changes(follower)
    if not all(stream is not None and stream.isatty() for stream in (sys.__stdin__, sys.__stderr__)):
        raise LeakprobeError("the live view needs a terminal; --json prints lines", "bad_argument")
    from leakprobe.cli.live_view import LiveView  # it imports textual, which is optional

    view = LiveView(follower)
    view.run()
    if view.return_code:  # its traceback is printed
        return INTERNAL
    if follower.recording is None:
        return EXIT_CODES["inconclusive"]
    return EXIT_CODES[follower.recording.report.verdict]


def print_changes(follower: Follower) -> int:
    """Until the run ends or Ctrl-C: {"version", "state", "report"} at each change; on standard error why
    nothing can be read, once.
    """
    shown, said = -1, None
    try:
        while True:
            if follower.trouble not in (None, said):
                follower.check()
                said = follower.trouble
                say_error(clean(follower.describe()))
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
            follower.poll()
    except KeyboardInterrupt:
        pass
    if follower.recording is None:
        return EXIT_CODES["inconclusive"]
    return EXIT_CODES[follower.recording.report.verdict]
