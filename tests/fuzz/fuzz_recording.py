"""Fuzzes the reader of recordings: damaged bytes, cells, schemas, journals, JSON and snapshots; what is read
must then print, export and compare, and answer every question of a snapshot.

    python tests/fuzz/fuzz_recording.py [SECONDS] [--seed N] [--count N] [--kinds KIND ...]

Seeds are the reports in corpus/recording and snapshots taken now.  Anything but a report or a LeakprobeError
of one line is a fault, and so is a file beside the input that is made, changed or removed: the input is kept
in $TMPDIR and the exit status is 1.  The last line counts what was tried.
"""

import argparse
import base64
import collections
import copy
import io
import json
import os
import pathlib
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
import traceback
import zlib

from leakprobe import recording
from leakprobe.errors import LeakprobeError
from leakprobe.judge.reports import merge
from leakprobe.report.compare import compare, print_comparison
from leakprobe.report.exports import FORMATS
from leakprobe.report.html import page
from leakprobe.report.paths import print_path
from leakprobe.snapshot import Snapshot

CORPUS = pathlib.Path(__file__).parent / "corpus" / "recording"
#: Values that a cell or a node of JSON is replaced with.
ODD = [
    None,
    True,
    0,
    -1,
    1,
    2**31,
    2**63 - 1,
    -(2**63),
    2**70,
    0.5,
    1e308,
    -1e308,
    float("inf"),
    float("nan"),
    "",
    "x",
    "noon",
    "\x00",
    "\x1b[2J",
    "\ud800",
    "<script>",
    "é" * 300,
    [],
    {},
    [[]],
    [None],
    {"a": None},
    {"step": 1},
    [1, 2, 3, 4],
    [[0, 0, 0, 0]],
]


def places(node, found):
    """(container, key) of every node inside ``node``."""
    for key, value in list(node.items() if isinstance(node, dict) else enumerate(node)):
        found.append((node, key))
        if isinstance(value, (dict, list)):
            places(value, found)
    return found


def damage_json(data, dice: random.Random):
    """A copy with some nodes replaced, deleted, doubled or exchanged."""
    data = copy.deepcopy(data)
    for _ in range(dice.choice([1, 1, 2, 4])):
        found = places(data, []) if isinstance(data, (dict, list)) else []
        if not found:
            return data
        (node, key), (other, other_key) = dice.choice(found), dice.choice(found)
        action = dice.random()
        if action < 0.6:
            node[key] = copy.deepcopy(dice.choice(ODD))
        elif action < 0.8:
            del node[key]
        elif isinstance(node, list) and action < 0.9:
            node += [copy.deepcopy(node[key])] * dice.choice([1, 50])
        else:
            node[key] = copy.deepcopy(other[other_key])
    return data


def damage_bytes(whole: bytes, dice: random.Random) -> bytes:
    data = bytearray(whole)
    for _ in range(dice.choice([1, 1, 2, 8, 64])):
        at = dice.randrange(len(data))
        action = dice.random()
        if action < 0.5:
            data[at] = dice.choice([0, 1, 0x7F, 0x80, 0xFF, dice.randrange(256)])
        elif action < 0.8:
            length, source = dice.randrange(1, 64), dice.randrange(len(data))
            data[at : at + length] = data[source : source + length]
        elif action < 0.9:
            data[at : at + 32] = bytes(len(data[at : at + 32]))
        else:
            data = data[: at + 1]
    return bytes(data)


def damage_cells(path: pathlib.Path, dice: random.Random) -> None:
    """Change, delete or double some rows of the recording."""
    with sqlite3.connect(path) as db:
        tables = [
            name
            for (name,) in db.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
            )
        ]
        for _ in range(dice.choice([1, 1, 3])):
            table = dice.choice(tables)
            column = dice.choice([row[1] for row in db.execute(f"PRAGMA table_info({table})")])
            keys = [row[0] for row in db.execute(f"SELECT {column} FROM {table}")]
            key = dice.choice(keys or [None])
            value = odd_cell(key, dice)
            statement = dice.choice(
                [f"UPDATE {table} SET {column} = ? WHERE {column} IS ?"] * 8
                + [f"UPDATE {table} SET {column} = ?", f"DELETE FROM {table}"]
            )
            try:
                db.execute(statement, [value, key][: statement.count("?")])
            except (sqlite3.Error, OverflowError, ValueError):
                pass  # what SQLite itself refuses can't be in a file
    db.close()


def odd_cell(old, dice: random.Random):
    if isinstance(old, str) and old[:1] in "{[" and dice.random() < 0.7:
        try:
            return json.dumps(damage_json(json.loads(old), dice))
        except ValueError:
            pass
    value = dice.choice(ODD)
    return json.dumps(value) if isinstance(value, (list, dict)) else value


