"""Fuzzes the reader of recordings: damaged bytes, cells and JSON; what is read must then print, export and compare.

    python tests/fuzz/fuzz_recording.py [SECONDS] [--seed N] [--count N]

Seeds are the reports in corpus/recording.  Anything but a report or a LeakprobeError is a fault: the input is kept in
$TMPDIR and the exit status is 1.  The last line counts what was tried.
"""

import argparse
import collections
import copy
import io
import json
import os
import pathlib
import random
import sqlite3
import sys
import tempfile
import time
import traceback

from leakprobe import recording
from leakprobe.errors import LeakprobeError
from leakprobe.judge.reports import merge
from leakprobe.report.compare import compare, print_comparison
from leakprobe.report.exports import FORMATS
from leakprobe.report.html import page
from leakprobe.report.paths import print_path

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
            print_path(number, finding, out)
        print_comparison(compare(whole_report, report), out, 20)
        merge([recording.load(path), recording.load(path)]).print(file=out)
    except LeakprobeError as error:
        return error.code
    return "read"


class Fuzzer:
    """Seeds as recordings and as JSON; one file that is damaged anew each time."""

    def __init__(self, seed: int, folder: pathlib.Path):
        self.dice, self.path, self.folder = random.Random(seed), folder / "damaged", folder
        self.counts: collections.Counter = collections.Counter()
        self.jsons = [json.loads(file.read_text()) for file in sorted(CORPUS.glob("*.json"))]
        self.recordings = []
        for number, file in enumerate(sorted(CORPUS.glob("*.json"))):
            recording.load(file).report.save(folder / f"{number}.leak")
            self.recordings.append((folder / f"{number}.leak").read_bytes())
        self.whole = recording.load(folder / "0.leak").report

    def make(self) -> str:
        """Write a damaged file; how it was damaged."""
        kind = self.dice.choice(["bytes", "cells", "json"])
        if kind == "json":
            text = json.dumps(damage_json(self.dice.choice(self.jsons), self.dice))
            self.path.write_bytes(
                damage_bytes(text.encode(), self.dice) if self.dice.random() < 0.2 else text.encode()
            )
        elif kind == "bytes":
            self.path.write_bytes(damage_bytes(self.dice.choice(self.recordings), self.dice))
        else:
            self.path.write_bytes(self.dice.choice(self.recordings))
            damage_cells(self.path, self.dice)
        return kind

    def once(self) -> bool:
        """False if the reader let through what it should not."""
        kind = self.make()
        try:
            self.counts[kind, exercise(self.path, self.whole, self.dice.random() < 0.1)] += 1
        except Exception:
            kept = pathlib.Path(tempfile.gettempdir(), f"fault-{os.getpid()}")
            kept.write_bytes(self.path.read_bytes())
            traceback.print_exc()
            print(f"the input is in {kept}")
            return False
        return True

    def results(self) -> set:
        return {result for _, result in self.counts}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("seconds", nargs="?", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=0, help="so many inputs instead of a time")
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory() as folder:
        fuzzer = Fuzzer(options.seed, pathlib.Path(folder))
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
