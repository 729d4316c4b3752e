"""The report as a JSON file."""

import json
import os

from leakprobe.errors import LeakprobeError


def write_json(data: dict, path) -> None:
    """Write ``data`` to ``path``; a new file is readable by its owner only.

    Errors: LeakprobeError "unwritable_file".
    """
    text = json.dumps(data, allow_nan=False) + "\n"
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise LeakprobeError(f"{path} can't be written: {error.strerror}", "unwritable_file") from error
