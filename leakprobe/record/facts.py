"""Facts of the process that is watched, for a reader who is elsewhere.  No arguments, no environment: they
may hold secrets.
"""

import os
import platform
import sys
import time

#: Variables of torchrun that say which process of a job this is.
RANKS = {"rank": "RANK", "local_rank": "LOCAL_RANK", "world_size": "WORLD_SIZE"}


def describe_run() -> dict:
    """{"program", "started", "pid", "rank", "python", "torch", ...} of now; nothing is imported for it."""
    import leakprobe

    program = sys.argv[0] if sys.argv and sys.argv[0] not in ("", "-c") else "python"
    found = {
        "program": os.path.abspath(program) if os.path.exists(program) else program,
        "started": round(time.time(), 3),
        "pid": os.getpid(),
        "leakprobe": leakprobe.__version__,
        "python": platform.python_version(),
        "platform": f"{sys.platform} {platform.machine()}",
    }
    for key, name in RANKS.items():
        value = os.environ.get(name, "")
        if value.isdigit():
            found[key] = int(value)
    return found


def library_versions() -> dict:
    """Versions of torch and numpy where the program has imported them."""
    found = {}
    for name in ("torch", "numpy"):
        version = getattr(sys.modules.get(name), "__version__", None)
        if version is not None:
            found[name] = str(version)
    return found
