"""Another project's tests without leakprobe and with it: those that a package brings along, or files of its
source.

    python tests/foreign/run_package.py --python PYTHON --package numpy --marked 'not slow' numpy._core
    python tests/foreign/run_package.py --python PYTHON --package torch --source FOLDER test_autograd.py

The interpreter needs the package, pytest and what its tests import.  Exit status 1 if a test fails with
leakprobe only.
"""

import pathlib
import sys

from suites import main

VERSION = "import {0}, sys; print('{0}', {0}.__version__, 'on', sys.version.split()[0])"


def arguments(parser) -> None:
    parser.add_argument("--package", required=True, help="the name that is imported")
    parser.add_argument("--source", type=pathlib.Path, help="the folder of the tests, best of that version")
    parser.add_argument("--conftest", action="store_true", help="with the conftest.py files of the source")
    parser.add_argument("--marked", default="", metavar="EXPRESSION", help="as pytest's -m")
    parser.add_argument("--named", default="", metavar="EXPRESSION", help="as pytest's -k")
    parser.add_argument("tests", nargs="+", help="subpackages, or with --source files of it")


def switches_of(options) -> list[str]:
    """Settings of a project ask for the pytest of its time: they are left out."""
    switches = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", "ignore", "-c", "/dev/null"]
    if options.source is not None:
        folder = options.source.resolve()
        switches += [f"--rootdir={folder}", "-o", f"pythonpath={folder}"]
        switches += [] if options.conftest else ["--noconftest"]
    switches += ["-m", options.marked] if options.marked else []
    return switches + (["-k", options.named] if options.named else [])


def command(options, junit: str) -> list:
    tests = options.tests
    if options.source is not None:
        tests = [str(options.source.resolve() / name) for name in tests]
    where = [] if options.source is not None else ["--pyargs"]
    return ["-m", "pytest", *switches_of(options), f"--junit-xml={junit}", *where, *tests]


if __name__ == "__main__":
    sys.exit(main(__doc__, arguments, command, lambda options: VERSION.format(options.package), 7200))
