"""Tests run against the installed leakprobe; helpers beside the test files are importable."""

import pathlib
import sys

for folder in ("hooks", "leaks", "fuzz", "ext", "gpu", "attacks", "unit"):
    sys.path.insert(0, str(pathlib.Path(__file__).parent / folder))

try:
    from hypothesis import settings
except ImportError:  # the tests that need it skip themselves
    pass
else:
    settings.register_profile("any machine", deadline=None)  # how long an example takes is no property
    settings.load_profile("any machine")
