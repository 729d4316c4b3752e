"""Run a piece of code in a fresh interpreter; it prints one JSON value last."""

import json
import os
import subprocess
import sys
import textwrap


def run(code, *, env=None, timeout=900):
    """The value that ``code`` prints; line 1 of ``code`` is the first line after the quotes."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code).lstrip("\n")],
        capture_output=True,
        text=True,
        timeout=timeout,
        cwd="/",
        env={**os.environ, **(env or {})},
    )
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stderr[-3000:]}"
    return json.loads(done.stdout.strip().splitlines()[-1])
