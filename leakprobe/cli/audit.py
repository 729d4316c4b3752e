"""Estimates what forked DataLoader workers would copy of a dataset by reading it.

MODULE:FACTORY names a function without arguments, or a dataset; the module is looked up from the working
folder.
"""

import argparse
import importlib
import json
import os
import sys
from typing import Any

from leakprobe.audit import audit
from leakprobe.cli import USAGE
from leakprobe.cli.script import show_exception
from leakprobe.errors import LeakprobeError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", metavar="MODULE:FACTORY")
    parser.add_argument(
        "--workers", type=int, default=4, metavar="N", help="workers of the loader (default 4)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def run(args: argparse.Namespace) -> int:
    try:
        dataset = make_dataset(args.target)
    except LeakprobeError:
        raise
    except Exception as error:  # the program's own
        return show_exception(error, USAGE)
    found = audit(dataset, num_workers=args.workers)
    if args.json:
        print(json.dumps(found.to_dict(), indent=1))
    else:
        found.print()
    return 0


def make_dataset(target: str) -> object:
    """What FACTORY gives, or the object of that name if it can't be called."""
    module_name, colon, name = target.partition(":")
    if not colon or not module_name or not name:
        raise LeakprobeError(
            f"{target!r:.80} is not MODULE:FACTORY, such as data:make_dataset", "bad_argument"
        )
    sys.path.insert(0, os.getcwd())
    try:
        value: Any = importlib.import_module(module_name)
        for part in name.split("."):
            value = getattr(value, part)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise LeakprobeError(
            f"there is no module {module_name}: it is looked up from the working folder", "no_script"
        ) from None
    except AttributeError:
        raise LeakprobeError(f"module {module_name} has no {name}", "bad_argument") from None
    return value() if callable(value) else value
