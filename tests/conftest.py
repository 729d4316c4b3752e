"""Tests run against the installed leakprobe; helpers beside the test files are importable."""

import pathlib
import sys

for folder in ("hooks", "leaks", "fuzz", "ext", "gpu", "attacks", "unit"):
    sys.path.insert(0, str(pathlib.Path(__file__).parent / folder))