def damage_schema(path: pathlib.Path, dice: random.Random) -> None:
    """Change what SQLite keeps of the tables, by its own statements or past them."""
    table = dice.choice(["lines", "notes", "steps", "sites", "meta", "source"])
    statement = dice.choice(
        [
            f"ALTER TABLE {table} ADD COLUMN extra AS (length(hex(zeroblob(1000000))))",
            f"ALTER TABLE {table} ADD COLUMN extra DEFAULT 3",
            f"ALTER TABLE {table} RENAME TO other",
            f"DROP TABLE {table}",
            f"DROP TABLE {table}; CREATE VIEW {table} AS SELECT * FROM notes",
            f"CREATE TRIGGER t AFTER INSERT ON {table} BEGIN SELECT 1; END",
            f"CREATE INDEX i ON {table} (1 + 1)",
            "CREATE VIRTUAL TABLE v USING fts3(a)",
            "PRAGMA journal_mode = WAL",
            "PRAGMA page_size = 512; VACUUM",
            "PRAGMA auto_vacuum = INCREMENTAL; VACUUM",
            "PRAGMA user_version = 0",
            "REINDEX",
            "VACUUM",
            f"UPDATE sqlite_master SET sql = replace(sql, 'TEXT', {dice.choice(['NULL', repr('INT'), repr('TEXT CHECK (1)')])}) WHERE name = '{table}'",
            f"UPDATE sqlite_master SET rootpage = {dice.choice([0, 1, 2, 3, -1, 2**31, 'NULL'])} WHERE name = '{table}'",
            f"UPDATE sqlite_master SET type = 'view' WHERE name = '{table}'",
            f"INSERT INTO sqlite_master SELECT * FROM sqlite_master WHERE name = '{table}'",
        ]
    )
    db = sqlite3.connect(path, isolation_level=None)
    try:
        db.execute("PRAGMA writable_schema = ON")
        for part in statement.split("; "):
            db.execute(part)
    except sqlite3.Error:
        pass
    db.close()


def damage_journal(path: pathlib.Path, dice: random.Random) -> None:
    """A transaction that never ends, its journal damaged or with the name of a file of someone else at its
    end.
    """
    db = sqlite3.connect(path, isolation_level=None)
    for pragma in (
        f"synchronous = {dice.choice(['OFF', 'FULL'])}",
        f"journal_mode = {dice.choice(['TRUNCATE', 'PERSIST', 'DELETE'])}",
        f"cache_size = {dice.choice([1, 20])}",
    ):
        db.execute(f"PRAGMA {pragma}").fetchall()
    db.execute("BEGIN IMMEDIATE")
    for i in range(dice.randrange(1, 40)):
        db.execute("INSERT INTO notes VALUES (?, 'gap', ?, '{}')", [1000 + i, "x" * dice.randrange(5000)])
    data, journal = path.read_bytes(), path.with_name(f"{path.name}-journal").read_bytes()
    db.execute("ROLLBACK")
    db.close()
    if dice.random() < 0.8:
        journal = damage_bytes(journal or b"x", dice)
    if dice.random() < 0.3:
        name = os.fsencode(path.with_name("victim"))
        journal += (1).to_bytes(4, "big") + name + len(name).to_bytes(4, "big") + sum(name).to_bytes(4, "big")
        journal += bytes.fromhex("d9d505f920a163d7")
    path.write_bytes(damage_bytes(data, dice) if dice.random() < 0.2 else data)
    path.with_name(f"{path.name}-journal").write_bytes(journal)


def damage_snapshot(data: dict, dice: random.Random) -> str:
    """JSON of a snapshot, damaged in its rows, its texts of JSON or its packed arrays."""
    data = copy.deepcopy(data)
    graph = data.get("graph")
    action = dice.random()
    if graph is None or action < 0.4:
        data = damage_json(data, dice)
    elif action < 0.8:
        key = dice.choice(["names", "cycles"])
        graph[key] = json.dumps(damage_json(json.loads(graph[key]), dice))
    else:
        key = dice.choice(["row", "edge", "flag", "address", "bytes", "group", "root"])
        array = damage_bytes(zlib.decompress(base64.b64decode(graph[key])) or b"x", dice)
        graph[key] = base64.b64encode(zlib.compress(array)).decode()
    return json.dumps(data)


def question(path: pathlib.Path, whole: Snapshot) -> str:
    """Ask a snapshot all that can be asked: "read", or the code of the error of load(); a later one is a
    fault.
    """
    try:
        taken = Snapshot.load(path)
    except LeakprobeError as error:
        assert "\n" not in str(error), error
        return error.code
    out = io.StringIO()
    taken.print(file=out)
    json.dumps(taken.to_dict())
    for diff in (taken.diff(whole), whole.diff(taken)):
        diff.print(file=out)
        json.dumps(diff.to_dict())
    for row in taken:
        row.where()
    if taken.graph is not None:
        types = taken.by_type()
        taken.dominators(50)
        taken.to_dot()
        for cycle in taken.cycles:
            cycle.print(file=out)
            (cycle.to_dot(), cycle.to_dict(), cycle.total_bytes, cycle.count, cycle.why())
        for row in types[:20]:
            for found, *_ in taken.paths(row.type) if row.type else []:
                (found.text(), str(found), found.to_dot())
    taken.save(path.with_name("saved"))
    return "read"


