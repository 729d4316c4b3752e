"""Recordings that a stranger could send: journals, schemas, pages and cells that leakprobe never writes.

    python tests/attacks/crafted.py        # what refusing each costs, beside reading an honest recording of
    the same size

BOMBS maps a name to a function that turns the file of an honest recording into the bomb.
"""

import contextlib
import json
import os
import pathlib
import resource
import sqlite3
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "unit"))  # also where this is run by hand

from sample_reports import finding, note, report

PAGE = 4096
JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")


def honest(path, findings: int = 2) -> pathlib.Path:
    """A recording of a report with so many findings."""
    what = report([finding(fingerprint=f"{i:012x}") for i in range(findings)], [note()])
    what.sites = [
        {"medium": "cpu", "type": None, "live_bytes": 9, "live_count": 3, "bytes_per_step": None, "survivors": [[1, 2, 3, 9]],
         "allocation": finding().allocation, "allocation_stack": finding().allocation_stack}
    ]  # fmt: skip
    what.run = {"program": "train.py", "rank": 0}
    path = pathlib.Path(path)
    path.unlink(missing_ok=True)
    what.save(path)
    return path


def execute(path, *statements) -> None:
    db = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        db.execute(statement)
    db.close()


# ---- journals ----


def hot_journal(path) -> bytes:
    """The journal of a transaction that changes all of the recording and never ends; the file is left as it
    was then.
    """
    db = sqlite3.connect(path, isolation_level=None)
    for pragma in ("journal_mode = TRUNCATE", "synchronous = OFF", "cache_size = 1"):
        db.execute(f"PRAGMA {pragma}").fetchall()
    db.execute("BEGIN IMMEDIATE")
    db.execute("DELETE FROM findings")
    db.executemany("INSERT INTO notes VALUES (?, 'x', ?, '{}')", [(i, "x" * 3000) for i in range(9, 40)])
    data, journal = pathlib.Path(path).read_bytes(), pathlib.Path(f"{path}-journal").read_bytes()
    db.execute("ROLLBACK")
    db.close()
    pathlib.Path(f"{path}-journal").unlink(missing_ok=True)
    pathlib.Path(path).write_bytes(data)
    return journal


def with_super_journal(journal: bytes, name) -> bytes:
    """The journal as SQLite writes it where several files change at once: the name of another file at its
    end.
    """
    text = os.fsencode(name)
    return journal + struct.pack(">I", 1) + text + struct.pack(">II", len(text), sum(text)) + JOURNAL_MAGIC


# ---- pages ----


@contextlib.contextmanager
def as_file(data: bytes):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "crafted")
        path.write_bytes(data)
        yield path


def root_of(data: bytes, table: str) -> int:
    with as_file(data) as path:
        db = sqlite3.connect(path)
        root = db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", [table]).fetchone()[0]
        db.close()
        return root


