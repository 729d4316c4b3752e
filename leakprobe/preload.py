"""Starts the program anew under the library that sees every call of malloc's functions (run --native).

The process stays: its number, its descriptors and what it answers to are those it had.  The environment
names the library to the loader only for this one start.  What the program starts itself inherits what the
user had set; a forked process has the library as part of its memory, and samples only if it is watched.
"""

import os
import platform
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import NoReturn

from leakprobe import _core
from leakprobe.errors import LeakprobeError

#: Set for the process that is started anew.
STARTED = "LEAKPROBE_PRELOADED"
#: Exits with ABSENT where the loader left the library out, as it does for a static or a setuid program.
TRIAL = """
import sys
with open("/proc/self/maps", encoding=sys.getfilesystemencoding(), errors="surrogateescape") as file:
    sys.exit(0 if any(line.rstrip("\\n").endswith(sys.argv[1]) for line in file) else int(sys.argv[2]))
"""
ABSENT = 3
#: Python starts in a tenth of a second; this is for a machine that swaps.
TRIAL_TIMEOUT_S = 60.0
#: What to do instead.
WITHOUT = "leave out --native: native memory is then sampled through the import slots of libraries"


def ensure(command: Sequence[str]) -> None:
    """Return in a process that runs under the library; in any other, start it anew with ``command``, the
    arguments of the interpreter.

    Errors: LeakprobeError "no_preload" where that can't be done.
    """
    was_started = os.environ.get("LEAKPROBE_PRELOADED") is not None
    if was_started:
        del os.environ[STARTED]
        forget()
    if _core.is_preloaded():
        return
    if was_started:
        raise LeakprobeError(
            f"this Python serves malloc itself, or was started without {path()}: {WITHOUT}", "no_preload"
        )
    check()
    restart(command)


def path() -> str:
    """The library, as the kernel names it: where the core lies, which in a checkout is not this folder."""
    return os.path.realpath(os.path.join(os.path.dirname(_core.__file__), "_preload.so"))


def check() -> None:
    """Errors: LeakprobeError "no_preload" where a program can't be started under the library."""
    reason = why_not()
    if reason is not None:
        raise LeakprobeError(f"{reason}: {WITHOUT}", "no_preload")


def why_not() -> str | None:
    """Why no program can be started under the library, or None."""
    if sys.platform != "linux":
        return f"--native needs Linux and its C library glibc, and this is {platform.system()}"
    try:
        is_glibc = "glibc" in (os.confstr("CS_GNU_LIBC_VERSION") or "")
    except (OSError, ValueError):
        is_glibc = False
    if not is_glibc:
        return "--native needs the C library glibc, which this Python does not use"
    if not sys.executable:
        return "--native starts Python anew, and this one does not know its own file (sys.executable)"
    if not os.path.isfile(path()):
        return f"the library that --native preloads is missing: {path()} (install leakprobe again)"
    if re.search(r"[\s:]", path()):
        return f"the loader takes no path with a space or a colon, and the library is {path()}"
    return why_not_started()


def why_not_started() -> str | None:
    """Why this Python does not run under the library, by trial, or None."""
    command = [sys.executable, "-S", "-c", TRIAL, path(), str(ABSENT)]
    try:
        done = subprocess.run(
            command,
            env=environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TRIAL_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"Python could not be started under {path()} ({error})"
    if done.returncode == 0:
        return None
    if done.returncode == ABSENT:
        return (
            f"the loader leaves {path()} out for {sys.executable}, as it does for a static program, "
            "one with more rights than its user (setuid), or a script that clears LD_PRELOAD"
        )
    said = done.stderr.decode(errors="replace").strip().splitlines()
    return f"{sys.executable} ends with {words_of(done.returncode)} under {path()}" + (
        f" ({said[-1]:.200})" if said else ""
    )


def words_of(code: int) -> str:
    """An exit code in words."""
    try:
        return signal.Signals(-code).name if code < 0 else f"code {code}"
    except ValueError:
        return f"signal {-code}"


def environment() -> dict[str, str]:
    """Variables under which a program is started: the library first, then what the user preloads."""
    before = os.environ.get("LD_PRELOAD")
    return {**os.environ, "LD_PRELOAD": f"{path()}:{before}" if before else path()}


def forget() -> None:
    """Take the library out of LD_PRELOAD: what the program starts gets what the user had."""
    found, separator, before = os.environ.get("LD_PRELOAD", "").partition(":")
    if found != path():
        return
    if separator:
        os.environ["LD_PRELOAD"] = before
    else:
        del os.environ["LD_PRELOAD"]


def restart(command: Sequence[str]) -> NoReturn:
    """Replace the program of this process by Python under the library."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    os.execve(sys.executable, [sys.executable, *command], {**environment(), STARTED: "1"})
