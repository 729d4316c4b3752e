"""The off switch: the variable LEAKPROBE of the environment.  Every front end asks here, and nowhere else."""

import os

from leakprobe.errors import LeakprobeError

ON, OFF = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


def disabled_line() -> str | None:
    """The text "leakprobe is disabled by LEAKPROBE=0" where it is switched off; None where it is on.

    Errors: LeakprobeError "bad_argument" for a value that means neither.
    """
    given = (os.environ.get("LEAKPROBE") or "").strip()
    if given.lower() in OFF:
        return f"leakprobe is disabled by LEAKPROBE={given}"
    if not given or given.lower() in ON:
        return None
    raise LeakprobeError(
        f"LEAKPROBE={given!r:.60} is not known: {', '.join(OFF)} disable leakprobe, "
        f"{', '.join(ON)} or nothing leave it on",
        "bad_argument",
    )
