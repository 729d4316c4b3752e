"""CPython's own regression tests without leakprobe and with it: tests/foreign/run_cpython.py --python PYTHON
[TEST...]

The interpreter must have its package `test`.  Exit status 1 if a test fails with leakprobe only.
"""

import sys

from suites import main

TESTS = [
    "test_gc",
    "test_weakref",
    "test_list",
    "test_dict",
    "test_set",
    "test_tuple",
    "test_generators",
    "test_coroutines",
    "test_asyncio",
    "test_threading",
    "test_fork1",
    "test_subprocess",
    "test_tracemalloc",
    "test_json",
    "test_pickle",
    "test_ctypes",
    "test_sys",
    "test_code",
    "test_frame",
    "test_exceptions",
    "test_capi",
    "test_contextlib",
    "test_multiprocessing_fork",
    "test_multiprocessing_spawn",
    "test_multiprocessing_forkserver",
]


def arguments(parser) -> None:
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("tests", nargs="*", default=TESTS)


def command(options, junit: str) -> list:
    return ["-m", "test", f"-j{options.jobs}", "--timeout", "900", "--junit-xml", junit, *options.tests]


if __name__ == "__main__":
    version = "import sys; print('CPython', sys.version.split()[0])"
    sys.exit(main(__doc__, arguments, command, lambda options: version, 3600))
