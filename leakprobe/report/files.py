"""Files that are written whole, for their owner only."""

import os

from leakprobe.errors import LeakprobeError


def write_private(path, data: bytes) -> None:
    """Write ``data`` to ``path``; a new file is readable by its owner only.

    Errors: LeakprobeError "unwritable_file".
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
    except OSError as error:
        raise LeakprobeError(f"{path} can't be written: {error.strerror}", "unwritable_file") from error
