"""Reading a recording changes nothing, waits for nothing and opens nothing but regular files, whatever lies
there.
"""

import os
import pathlib
import socket
import sqlite3

import crafted
import pytest
from reading import READERS, check_refused, no_hang, unchanged  # noqa: F401

from leakprobe import recording
from leakprobe.errors import LeakprobeError
from leakprobe.record import rollback


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a recording in it; temporary files go elsewhere."""
    for name in ("place", "temporary", "honest"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr("tempfile.tempdir", None)
    crafted.honest(tmp_path / "place" / "run.leak")
    crafted.honest(tmp_path / "honest" / "honest.leak")
    return tmp_path / "place"


def read(reader: str, place) -> int:
    honest = place.parent / "honest" / "honest.leak"
    with unchanged(place):
        code = READERS[reader](str(place / "run.leak"), str(honest))
    assert os.listdir(place.parent / "temporary") == []
    return code


VERBS = [name for name in READERS if name != "Snapshot.load"]


# ---- journals ----


@pytest.mark.parametrize("reader", VERBS)
def test_the_file_that_a_journal_names_stays(reader, place, capsys):
    """The super-journal: SQLite deletes the file that a hot journal names at its end."""
    victim = place / "thesis.txt"
    victim.write_text("precious")
    journal = crafted.hot_journal(place / "run.leak")
    (place / "run.leak-journal").write_bytes(crafted.with_super_journal(journal, victim))
    check_refused(
        capsys, read(reader, place), "super-journal" if " " not in reader and reader in VERBS[:7] else ""
    )
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("reader", VERBS)
def test_a_commit_that_was_cut_off_is_undone_on_a_copy(reader, place):
    """An honest hot journal: the report is that of the last commit, file and journal stay as they are."""
    whole = recording.load(place / "run.leak").report.to_dict()
    (place / "run.leak-journal").write_bytes(crafted.hot_journal(place / "run.leak"))
    assert read(reader, place) in (0, 1)
    assert recording.load(place / "run.leak").report.to_dict() == whole


def fifo(path):
    os.mkfifo(path)


def unix_socket(path):
    here = os.getcwd()
    os.chdir(path.parent)  # its name may be too long for an address
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


IN_THE_PLACE = {
    "fifo": fifo,
    "folder": lambda path: path.mkdir(),
    "socket": unix_socket,
    "link to nothing": lambda path: path.symlink_to("nothing"),
    "link to itself": lambda path: path.symlink_to(path.name),
    "link to a device": lambda path: path.symlink_to("/dev/zero"),
    "link to a fifo": lambda path: (os.mkfifo(path.with_name("other")), path.symlink_to("other")),
}


@pytest.mark.parametrize("what", [*IN_THE_PLACE, "link to a file"])
@pytest.mark.parametrize("reader", VERBS)
def test_what_lies_in_the_place_of_the_journal_is_not_opened(reader, what, place, capsys):
    journal = place / "run.leak-journal"
    if what == "link to a file":
        (place / "thesis.txt").write_text("precious")
        journal.symlink_to("thesis.txt")
    else:
        IN_THE_PLACE[what](journal)
    check_refused(capsys, read(reader, place))


@pytest.mark.parametrize("what", [w for w in IN_THE_PLACE if w != "folder"])
@pytest.mark.parametrize("reader", READERS)
def test_what_lies_in_the_place_of_the_recording_is_not_opened(reader, what, place, capsys):
    (place / "run.leak").unlink()
    IN_THE_PLACE[what](place / "run.leak")
    check_refused(capsys, read(reader, place))


@pytest.mark.parametrize("reader", ["diff", "why", "cycles", "live", "load", "Snapshot.load"])
def test_a_folder_is_no_recording(reader, place, capsys):
    (place / "run.leak").unlink()
    (place / "run.leak").mkdir()
    check_refused(capsys, read(reader, place))


def test_a_folder_is_read_past_all_that_is_no_recording(place):
    """FIFOs, devices, links to them and a journal that leads nowhere lie beside an honest one."""
    for name, make in IN_THE_PLACE.items():
        (place / name).mkdir()
        make(place / name / "x")
        (place / name / "x").rename(place / f"a {name}")
        (place / name / "other").exists() and (place / name / "other").rename(place / f"other {name}")
        (place / name).rmdir() if not list((place / name).iterdir()) else None
    with unchanged(place):
        assert recording.load_merged([place]).report.verdict == "growing"


@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
@pytest.mark.parametrize("reader", VERBS)
def test_files_of_a_write_ahead_log_are_neither_read_nor_made(reader, suffix, place):
    (place / f"run.leak{suffix}").write_bytes(bytes.fromhex("377f0682") + os.urandom(4096))
    assert read(reader, place) in (0, 1)


@pytest.mark.parametrize("reader", VERBS)
def test_a_recording_that_was_turned_to_a_write_ahead_log_is_refused(reader, place, capsys):
    path = place / "run.leak"
    db = sqlite3.connect(path)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("DELETE FROM lines")
    db.commit()
    kept = {file: file.read_bytes() for file in place.iterdir()}
    db.close()
    for file, content in kept.items():
        file.write_bytes(content)
    check_refused(capsys, read(reader, place))


HEADERS = {
    "no records": lambda j: j[:8] + bytes(4) + j[12:],
    "more records than there are": lambda j: j[:8] + (2**31).to_bytes(4, "big") + j[12:],
    "more pages than there can be": lambda j: j[:16] + (2**32 - 1).to_bytes(4, "big") + j[20:],
    "no pages": lambda j: j[:16] + bytes(4) + j[20:],
    "no sectors": lambda j: j[:20] + bytes(4) + j[24:],
    "large sectors": lambda j: j[:20] + (2**31).to_bytes(4, "big") + j[24:],
    "odd sectors": lambda j: j[:20] + (513).to_bytes(4, "big") + j[24:],
    "large pages": lambda j: j[:24] + (65536).to_bytes(4, "big") + j[28:],
    "a wrong nonce": lambda j: j[:12] + bytes(4) + j[16:],
    "its magic only": lambda j: j[:8],
    "half of it": lambda j: j[: len(j) // 2],
    "noise": lambda j: os.urandom(9000),
    "its header again and again": lambda j: j[:512] * 9,
    "a page 1 of something else": lambda j: j[:516] + bytes(4096) + j[4612:],
}


@pytest.mark.parametrize("name", HEADERS)
def test_journals_that_are_damaged(name, place):
    """Read as SQLite would, or refused; never anything else."""
    journal = HEADERS[name](crafted.hot_journal(place / "run.leak"))
    (place / "run.leak-journal").write_bytes(journal)
    with unchanged(place):
        try:
            recording.load(place / "run.leak")
        except LeakprobeError as error:
            assert error.code == "unreadable_file" and "\n" not in str(error)


@pytest.mark.parametrize("seed", range(12))
def test_a_journal_is_undone_as_sqlite_does(seed, tmp_path):
    """The oracle is SQLite itself, on another copy: transactions cut off at any time, journals cut at any
    byte.
    """
    import random

    dice = random.Random(seed)
    path = crafted.honest(tmp_path / "run.leak", findings=dice.choice([1, 30, 200]))
    db = sqlite3.connect(path, isolation_level=None)
    for pragma in (
        f"journal_mode = {dice.choice(['TRUNCATE', 'DELETE', 'PERSIST'])}",
        f"synchronous = {dice.choice(['OFF', 'FULL'])}",
        f"cache_size = {dice.choice([1, 10, 1000])}",
    ):
        db.execute(f"PRAGMA {pragma}").fetchall()
    db.execute("BEGIN IMMEDIATE")
    for i in range(dice.randrange(1, 60)):
        db.execute("INSERT INTO notes VALUES (?, 'x', ?, '{}')", [100 + i, "x" * dice.randrange(1, 9000)])
        if dice.random() < 0.2:
            db.execute("DELETE FROM findings WHERE position % 3 = ?", [dice.randrange(3)])
    data, journal = path.read_bytes(), (tmp_path / "run.leak-journal").read_bytes()
    db.execute("ROLLBACK")
    db.close()
    for cut in {len(journal), *(dice.randrange(len(journal) + 1) for _ in range(6))}:
        copy = tmp_path / f"copy{cut}"
        copy.write_bytes(data)
        pathlib.Path(f"{copy}-journal").write_bytes(journal[:cut])
        oracle = sqlite3.connect(copy, isolation_level=None)
        try:
            oracle.execute("PRAGMA user_version").fetchone()  # rolls back
        except sqlite3.DatabaseError:
            continue
        finally:
            oracle.close()
        assert rollback.roll_back(data, journal[:cut]) == copy.read_bytes()


# ---- what is in the file ----


@pytest.mark.parametrize("name", crafted.BOMBS)
def test_bombs_are_refused(name, place, capsys):
    path = place / "run.leak"
    path.write_bytes(crafted.BOMBS[name](path.read_bytes()))
    for reader in VERBS:
        check_refused(capsys, read(reader, place))


@pytest.mark.parametrize("name", crafted.SCHEMAS)
def test_sqlite_is_not_given_a_schema_of_anyone_else(name, place, monkeypatch):
    """Views, triggers, generated columns, expressions: refused before SQLite compiles any of them."""
    path = place / "run.leak"
    path.write_bytes(crafted.SCHEMAS[name](path.read_bytes()))

    def connect(*_args, **_options):
        raise AssertionError("SQLite was asked")

    monkeypatch.setattr("leakprobe.record.database.sqlite3.connect", connect)
    with pytest.raises(LeakprobeError, match="damaged"):
        recording.load(path)


def test_a_page_is_read_once(place):
    """What SQLite itself would walk for ever: levels of pages that all lead to the same one."""
    path = place / "run.leak"
    path.write_bytes(crafted.shared_pages(path.read_bytes()))
    db = sqlite3.connect(path)
    rows = db.execute("SELECT lineno FROM lines").fetchmany(100_000)
    db.close()
    assert len(rows) == 100_000 > path.stat().st_size, "more rows than bytes"
    with pytest.raises(LeakprobeError, match="2nd reference|out of order"):
        recording.load(path)


def test_the_steps_of_reading_are_bounded_by_the_size(place, monkeypatch):
    monkeypatch.setattr("leakprobe.record.database.STEPS_PER_BYTE", 0)
    monkeypatch.setattr("leakprobe.record.database.FIRST_STEPS", 0)
    monkeypatch.setattr("leakprobe.record.database.STEPS_A_CALL", 100)
    with pytest.raises(LeakprobeError, match="interrupted"):
        recording.load(place / "run.leak")


def test_a_file_that_is_larger_than_any_recording_is_refused_unread(place):
    os.truncate(place / "run.leak", 2**40)
    with pytest.raises(LeakprobeError, match="more than 1,073,741,824"):
        recording.load(place / "run.leak")


def test_no_file_of_this_machine_is_shown_because_a_report_names_it(place):
    """A report of a stranger names a file and a line; its text must not be on the page that is made of it."""
    from leakprobe.report.html import page

    secret = place / "secret.py"
    secret.write_text("\n".join(f"password {i}" for i in range(99)))
    from sample_reports import finding, report

    from leakprobe.model.frames import Frame

    what = report([finding(allocation=Frame(str(secret), 50, "f"))])
    what.to_json(place / "report.json")
    assert "password" in page(what), "a report of this process shows its source"
    assert "password" not in page(recording.load(place / "report.json").report)
