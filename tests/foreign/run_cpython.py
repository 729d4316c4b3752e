"""CPython's own regression tests without leakprobe and with it: tests/foreign/run_cpython.py --python PYTHON [TEST...]

The interpreter must have its package `test`.  Exit status 1 if a test fails with leakprobe only.
"""

import argparse
import sys

from suites import Suite, compare

TESTS = [
    "test_gc", "test_weakref", "test_list", "test_dict", "test_set", "test_tuple", "test_generators", "test_coroutines", "test_asyncio",
    "test_threading", "test_fork1", "test_subprocess", "test_tracemalloc", "test_json", "test_pickle", "test_ctypes", "test_sys", "test_code",
    "test_frame", "test_exceptions", "test_capi", "test_contextlib", "test_multiprocessing_fork", "test_multiprocessing_spawn",
    "test_multiprocessing_forkserver",
]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", action="append", required=True)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=int, default=3600, help="seconds for one run of the suite")
    parser.add_argument("tests", nargs="*", default=TESTS)
    options = parser.parse_args()
    wrong = 0
    for python in options.python:
        suite = Suite(python, lambda junit: ["-m", "test", f"-j{options.jobs}", "--timeout", "900", "--junit-xml", junit, *options.tests])
        try:
            suite.build()
            version = suite.machine.run(["-c", "import sys; print(sys.version.split()[0])"], 60).stdout.strip()
            wrong += compare(f"CPython {version}", suite, options.timeout)
        finally:
            suite.machine.close()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