def with_pages(data: bytes, pages: dict) -> bytes:
    """The database with some pages replaced or added, and their number in its header."""
    count = max(len(data) // PAGE, *pages)
    made = bytearray(data) + bytes(count * PAGE - len(data))
    for number, page in pages.items():
        made[(number - 1) * PAGE : number * PAGE] = page
    made[28:32] = count.to_bytes(4, "big")
    return bytes(made)


def interior_page(child: int, pointers: int) -> bytes:
    """A page of a table's tree whose children are all the same page."""
    page = bytearray(PAGE)
    page[0] = 5
    start = PAGE - 5 * pointers
    page[3:5], page[5:7] = pointers.to_bytes(2, "big"), start.to_bytes(2, "big")
    page[8:12] = child.to_bytes(4, "big")
    for i in range(pointers):
        at = start + 5 * i
        page[12 + 2 * i : 14 + 2 * i] = at.to_bytes(2, "big")
        page[at : at + 5] = child.to_bytes(4, "big") + b"\x01"
    return bytes(page)


def varint(value: int) -> bytes:
    parts = [value & 0x7F]
    while value := value >> 7:
        parts.append(value & 0x7F | 0x80)
    return bytes(reversed(parts))


#: Bytes of a row's text that stay in its page where the rest fills whole other pages.
LOCAL = (PAGE - 12) * 32 // 255 - 23


def leaf_page(overflow_pages: int, first: int, pointers: int) -> bytes:
    """A page of rows of ``lines``: all its pointers lead to one cell, whose text goes on in other pages."""
    payload = LOCAL + (PAGE - 4) * overflow_pages
    text = payload - 7 if payload < 8000 else payload - 9
    header = varint(2 * text + 13) + b"\x09\x09\x09"
    record = varint(len(header) + 1) + header
    record += b"x" * (payload - len(record))
    cell = varint(payload) + b"\x01" + record[:LOCAL] + (first.to_bytes(4, "big") if overflow_pages else b"")
    page, at = bytearray(PAGE), PAGE - len(cell)
    page[0], page[3:5], page[5:7] = 13, pointers.to_bytes(2, "big"), at.to_bytes(2, "big")
    page[at:] = cell
    for i in range(pointers):
        page[8 + 2 * i : 10 + 2 * i] = at.to_bytes(2, "big")
    return bytes(page)


def shared_pages(data: bytes) -> bytes:
    """Levels of pages, each with 500 pointers to the next: 501 ** 6 rows in 7 pages."""
    first = len(data) // PAGE + 1
    pages = {root_of(data, "lines"): interior_page(first, 500)}
    pages.update({first + i: interior_page(first + i + 1, 500) for i in range(5)})
    return with_pages(data, {**pages, first + 5: leaf_page(0, 0, 1)})


def shared_cells(data: bytes) -> bytes:
    """600 rows that are one cell, with a text of ten pages."""
    first = len(data) // PAGE + 1
    chain = {
        first + i: (first + i + 1 if i < 9 else 0).to_bytes(4, "big") + b"y" * (PAGE - 4) for i in range(10)
    }
    return with_pages(data, {root_of(data, "lines"): leaf_page(10, first, 600), **chain})


def looped_text(data: bytes) -> bytes:
    """A text of 900 MB, in a page that leads to itself."""
    first = len(data) // PAGE + 1
    loop = {first: first.to_bytes(4, "big") + b"y" * (PAGE - 4)}
    return with_pages(data, {root_of(data, "lines"): leaf_page(220_000, first, 1), **loop})


def pages_that_are_not_there(data: bytes) -> bytes:
    return data[:28] + (2**31).to_bytes(4, "big") + data[32:]


# ---- schemas and cells ----


def by(*statements):
    """A change by SQL."""

    def change(data: bytes) -> bytes:
        with as_file(data) as path:
            execute(path, *statements)
            return path.read_bytes()

    return change


SLOW = "length(replace(printf('%.*c', 30000000, 'x'), 'x', 'yy'))"
WITH_COUNT = (
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT 'f', 1, count(*), 1 FROM c"
)
SCHEMAS = {
    "generated column": by(
        "DROP TABLE lines",
        f"CREATE TABLE lines (filename TEXT, lineno INTEGER, bytes_per_step, live_bytes AS ({SLOW}))",
        "INSERT INTO lines (filename, lineno, bytes_per_step) VALUES ('f', 1, 1)",
    ),
    "stored column": by(
        "DROP TABLE lines",
        "CREATE TABLE lines (filename TEXT, lineno INTEGER, bytes_per_step, live_bytes AS (1) STORED)",
    ),
    "view": by("DROP TABLE lines", f"CREATE VIEW lines(filename, lineno, bytes_per_step, live_bytes) AS {WITH_COUNT}"),
    "trigger": by("CREATE TRIGGER t AFTER DELETE ON notes BEGIN DELETE FROM meta; END"),
    "expression index": by("CREATE INDEX i ON notes (length(text))"),
    "virtual table": by("CREATE VIRTUAL TABLE more USING fts3(a)"),
    "more tables": by(*(f"CREATE TABLE t{i} (a)" for i in range(400))),
    "many columns": by(
        "DROP TABLE lines",
        f"CREATE TABLE lines (filename, lineno, bytes_per_step, live_bytes, {', '.join(f'c{i}' for i in range(1900))})",
    ),
    "default expression": by("DROP TABLE lines", "CREATE TABLE lines (filename, lineno, bytes_per_step, live_bytes DEFAULT (zeroblob(900000000)))"),
    "check": by("DROP TABLE lines", f"CREATE TABLE lines (filename, lineno, bytes_per_step, live_bytes CHECK (1 < {SLOW}))"),
    "statistics": by("ANALYZE"),
    "write-ahead log": by("PRAGMA journal_mode = WAL", "DELETE FROM lines"),
    "pages that move": by("PRAGMA auto_vacuum = FULL", "VACUUM"),
}  # fmt: skip
BOMBS = {
    **SCHEMAS,
    "shared pages": shared_pages,
    "shared cells": shared_cells,
    "a text that never ends": looped_text,
    "pages that are not there": pages_that_are_not_there,
    "nested JSON": by("UPDATE findings SET data = printf('%.*c', 40000, '[')"),
    "digits": by("UPDATE findings SET data = '[' || printf('%.*c', 40000, '9') || ']'"),
    "a list of lists": by("UPDATE findings SET data = '[' || replace(printf('%.*c', 20000, 'x'), 'x', '[],') || '0]'"),
}  # fmt: skip


def fill(path, size: int) -> None:
    """Notes until the recording has so many bytes."""
    row = json.dumps({"kind": "gap", "text": "x" * 200, "medium": None})
    db = sqlite3.connect(path, isolation_level=None)
    position = 100
    while db.execute("PRAGMA page_count").fetchone()[0] * PAGE < size:
        db.execute("INSERT INTO notes VALUES (?, 'gap', 'x', ?)", [position, row])
        position += 1
    db.close()


COST = """
import resource, sys, time
from leakprobe import recording
from leakprobe.errors import LeakprobeError
def read(path):
    try: recording.load(path); return "read"
    except LeakprobeError as error: return str(error).partition(": ")[2]
read(sys.argv[1])
before, spent = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, {}
came = read(sys.argv[2])
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
for turn in range(40):
    for path in sys.argv[2:]:
        began = time.perf_counter_ns()
        read(path)
        spent[path] = min(spent.get(path, 1e12), time.perf_counter_ns() - began)
print(*(spent[path] / 1e6 for path in sys.argv[2:]), grown, came, sep="|")
"""


def costs(warm, *paths) -> tuple[list[float], int, str]:
    """Milliseconds of one reading of each, the fastest of 40 in turns; KiB that the first took at its most,
    and what came out.
    """
    done = subprocess.run(
        [sys.executable, "-c", COST, *map(str, (warm, *paths))], capture_output=True, text=True, timeout=600,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (300, 300)),
    )  # fmt: skip
    if done.returncode:
        return [float("nan")] * len(paths), 0, f"ended with {done.returncode}: {done.stderr.strip()[-200:]}"
    *times, kib, came = done.stdout.strip().split("|", len(paths) + 1)
    return [float(t) for t in times], int(kib), came


def main() -> None:
    """A row for each bomb: its size, its cost, and that beside an honest recording of its size."""
    with tempfile.TemporaryDirectory() as folder:
        warm = honest(pathlib.Path(folder, "warm.leak"))
        data, bomb, whole = (
            warm.read_bytes(),
            pathlib.Path(folder, "bomb.leak"),
            pathlib.Path(folder, "whole.leak"),
        )
        print(
            "| what | bytes | came out | refused in | an honest one of this size is read in | ratio | memory |"
        )
        print("|---|---|---|---|---|---|---|")
        for name, change in BOMBS.items():
            bomb.write_bytes(change(data))
            fill(honest(whole), bomb.stat().st_size)
            (refused, read), kib, came = costs(warm, bomb, whole)
            print(
                f"| {name} | {bomb.stat().st_size:,} | {came:.70} | {refused:.2f} ms | {read:.2f} ms | {refused / read:.2f} | {kib:,} KiB |",
                flush=True,
            )


if __name__ == "__main__":
    main()
