"""Opens the bytes of a recording as a database that can do nothing but be read.

They are checked (layout.py) and written to a private temporary folder; SQLite opens that copy as a file that
never changes, so that it looks for no journal, takes no lock and writes nothing.  quick_check then sees to it
that each page and each byte of a row is used once, which bounds what reading takes by the size of the file.
"""

import contextlib
import os
import sqlite3
import tempfile
import urllib.parse
from collections.abc import Iterator

from leakprobe.record.layout import check_layout

#: Steps of SQLite's machine for each byte, and to begin with: an honest recording takes 0.4, the shortest
#: rows 10 (docs/proof.md).
STEPS_PER_BYTE, FIRST_STEPS, STEPS_A_CALL = 40, 1_000_000, 10_000
#: What a statement may do; anything else is refused when it is compiled.
ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ}
#: Limits of Python 3.11 and later: a row is never longer than its file, the rest is what the queries of
#: reader.py need.
LIMITS = {"SQLITE_LIMIT_COLUMN": 16, "SQLITE_LIMIT_EXPR_DEPTH": 8, "SQLITE_LIMIT_SQL_LENGTH": 4096, "SQLITE_LIMIT_ATTACHED": 0,
          "SQLITE_LIMIT_COMPOUND_SELECT": 2, "SQLITE_LIMIT_VDBE_OP": 100_000, "SQLITE_LIMIT_TRIGGER_DEPTH": 1}  # fmt: skip


@contextlib.contextmanager
def opened(data: bytes) -> Iterator[sqlite3.Connection]:
    """A connection to these bytes.  Errors: ValueError or sqlite3.Error for what is no whole recording;
    OSError.
    """
    check_layout(data)
    with tempfile.TemporaryDirectory(prefix="leakprobe-") as folder:  # its owner's only
        path = os.path.join(folder, "copy")
        with open(path, "xb") as file:
            file.write(data)
        name = urllib.parse.quote(os.fsencode(path))
        db = sqlite3.connect(f"file:{name}?mode=ro&immutable=1", uri=True, isolation_level=None)
        try:
            restrict(db, len(data))
            yield db
        finally:
            db.close()


def restrict(db: sqlite3.Connection, size: int) -> None:
    if hasattr(db, "setlimit"):
        for name, most in {**LIMITS, "SQLITE_LIMIT_LENGTH": size}.items():
            db.setlimit(getattr(sqlite3, name), most)
    for pragma in (
        "trusted_schema = OFF",
        "cell_size_check = ON",
        "mmap_size = 0",
        "temp_store = MEMORY",
        "cache_size = -2048",
    ):
        db.execute(f"PRAGMA {pragma}").fetchall()
    left = [(FIRST_STEPS + STEPS_PER_BYTE * size) // STEPS_A_CALL]

    def count() -> bool:
        left[0] -= 1
        return left[0] < 0

    db.set_progress_handler(count, STEPS_A_CALL)
    fault = db.execute("PRAGMA quick_check(1)").fetchone()[0]
    if fault != "ok":
        raise ValueError(" ".join(fault.split()))
    db.set_authorizer(lambda action, *_: sqlite3.SQLITE_OK if action in ALLOWED else sqlite3.SQLITE_DENY)
