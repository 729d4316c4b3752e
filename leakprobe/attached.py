"""A watch in a process that runs already: what ``leakprobe attach`` has the process run, and how it is sent
there.

CPython 3.14 and later only: sys.remote_exec() (PEP 768).
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence

from leakprobe import _core, switch
from leakprobe.errors import LeakprobeError
from leakprobe.probe import Probe, is_active, watch
from leakprobe.record import place
from leakprobe.torch.steps import AutoSteps
from leakprobe.watch.marking import marked_by_caller

#: Seconds that the process has to begin; it does so between two byte codes of its main thread.
BEGIN_S = 30.0

SCRIPT = """\
import sys
sys.path.append({path!r})
try:
    from leakprobe.attached import begin
    begin({options!r})
except BaseException as error:
    with open({failure!r}, "w") as file:
        file.write(f"{{type(error).__name__}}: {{error}}")
"""


class Attached:
    """The watch in the process that runs already; it ends itself after ``steps`` steps, or where the program
    enters one of its own.
    """

    def __init__(self, probe: Probe, steps: int) -> None:
        self._probe, self._left = probe, steps
        self._automatic = AutoSteps(self)

    def begin(self) -> None:
        self._probe.__enter__()
        self._automatic.install()
        self._probe._gave_way_to = self._leave  # type: ignore[attr-defined]
        _core.give_way(self._probe)

    def _leave(self, _watch: object = None) -> None:
        _core.give_way(None)
        self._automatic.remove()

    def step(self) -> None:
        self._probe._step_if_on()
        self._left -= 1
        if self._left <= 0:
            self._leave()
            self._probe._look_at_the_end()
            self._probe.__exit__(None, None, None)

    def epoch(self) -> None:
        self._probe.epoch()

    def _look_at_an_epochs_end(self) -> None:
        self._probe._look_at_an_epochs_end()

    def is_active(self) -> bool:
        return self._probe.is_active()


def begin(options: str) -> None:
    """Begin a watch with the options (JSON) that attach() wrote.  Runs in the other process."""
    if switch.disabled_line() is not None:
        raise LeakprobeError(f"{switch.disabled_line()} there", "disabled")
    if is_active():
        raise LeakprobeError("a watch is on there already", "already_active")
    given = json.loads(options)
    probe = watch(given["warmup"], limit=given["limit"], record=given["record"])
    Attached(marked_by_caller(probe), given["steps"]).begin()


def check_version(version: Sequence[object] = sys.version_info) -> None:
    """Errors: LeakprobeError "not_available" where Python can't run code in another process."""
    if not hasattr(sys, "remote_exec"):
        raise LeakprobeError(
            f"attach needs CPython 3.14 or later in both processes, this one is {version[0]}.{version[1]}: "
            "start the program with `leakprobe run -o REC SCRIPT`, or put `with leakprobe.watch(record=REC)` around its loop "
            "and read REC with `leakprobe report` while it runs",
            "not_available",
        )


def attach(pid: int, record: str, *, steps: int, warmup: int, limit: str | float) -> None:
    """Have the process watch its next steps and write them to ``record``; waits until it has begun.

    Errors: LeakprobeError "not_available", "no_process", "not_permitted", "attach_failed".
    """
    check_version()
    options = json.dumps({"record": record, "steps": steps, "warmup": warmup, "limit": limit})
    with tempfile.TemporaryDirectory(prefix="leakprobe-") as folder:
        os.chmod(folder, 0o755)
        failure, script = os.path.join(folder, "failure"), os.path.join(folder, "script.py")
        path = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        with open(script, "w", encoding="utf-8") as file:
            file.write(SCRIPT.format(path=path, options=options, failure=failure))
        send(pid, script)
        wait_until_begun(pid, record, failure)


def send(pid: int, script: str) -> None:
    try:
        os.kill(pid, 0)
        if sys.version_info >= (3, 14):  # as check_version() says
            sys.remote_exec(pid, script)
    except ProcessLookupError:
        raise LeakprobeError(f"there is no process {pid}", "no_process") from None
    except PermissionError as error:
        raise LeakprobeError(
            f"process {pid} may not be attached to ({error}): run as its user; in a container, allow ptrace",
            "not_permitted",
        ) from None
    except (OSError, RuntimeError) as error:
        raise LeakprobeError(
            f"process {pid} can't be attached to: {error}; it must run the same version of CPython, {sys.version.split()[0]}",
            "attach_failed",
        ) from None


def wait_until_begun(pid: int, record: str, failure: str) -> None:
    until = time.monotonic() + BEGIN_S
    while not (os.path.exists(record) and os.path.getsize(record) and place.is_locked(record)):
        if os.path.exists(failure) and os.path.getsize(failure):
            with open(failure, encoding="utf-8", errors="replace") as file:
                raise LeakprobeError(
                    f"process {pid} could not begin a watch: {file.read(2000)}", "attach_failed"
                )
        if time.monotonic() > until:
            raise LeakprobeError(
                f"process {pid} did not begin a watch within {BEGIN_S:.0f} s: its main thread waits in native code; try again",
                "attach_failed",
            )
        time.sleep(0.05)
