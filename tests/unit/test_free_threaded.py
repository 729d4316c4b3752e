"""A free-threaded build of Python is refused with a message; there is none here, so its configuration is
played.
"""

import pathlib
import subprocess
import sys

import pytest

REPOSITORY = pathlib.Path(__file__).parents[2]
PLAY = """
import runpy, sys, sysconfig
real = sysconfig.get_config_var
sysconfig.get_config_var = lambda name: 1 if name == "Py_GIL_DISABLED" else real(name)
"""


def run(code, *arguments):
    return subprocess.run(
        [sys.executable, "-c", PLAY + code, *arguments],
        capture_output=True,
        text=True,
        timeout=900,
        cwd=REPOSITORY,
    )


@pytest.mark.skipif(not (REPOSITORY / "setup.py").exists(), reason="not a source tree")
def test_the_build_is_refused(tmp_path):
    pytest.importorskip("setuptools", minversion="77")  # an older one does not know our metadata
    done = run(
        'sys.argv[0] = "setup.py"\nrunpy.run_path("setup.py", run_name="__main__")',
        "-q",
        "build_ext",
        "--build-lib",
        str(tmp_path),
        "--build-temp",
        str(tmp_path),
    )
    assert done.returncode == 1 and "free-threaded" in done.stderr and "with the GIL" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_doctor_says_so():
    done = run(
        """
from leakprobe.doctor import python_rows
print([row for row in python_rows() if "free-threaded" in str(row)])
"""
    )
    assert done.returncode == 0, done.stderr
    assert "not supported yet" in done.stdout and "False" in done.stdout
