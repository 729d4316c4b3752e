"""Explains a cause that a report names: why memory grows so, and the change that ends it, before and after.

Without a code it lists all of them.
"""

import argparse
import re
import sys
from typing import TextIO

from rich.text import Text

from leakprobe.cli import add_json, print_json
from leakprobe.errors import LeakprobeError
from leakprobe.report.diagnostic import say
from leakprobe.report.explanations import EXPLANATIONS, Explanation
from leakprobe.report.text import console_for


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("code", nargs="?", metavar="CODE", help='such as "graph-kept"')
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    found = list(EXPLANATIONS.values()) if args.code is None else [explanation_of(args.code)]
    if args.json:
        rows = [one.to_dict() for one in found]
        print_json(rows if args.code is None else rows[0])
    elif args.code is None:
        list_all(found, sys.stdout)
    else:
        explain(found[0], sys.stdout)
    return 0


def explanation_of(code: str) -> Explanation:
    """Of "graph-kept", "graph_kept" or "leak[graph-kept]"."""
    wanted = re.sub(r"^leak\[(.*)\]$", r"\1", code.strip()).replace("-", "_")
    if wanted not in EXPLANATIONS:
        known = ", ".join(one.code for one in EXPLANATIONS.values())
        raise LeakprobeError(f"there is no cause {code!r:.60}; there are {known}", "bad_argument")
    return EXPLANATIONS[wanted]


def list_all(found: list[Explanation], file: TextIO) -> None:
    width = max(len(one.code) for one in found) + 2
    with console_for(file) as console:
        for one in found:
            say(console, Text(one.meaning), indent=0, lead=Text(f"{one.code:{width}}", style="bold"))


def explain(one: Explanation, file: TextIO) -> None:
    with console_for(file) as console:
        say(console, Text(f"leak[{one.code}]: {one.meaning}", style="bold"), indent=0)
        console.print()
        say(console, Text(one.why), indent=0)
        for title, code, style in (("before", one.before, "red"), ("after", one.after, "green")):
            if code:
                console.print()
                say(console, Text(title, style="dim"), indent=0)
            for line in code.splitlines():
                say(console, Text(line, style=style), indent=4, hang=4)
