"""torch's own tests without leakprobe and with it: tests/foreign/run_torch.py --python PYTHON --source FOLDER
[FILE...]

The interpreter needs torch, pytest, hypothesis and expecttest; FOLDER is the folder `test` of torch's source,
best of the version that is installed.  Exit status 1 if a test fails with leakprobe only.
"""

import pathlib
import sys

from suites import main

TESTS = ["test_autograd.py", "test_dataloader.py"]


def arguments(parser) -> None:
    parser.add_argument(
        "--source", type=pathlib.Path, required=True, help="the folder `test` of torch's source"
    )
    parser.add_argument("tests", nargs="*", default=TESTS)


def command(options, junit: str) -> list:
    folder = options.source.resolve()
    # Their conftest.py asks for a pytest of its time, and only adds switches.
    switches = [
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-W",
        "ignore",
        "-c",
        "/dev/null",
        "--noconftest",
        f"--rootdir={folder}",
    ]
    return [
        "-m",
        "pytest",
        *switches,
        f"--junit-xml={junit}",
        *[str(folder / name) for name in options.tests],
    ]


if __name__ == "__main__":
    sys.exit(
        main(
            __doc__,
            arguments,
            command,
            "import torch, sys; print('torch', torch.__version__, 'on', sys.version.split()[0])",
            3600,
        )
    )
