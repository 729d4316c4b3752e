"""Names of files that lie beside a recording or a report: those of a rank, a worker or a process of it."""

import os


def named_by_part(path: str, part: str) -> str:
    """ "run.leak" as "run.PART.leak"."""
    root, extension = os.path.splitext(path)
    return f"{root}.{part}{extension}"
