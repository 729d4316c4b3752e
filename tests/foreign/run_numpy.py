"""numpy's own suite without leakprobe and with it: tests/foreign/run_numpy.py --python PYTHON [SUBPACKAGE...]

The interpreter needs numpy with its tests, pytest and hypothesis.  Exit status 1 if a test fails with leakprobe only.
"""

import argparse
import sys

from suites import Suite, compare


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", action="append", required=True)
    parser.add_argument("--timeout", type=int, default=7200, help="seconds for one run of the suite")
    parser.add_argument("packages", nargs="*", default=["numpy"], help="such as numpy._core")
    options = parser.parse_args()
    wrong = 0
    for python in options.python:
        suite = Suite(python, lambda junit: ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore", "-c", "/dev/null", "-m", "not slow",
                                             f"--junit-xml={junit}", "--pyargs", *options.packages])
        try:
            suite.build()
            version = suite.machine.run(["-c", "import numpy, sys; print(numpy.__version__, 'on', sys.version.split()[0])"], 60).stdout.strip()
            wrong += compare(f"numpy {version}", suite, options.timeout)
        finally:
            suite.machine.close()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
