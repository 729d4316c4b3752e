"""numpy's own suite without leakprobe and with it: tests/foreign/run_numpy.py --python PYTHON [SUBPACKAGE...]

The interpreter needs numpy with its tests, pytest and hypothesis.  Exit status 1 if a test fails with
leakprobe only.
"""

import sys

from suites import main


def arguments(parser) -> None:
    parser.add_argument("packages", nargs="*", default=["numpy"], help="such as numpy._core")


def command(options, junit: str) -> list:
    switches = ["-q", "-p", "no:cacheprovider", "-W", "ignore", "-c", "/dev/null", "-m", "not slow"]
    return ["-m", "pytest", *switches, f"--junit-xml={junit}", "--pyargs", *options.packages]


if __name__ == "__main__":
    sys.exit(
        main(
            __doc__,
            arguments,
            command,
            "import numpy, sys; print('numpy', numpy.__version__, 'on', sys.version.split()[0])",
            7200,
        )
    )
