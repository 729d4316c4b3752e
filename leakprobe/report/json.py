"""The report as a JSON file."""

import json
import os
from typing import Any

from leakprobe.files import write_private


def write_json(data: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Write ``data`` to ``path``; a new file is readable by its owner only.

    Errors: LeakprobeError "unwritable_file", or "foreign_file" for a file that is there and is no such
    report.
    """
    write_private(path, (json.dumps(data, allow_nan=False) + "\n").encode(), "report")