def exercise(path: pathlib.Path, whole_report, with_page: bool) -> str:
    """Read the file and use what it holds in every way: "read", or the code of the error."""
    try:
        report = recording.load(path).report
        out = io.StringIO()
        report.print(file=out)
        json.dumps(report.to_dict(), allow_nan=False)
        if with_page:
            page(report)
        for export in FORMATS.values():
            export(report)
        for number, finding in enumerate(report.findings, 1):
            print_path(number, finding, report, out)
        print_comparison(compare(whole_report, report), out, 20)
        merge([recording.load(path), recording.load(path)]).print(file=out)
    except LeakprobeError as error:
        assert "\n" not in str(error), error
        return error.code
    return "read"


#: Run in an interpreter that has nothing else in it: what a test run has imported makes each load ten times
#: as long.
TAKE = """
import gc, sys
import leakprobe
gc.disable()
for _ in range(3):
    ring = [{"a": bytearray(99)}]
    ring.append(ring)
leakprobe.snapshot(graph=True).save(sys.argv[1])
"""


def take_snapshots():
    """Two as plain data: with an object graph, and without."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "taken")
        subprocess.run(
            [sys.executable, "-c", TAKE, str(path)],
            check=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        data = json.loads(path.read_text())
    small = {key: data[key] for key in ("schema", "schema_version", "step", "rows")}
    return [{**data, "types": [], "dominators": []}, small]


class Fuzzer:
    """Seeds as recordings, as JSON and as snapshots; one file that is damaged anew each time."""

    KINDS = ("bytes", "cells", "json", "schema", "journal", "snapshot")

    def __init__(self, seed: int, folder: pathlib.Path, kinds=KINDS):
        self.dice, self.kinds = random.Random(seed), list(kinds)
        self.folder = folder / "fuzzed"
        self.folder.mkdir()
        self.path = self.folder / "damaged"
        self.counts: collections.Counter = collections.Counter()
        self.jsons = [json.loads(file.read_text()) for file in sorted(CORPUS.glob("*.json"))]
        self.recordings = []
        for number, file in enumerate(sorted(CORPUS.glob("*.json"))):
            recording.load(file).report.save(folder / f"{number}.leak")
            self.recordings.append((folder / f"{number}.leak").read_bytes())
        self.whole = recording.load(folder / "0.leak").report
        self.snapshots = take_snapshots() if "snapshot" in kinds else []
        if self.snapshots:
            (folder / "snapshot").write_text(json.dumps(self.snapshots[0]))
            self.whole_snapshot = Snapshot.load(folder / "snapshot")

    def make(self) -> str:
        """Write a damaged file, alone in its folder but for a file of someone else; how it was damaged."""
        for file in self.folder.iterdir():
            file.unlink()
        (self.folder / "victim").write_text("precious")
        kind = self.dice.choice(self.kinds)
        if kind in ("json", "snapshot"):
            text = (
                json.dumps(damage_json(self.dice.choice(self.jsons), self.dice))
                if kind == "json"
                else damage_snapshot(self.dice.choice(self.snapshots), self.dice)
            )
            self.path.write_bytes(
                damage_bytes(text.encode(), self.dice) if self.dice.random() < 0.2 else text.encode()
            )
        else:
            self.make_recording(kind)
        return kind

    def make_recording(self, kind: str) -> None:
        data = self.dice.choice(self.recordings)
        self.path.write_bytes(damage_bytes(data, self.dice) if kind == "bytes" else data)
        damage = {"cells": damage_cells, "schema": damage_schema, "journal": damage_journal}.get(kind)
        if damage is not None:
            damage(self.path, self.dice)

    def files(self) -> dict:
        return {
            file.name: (file.read_bytes(), file.stat().st_mtime_ns, file.stat().st_ino)
            for file in self.folder.iterdir()
            if file.name != "saved"  # by question()
        }

    def once(self) -> bool:
        """False if the reader let through what it should not."""
        kind = self.make()
        before = self.files()
        try:
            if kind == "snapshot":
                result = question(self.path, self.whole_snapshot)
            else:
                result = exercise(self.path, self.whole, self.dice.random() < 0.1)
            self.counts[kind, result] += 1
            assert self.files() == before, "reading changed what lies there"
        except Exception:
            kept = pathlib.Path(tempfile.gettempdir(), f"fault-{os.getpid()}")
            for name, (content, *_) in before.items():
                kept.with_name(f"{kept.name}-{name}").write_bytes(content)
            traceback.print_exc()
            print(f"the input is in {kept}-damaged")
            return False
        return True

    def results(self) -> set:
        return {result for _, result in self.counts}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("seconds", nargs="?", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=0, help="so many inputs instead of a time")
    parser.add_argument("--kinds", nargs="+", choices=Fuzzer.KINDS, default=Fuzzer.KINDS)
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory() as folder:
        fuzzer = Fuzzer(options.seed, pathlib.Path(folder), options.kinds)
        tried = 0
        while tried < options.count if options.count else time.monotonic() < end:
            if not fuzzer.once():
                return 1
            tried += 1
        print(
            f"{tried} inputs:",
            ", ".join(f"{kind} {result} {count}" for (kind, result), count in sorted(fuzzer.counts.items())),
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
