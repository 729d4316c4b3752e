"""The tables of a recording: a SQLite file that one process appends to at its step marks.

Numbers are bytes and seconds, steps count from 1.  The columns ``data`` and ``survivors`` are JSON; the keys
are those of docs/report.schema.json.
"""

from leakprobe.model.rows import MEMORY_COLUMNS

#: In the header of the file: says that it is a recording, and of which schema.
APPLICATION_ID = 0x4C45414B
SCHEMA_VERSION = 1
MAGIC = b"SQLite format 3\x00"
PAGE_BYTES = 4096

#: Steps kept in a recording; of more, all but every 2nd, 4th, 8th ... go, a few at each commit, the newest
#: last.
MAX_STEPS = 16384

#: A reader takes a file only if its tables are these, letter by letter (layout.py): a change is a new
#: SCHEMA_VERSION.
TABLES = {
    "meta": "key TEXT PRIMARY KEY, value TEXT",
    "steps": f"step INTEGER PRIMARY KEY, epoch INTEGER, time REAL, {', '.join(MEMORY_COLUMNS)}, more TEXT",
    "media": "medium INTEGER PRIMARY KEY, name TEXT, position INTEGER, data TEXT",
    "step_media": "step INTEGER, medium INTEGER, live_bytes, peak_bytes, PRIMARY KEY (step, medium)",
    "findings": "position INTEGER PRIMARY KEY, fingerprint TEXT, kind TEXT, medium TEXT, type TEXT, bytes_per_step, live_bytes, data TEXT",
    "notes": "position INTEGER PRIMARY KEY, kind TEXT, text TEXT, data TEXT",
    "lines": "filename TEXT, lineno INTEGER, bytes_per_step, live_bytes",
    "source": "filename TEXT, lineno INTEGER, text TEXT, PRIMARY KEY (filename, lineno)",
    "sites": "position INTEGER PRIMARY KEY, medium TEXT, type TEXT, live_bytes, live_count, bytes_per_step, survivors TEXT, data TEXT",
}
WITHOUT_ROWID = ("step_media",)
#: Tables whose primary key SQLite keeps in an index of its own.
INDEXED = ("meta", "source")


#: What is set before the first table is made; the reader asks for just this (layout.py).
CREATE_PRAGMAS = (
    f"page_size = {PAGE_BYTES}",
    "encoding = 'UTF-8'",
    f"application_id = {APPLICATION_ID}",
    f"user_version = {SCHEMA_VERSION}",
)


def create_statement(name: str) -> str:
    return f"CREATE TABLE {name} ({TABLES[name]}){' WITHOUT ROWID' * (name in WITHOUT_ROWID)}"


def schema_rows() -> dict[tuple[str, str, str], str | None]:
    """(type, name, table) => statement of each row that SQLite keeps of these tables."""
    rows: dict[tuple[str, str, str], str | None] = {
        ("table", name, name): create_statement(name) for name in TABLES
    }
    rows.update({("index", f"sqlite_autoindex_{name}_1", name): None for name in INDEXED})
    return rows
