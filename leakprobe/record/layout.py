"""Says whether a file is laid out as leakprobe lays recordings out, before SQLite is given it.

The header and the page of the schema are read here, so that SQLite never meets a statement of a stranger: no
view, trigger, generated column, expression or virtual table.  Format: sqlite.org/fileformat2.html, sections
1.3, 1.6 and 2.
"""

from leakprobe.errors import LeakprobeError
from leakprobe.record.schema import APPLICATION_ID, MAGIC, PAGE_BYTES, SCHEMA_VERSION, schema_rows

HEADER_BYTES = 100
#: (where, bytes, value) of each number of the header that is the same in all recordings.
FIXED = (
    (16, 2, PAGE_BYTES),
    (18, 1, 1),  # written with a rollback journal, not a write-ahead log
    (19, 1, 1),
    (20, 1, 0),  # bytes reserved in each page
    (21, 1, 64),
    (22, 1, 32),
    (23, 1, 32),
    (44, 4, 4),  # format of the schema
    (48, 4, 0),
    (52, 4, 0),  # no page moves
    (56, 4, 1),  # UTF-8
    (64, 4, 0),
    (72, 20, 0),
)
PAGES_AT, VERSION_AT, APPLICATION_AT = 28, 60, 68
#: The page of the schema is a leaf of a table: its type, and where its number of cells stands.
LEAF, CELLS_AT, CELL_POINTERS = 0x0D, HEADER_BYTES + 3, HEADER_BYTES + 8
#: Bytes of the numbers of a record, by their serial type; 8 and 9 are 0 and 1.
NUMBER_BYTES = {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 8: 0, 9: 0}


def is_recording(head: bytes) -> bool:
    """True for the first 72 bytes of a recording."""
    return head[:16] == MAGIC and number(head, APPLICATION_AT, 4) == APPLICATION_ID


def check_version(path: str, head: bytes) -> None:
    """Errors: LeakprobeError "unreadable_file" for a file of another program, "wrong_schema" for one of a
    newer leakprobe.
    """
    if len(head) < HEADER_BYTES or not is_recording(head):
        raise LeakprobeError(
            f"{path} is another program's SQLite file, not a leakprobe recording", "unreadable_file"
        )
    version = number(head, VERSION_AT, 4)
    if version > SCHEMA_VERSION:
        raise LeakprobeError(
            f"{path} has schema {version}, this leakprobe reads up to {SCHEMA_VERSION}: use the leakprobe that wrote it, or a newer one",
            "wrong_schema",
        )


def check_layout(data: bytes) -> None:
    """Errors: ValueError for bytes that leakprobe can't have written."""
    if number(data, 18, 2) == 0x0202:
        raise ValueError("it is in write-ahead-log mode")
    for at, length, value in FIXED:
        if number(data, at, length) != value:
            raise ValueError(f"byte {at} of its header is not that of a recording")
    if len(data) % PAGE_BYTES or number(data, PAGES_AT, 4) != len(data) // PAGE_BYTES:
        raise ValueError(f"its header gives {number(data, PAGES_AT, 4)} pages, but it has {len(data)} bytes")
    check_schema(data[:PAGE_BYTES], len(data) // PAGE_BYTES)


def check_schema(page: bytes, pages: int) -> None:
    expected: dict[tuple[object, ...], object] = dict(schema_rows().items())
    found: dict[tuple[object, ...], object] = {}
    count = number(page, CELLS_AT, 2)
    if page[HEADER_BYTES] != LEAF or count > 2 * len(expected):
        raise ValueError(f"its tables are not those of a recording of schema {SCHEMA_VERSION}")
    for i in range(count):
        kind, name, table, root, statement = record(page, number(page, CELL_POINTERS + 2 * i, 2))
        if not isinstance(root, int) or not 2 <= root <= pages:
            raise ValueError("a row of its schema has no page")
        found[kind, name, table] = statement
    if found != expected or count != len(expected):
        keys = [key for key in [*expected, *found] if expected.get(key, "") != found.get(key, "")]
        names = ", ".join(sorted({f"{key[1]!s:.40}" for key in keys}))
        raise ValueError(f"its tables are not those of a recording of schema {SCHEMA_VERSION}: {names}")


def record(page: bytes, at: int) -> list[object]:
    """The five columns of a row of the schema, which lies in one page."""
    size, at = varint(page, at)
    _rowid, at = varint(page, at)
    end, header_at = at + size, at
    header, at = varint(page, at)
    body = header_at + header
    columns: list[object] = []
    if end > PAGE_BYTES:
        raise ValueError("a row of its schema is longer than a page")
    while at < header_at + header and len(columns) < 5:
        kind, at = varint(page, at)
        length = (kind - 12) // 2 if kind >= 12 else NUMBER_BYTES.get(kind, PAGE_BYTES)
        if body + length > end:
            raise ValueError("a row of its schema is damaged")
        columns.append(value(page[body : body + length], kind))
        body += length
    if len(columns) != 5 or at != header_at + header:
        raise ValueError("a row of its schema has other columns")
    return columns


def value(data: bytes, kind: int) -> object:
    if kind == 0:
        return None
    if kind >= 13 and kind % 2:
        return data.decode("utf-8")
    return data if kind >= 12 else int.from_bytes(data, "big", signed=True)


def varint(data: bytes, at: int) -> tuple[int, int]:
    """(value, where it ends) of SQLite's integer of 1 to 9 bytes."""
    result = 0
    for i in range(9):
        if at >= len(data):
            raise ValueError("a row of its schema is cut off")
        byte, at = data[at], at + 1
        if i == 8:
            return result << 8 | byte, at
        result = result << 7 | byte & 0x7F
        if byte < 0x80:
            return result, at
    return result, at


def number(data: bytes, at: int, length: int) -> int:
    return int.from_bytes(data[at : at + length], "big")
