"""Undoes a transaction that was cut off, on bytes: what SQLite does with a hot journal, without its file
operations.

Format: sqlite.org/fileformat2.html, section 3.  SQLite itself would follow the name of a super-journal at the
journal's end and delete that file, so a journal from anywhere is never given to it.
"""

import struct

from leakprobe.record.schema import PAGE_BYTES

JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
#: In place of the number of records: as many as the file holds; then there is one header only.
ALL_RECORDS = 0xFFFFFFFF
#: Magic, records, nonce of the checksums, pages of the database before, bytes of a sector, bytes of a page.
HEADER = struct.Struct(">8sIIIII")
RECORD_BYTES = 4 + PAGE_BYTES + 4


def roll_back(database: bytes, journal: bytes) -> bytes:
    """The database as it was before the transaction of the journal; as it is where the journal holds none.

    Errors: ValueError for a journal that leakprobe can't have written.
    """
    if not journal.startswith(JOURNAL_MAGIC):
        return database  # SQLite takes it for empty too
    if journal.endswith(JOURNAL_MAGIC):
        raise ValueError("its journal names another file (a super-journal)")
    pages, before, at = bytearray(database), None, 0
    restored: set[int] = set()
    while journal[at : at + 8] == JOURNAL_MAGIC and len(journal) - at >= HEADER.size:
        _, count, nonce, size, sector, page_bytes = HEADER.unpack_from(journal, at)
        if len(journal) - at < sector:
            break  # its header was not written to its end
        check_header(len(database), len(journal), size, sector, page_bytes)
        before = size if before is None else before
        at += sector
        whole, at = restore(pages, journal, at, count, nonce, before, restored)
        if not whole or count == ALL_RECORDS:
            break
        at += -at % sector
    return bytes(pages if before is None else pages[: before * PAGE_BYTES])


def check_header(database_bytes: int, journal_bytes: int, size: int, sector: int, page_bytes: int) -> None:
    if page_bytes != PAGE_BYTES or not 32 <= sector <= 65536 or sector & (sector - 1):
        raise ValueError(f"its journal has pages of {page_bytes} bytes, sectors of {sector}")
    if size * PAGE_BYTES > database_bytes + journal_bytes:  # each page is in one of the two
        raise ValueError(f"its journal gives {size} pages, more than there can be")


def restore(
    pages: bytearray, journal: bytes, at: int, count: int, nonce: int, before: int, restored: set[int]
) -> tuple[bool, int]:
    """Put back the pages from ``at`` on, each as it was first; (whether all were whole, where they end)."""
    while count and at + RECORD_BYTES <= len(journal):
        number = int.from_bytes(journal[at : at + 4], "big")
        page = journal[at + 4 : at + 4 + PAGE_BYTES]
        check = int.from_bytes(journal[at + 4 + PAGE_BYTES : at + RECORD_BYTES], "big")
        if number == 0 or check != checksum(page, nonce):
            return False, at  # the end of what was written
        at += RECORD_BYTES
        count -= count != ALL_RECORDS
        if number <= before and number not in restored:
            restored.add(number)
            start = (number - 1) * PAGE_BYTES
            pages.extend(bytes(max(0, start + PAGE_BYTES - len(pages))))
            pages[start : start + PAGE_BYTES] = page
    return count in (0, ALL_RECORDS), at


def checksum(page: bytes, nonce: int) -> int:
    """Every 200th byte from the end, and the nonce."""
    return (nonce + sum(page[PAGE_BYTES - 200 : 0 : -200])) & 0xFFFFFFFF
