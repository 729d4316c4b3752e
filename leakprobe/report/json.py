"""The report as a JSON file."""

import json

from leakprobe.report.files import write_private


def write_json(data: dict, path) -> None:
    """Write ``data`` to ``path``; a new file is readable by its owner only.

    Errors: LeakprobeError "unwritable_file".
    """
    write_private(path, (json.dumps(data, allow_nan=False) + "\n").encode())
