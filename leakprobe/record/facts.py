"""Facts of the process that is watched, for a reader who is elsewhere.  No arguments, no environment: they
may hold secrets.
"""

import dataclasses
import os
import platform
import sys
import time
from typing import Any

from leakprobe import launchers
from leakprobe.model import inert
from leakprobe.version import __version__


def describe_run() -> dict[str, Any]:
    """{"program", "started", "pid", "rank", "python", "torch", ...} of now; nothing is imported for it."""
    program = sys.argv[0] if sys.argv and sys.argv[0] not in ("", "-c") else "python"
    found: dict[str, Any] = {
        "program": os.path.abspath(program) if os.path.exists(program) else program,
        "started": round(time.time(), 3),
        "pid": os.getpid(),
        "leakprobe": __version__,
        "python": platform.python_version(),
        "platform": f"{sys.platform} {platform.machine()}",
    }
    place = launchers.place()
    if place is not None:
        found |= {key: value for key, value in dataclasses.asdict(place).items() if value is not None}
    return found


def library_versions() -> dict[str, str]:
    """Versions of torch and numpy where the program has imported them."""
    found = {}
    for name in ("torch", "numpy"):
        version = getattr(inert.imported(name), "__version__", None)
        if version is not None:
            found[name] = str(version)
    return found
