"""The command ``leakprobe``: one thin module per verb."""

import argparse
import contextlib
import importlib
import json
import os
import re
import sys
import traceback
from collections.abc import Iterable, Sequence

from leakprobe.errors import LeakprobeError
from leakprobe.files import check_target, same_file
from leakprobe.recording import files_of
from leakprobe.report.clean import clean
from leakprobe.version import __version__

#: verb => module of this package with add_arguments(parser) and run(args) -> exit code.
VERBS = {
    "run": "run a script under the probe and report what grows",
    "attach": "watch a process that is already running (CPython 3.14 and later)",
    "report": "show recordings; several merge into one",
    "live": "follow a recording on the terminal while it is written",
    "diff": "compare two recordings or two snapshots",
    "why": "show in full who keeps what a finding names",
    "explain": "explain a cause that a report names, with code before and after the change",
    "cycles": "show the reference cycles of a recording",
    "export": "write a recording for Perfetto, Graphviz or a table",
    "audit": "estimate what DataLoader workers would copy of a dataset",
    "doctor": "say what can be seen on this machine",
    "demo": "train a small model with a known leak and show the report",
}
EXIT_CODES = {"steady": 0, "growing": 1, "inconclusive": 3}
#: Of wrong usage, and of a defect of leakprobe's own (EX_SOFTWARE of sysexits.h): 1 would say growth.
USAGE, INTERNAL = 2, 70
EPILOG = (
    "exit codes of run, report, attach, live and demo: 0 steady, 1 growth found, 3 inconclusive; the other "
    "commands exit with 0 whatever they show. 2 wrong usage, a file that can't be read or written, a missing "
    "package, 70 a defect of leakprobe, 141 the reader of the output has gone. run keeps the script's own code "
    "if it is not 0, and always in a job of several ranks; its --exit-code changes the code for growth"
)


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="leakprobe",
        description="Finds what a PyTorch training loop forgets to free.",
        epilog=EPILOG,
    )
    parser.add_argument("--version", action="version", version=version())
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for name, help_text in VERBS.items():
        module = importlib.import_module(f"leakprobe.cli.{name}")
        verb = verbs.add_parser(name, help=help_text, description=module.__doc__)
        module.add_arguments(verb)
        verb.set_defaults(run=module.run)
    return parser


def add_verbose(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="print paths in full, what was live at the highest points, and what saw each kind of memory",
    )


def add_json(parser: argparse.ArgumentParser, help_text: str = "print JSON instead of text") -> None:
    parser.add_argument("--json", action="store_true", help=help_text)


def add_redact(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--redact",
        action="store_true",
        help='leave names of folders, and the line "program", out of the page; '
        "names of files and dict keys stay",
    )


def print_json(data: object) -> None:
    print(json.dumps(data, indent=1))


def version() -> str:
    return f"leakprobe {__version__}"


#: option => kind of the file that it names (leakprobe/files.py).
KINDS = {"--html": "page", "--json": "report", "--record": "recording"}


def check_writable(
    option: str, path: str | None, kind: str | None = None, inputs: Iterable[str] = ()
) -> str | None:
    """The absolute path, or None for None: what would be known only at the end is found now.

    inputs: files and folders that are read; none of them may be written to.
    Errors: LeakprobeError "unwritable_file", "foreign_file".
    """
    if not path:
        return None
    path, kind = os.path.abspath(path), kind or KINDS[option]
    for name in inputs:
        check_not_read(option, path, name)
    try:
        check_target(path, kind)
    except LeakprobeError as error:
        raise LeakprobeError(f"{option}: {error}", error.code) from error
    return path


def check_not_read(option: str, path: str, name: str) -> None:
    try:
        read = files_of([name])
    except LeakprobeError:  # said when it is read
        read = [name]
    if any(same_file(path, file) for file in read):
        raise LeakprobeError(
            f"{option}: {path} is what is read here, and would be overwritten: give another name",
            "foreign_file",
        )


def check_distinct(paths: dict[str, str | None]) -> None:
    """Errors: LeakprobeError "bad_argument" if two options (option => path or None) name one file."""
    named = [(option, path) for option, path in paths.items() if path]
    for i, (option, path) in enumerate(named):
        for other, before in named[:i]:
            if same_file(path, before):
                raise LeakprobeError(f"{other} and {option} name one file, {path}: give two", "bad_argument")


def behind_the_script(argv: list[str]) -> list[str]:
    """What DeepSpeed's launcher and torch.distributed.launch put before all else, --local_rank=N, as the last
    argument: it is the script's.
    """
    if argv and re.fullmatch(r"--local[_-]rank=\d+", argv[0]):
        return [*argv[1:], argv[0]]
    return argv


def main(argv: Sequence[str] | None = None) -> int:
    """Run a verb; the exit code."""
    command = sys.orig_argv[1:] if argv is None else ["-m", "leakprobe", *argv]
    argv = behind_the_script(sys.argv[1:] if argv is None else list(argv))
    try:
        args = build_parser().parse_args(argv)
        args.command = command  # with which Python can be started anew
        code: int = args.run(args)
        if args.verb != "run" and sys.stdout is not None:  # a script's output is flushed as without leakprobe
            sys.stdout.flush()
        return code
    except LeakprobeError as error:
        say_error(clean(error))
        return USAGE
    except BrokenPipeError:  # the reader of a pipe has seen enough
        give_up_output(1)
        return 141
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None and error.filename is None:
            give_up_output(1)
            say_error(f"the output can't be written: {error.strerror}")
            return USAGE
        if sys.__stderr__ is not None:
            traceback.print_exc(file=sys.__stderr__)
        return INTERNAL


def say_error(text: str) -> None:
    tell(f"leakprobe: {text}")


def tell(text: str) -> None:
    """A line to standard error; where that is closed print() would take standard output, the program's."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):
            print(text, file=sys.stderr, flush=True)


def give_up_output(descriptor: int) -> None:
    """What is left in the buffer goes nowhere, or Python would meet the error again and end with 120."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
