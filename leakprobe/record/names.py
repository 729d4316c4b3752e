"""Names of the recordings that pytest's plugin keeps: one a test, in the folder .leakprobe of the project.

A test's id is the beginning of the SHA-256 of its node id, so that it is the same in every run and on every
worker, and a node id serves as a name too.  No part of a node id becomes part of a path.
"""

import hashlib
import os
import re

from leakprobe.checks import checked_path

FOLDER, EXTENSION = ".leakprobe", ".leak"
#: With ten digits, two of 100,000 tests have the same id in one project of 220 (birthday bound).
ID = re.compile(r"[0-9a-f]{10}")


def id_of(nodeid: str) -> str:
    """ "4f3a2b1c9d" of "tests/test_model.py::test_step"."""
    return hashlib.sha256(nodeid.encode("utf-8", "surrogatepass")).hexdigest()[:10]


def file_of(test_id: str) -> str:
    return test_id + EXTENSION


def path_of(name: str | os.PathLike[str]) -> str:
    """The path of a recording that is named by its path, by a test's id or by its node id.

    A file or folder of that name comes first.  Ids are looked for in .leakprobe of the current folder and of
    those above it; what is found nowhere comes back as it is, and reading it says so.
    Errors: LeakprobeError "bad_argument" for what is no path.
    """
    path = checked_path("path", name)
    if os.path.lexists(path):
        return path
    test_id = path if ID.fullmatch(path) else id_of(path) if "::" in path else None
    found = None if test_id is None else find(file_of(test_id), os.getcwd())
    return found or path


def find(file: str, folder: str) -> str | None:
    """FOLDER/``file`` in the nearest of ``folder`` and the folders above it."""
    while True:
        path = os.path.join(folder, FOLDER, file)
        if os.path.isfile(path):
            return path
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above
