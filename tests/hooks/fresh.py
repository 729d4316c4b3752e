"""Run a piece of code in a process of its own; it prints one JSON value last."""

import json
import os
import re
import subprocess
import sys
import textwrap

import forked

IMPORTS_TORCH = re.compile(r"^[^#\n]*\bimport\b[^\n]*\btorch\b", re.MULTILINE)


def run(code, *, env=None, timeout=900, fork=True):
    """The value that ``code`` prints; line 1 of ``code`` is the first line after the quotes.

    It runs in a new interpreter, but for code that imports torch and has no ``env``: that runs in a child of
    a process that has it imported, unless ``fork`` is False.
    """
    command = ["-c", textwrap.dedent(code).lstrip("\n")]
    if fork and env is None and IMPORTS_TORCH.search(code):
        done = forked.run(command, cwd="/", timeout=timeout, trains="optim" in code)
    else:
        done = subprocess.run(
            [sys.executable, *command],
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd="/",
            env={**os.environ, **(env or {})},
        )
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stderr[-3000:]}"
    return json.loads(done.stdout.strip().splitlines()[-1])
