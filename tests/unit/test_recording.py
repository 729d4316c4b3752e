"""Recordings by hand: what goes in comes out, files that are none are named, and writing never disturbs the
run.
"""

import itertools
import json
import os
import shutil
import sqlite3
import stat

import pytest
from fuzz_recording import Fuzzer
from sample_reports import finding, note, peak, report

from leakprobe import recording
from leakprobe.errors import LeakprobeError
from leakprobe.model.report import Report
from leakprobe.record import place, schema, writer
from leakprobe.report.text import verdict_line

SETTINGS = {"warmup": 5}
RUN = {"program": "train.py", "pid": 7}


def rows(step: int):
    """The rows of one mark."""
    media = {
        "python": {"live_bytes": 100 * step, "peak_bytes": 100 * step},
        "cpu": {"live_bytes": step, "peak_bytes": step + 1},
    }
    timeline = {"step": step, "epoch": 1, "time": step / 8, "media": media}
    memory = {
        "step": step,
        "rss": None,
        "python_heap": 100 * step,
        "native_accounted": step,
        "probe_overhead": 9,
        "device": 3,
    }
    return timeline, memory


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.leak"


@pytest.fixture
def recorder(path):
    made = recording.Recorder(path, RUN, SETTINGS)
    yield made
    made.close()


def commit(recorder, steps, what=None):
    for step in steps:
        recorder.mark(*rows(step))
    recorder._next_commit = 0.0
    recorder.mark(*rows(steps[-1]), what)


def sample(**changes):
    what = report([finding()], [note()])
    what.run = dict(RUN)
    what.sites = [
        {"medium": "cpu", "type": None, "live_bytes": 9, "live_count": 3, "bytes_per_step": None, "survivors": [[1, 2, 3, 9]],
         "allocation": finding().allocation, "allocation_stack": finding().allocation_stack}
    ]  # fmt: skip
    what.peaks = [peak()]
    return what


def test_save_and_load_give_the_same_report(path):
    what = sample()
    what.save(path)
    loaded = recording.load(path)
    assert loaded.report.to_dict() == what.to_dict()
    assert (loaded.state, loaded.label) == ("ended", "run.leak")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(path.parent) == ["run.leak"]


def test_json_and_recordings_are_read_alike(path, tmp_path):
    what = sample()
    what.to_json(tmp_path / "report.json")
    assert recording.load(tmp_path / "report.json").report.to_dict() == what.to_dict()


def test_every_committed_mark_can_be_read_while_the_file_is_written(recorder, path):
    commit(recorder, range(1, 9), sample())
    loaded = recording.load(path)
    assert loaded.state == "running"
    assert [row["step"] for row in loaded.report.timeline] == list(range(1, 9))
    assert loaded.report.timeline[-1] == rows(8)[0]
    assert loaded.report.memory[-1] == rows(8)[1]
    assert loaded.report.findings == sample().findings
    assert loaded.report.verdict == "growing" and loaded.report.steps == {"warmup": 5, "measured": 3}
    assert "the run still goes on" in loaded.report.notes[-1].text


def test_marks_wait_for_the_next_commit(recorder, path):
    commit(recorder, [1])
    recorder._next_commit = float("inf")
    recorder.mark(*rows(2))
    assert len(recording.load(path).report.timeline) == 1
    for step in range(3, 3 + writer.MAX_BATCH):
        recorder.mark(*rows(step))
    assert len(recording.load(path).report.timeline) >= writer.MAX_BATCH


def test_a_file_that_was_cut_off_is_whole_to_its_last_commit(recorder, path, tmp_path):
    commit(recorder, range(1, 20))
    copy = tmp_path / "copy.leak"
    shutil.copyfile(path, copy)
    loaded = recording.load(copy)
    assert loaded.state == "cut off"
    assert len(loaded.report.timeline) == 19
    assert "without closing its recording" in loaded.report.notes[-1].text


def test_a_commit_that_was_cut_off_is_rolled_back_also_in_a_folder_that_cannot_be_written(
    recorder, path, tmp_path
):
    """A hot journal: the pages of a transaction are in the file, its end is not."""
    commit(recorder, range(1, 4))
    recorder._db.execute("PRAGMA cache_size = 1")
    recorder._db.execute("BEGIN IMMEDIATE")
    recorder._db.execute("DELETE FROM steps")
    recorder._db.executemany(
        "INSERT INTO notes VALUES (?, 'x', ?, '{}')", [(i, "x" * 3000) for i in range(50)]
    )
    copy = tmp_path / "copy.leak"
    shutil.copyfile(path, copy)
    shutil.copyfile(f"{path}-journal", f"{copy}-journal")
    recorder._db.execute("ROLLBACK")
    assert os.path.getsize(f"{copy}-journal") > 512
    loaded = recording.load(copy)
    assert len(loaded.report.timeline) == 3 and loaded.state == "cut off"


def test_old_steps_are_thinned_and_the_ends_are_kept(path, monkeypatch):
    monkeypatch.setattr(writer, "MAX_STEPS", 200)
    recorder = recording.Recorder(path, RUN, SETTINGS)
    for step in range(1, 2001):
        recorder.mark(*rows(step))
    recorder.close(sample())
    loaded = recording.load(path).report
    steps = [row["step"] for row in loaded.timeline]
    assert len(steps) <= 200 + writer.MAX_BATCH
    assert steps[0] == 1 and steps[-60:] == list(range(1941, 2001))
    gaps = [b - a for a, b in itertools.pairwise(steps)]
    assert max(gaps) <= 128, "thinned evenly"
    assert [row["step"] for row in loaded.memory] == steps
    assert loaded.findings and loaded.sites
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT count(DISTINCT step) FROM step_media").fetchone()[0] == len(steps)


def test_a_full_disk_loses_marks_and_says_which(path):
    recorder = recording.Recorder(path, RUN, SETTINGS)
    commit(recorder, range(1, 10))
    pages = recorder._db.execute("PRAGMA page_count").fetchone()[0]
    recorder._db.execute(f"PRAGMA max_page_count = {pages}")
    for step in range(10, 10 + writer.MAX_WAITING + 200):
        recorder.mark(*rows(step))
        recorder._next_commit = 0.0 if step % 50 == 0 else recorder._next_commit
    assert recorder.trouble == "database or disk is full" and recorder.lost
    text = recorder.notes()[0].text
    assert "are missing in the recording" in text and "database or disk is full" in text
    assert len(recorder._waiting) <= writer.MAX_WAITING
    recorder._db.execute("PRAGMA max_page_count = 100000")
    recorder.close(sample())
    loaded = recording.load(path)
    assert loaded.state == "ended" and loaded.report.timeline[-1]["step"] == 10 + writer.MAX_WAITING + 199


def test_a_commit_without_memory_is_made_later(recorder, path, monkeypatch):
    def fail(batch):
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(recorder, "_insert_steps", fail)
        commit(recorder, [1])
    assert recorder.trouble == "out of memory" and recorder.lost == 0
    recorder.close()
    assert [row["step"] for row in recording.load(path).report.timeline] == [1]


def test_a_reader_that_holds_the_file_delays_a_commit_and_loses_nothing(recorder, path):
    commit(recorder, [1, 2])
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM steps").fetchall()
    commit(recorder, [3, 4])
    assert recorder.trouble is None and recorder._waiting
    reader.close()
    commit(recorder, [5])
    assert [row["step"] for row in recording.load(path).report.timeline] == [1, 2, 3, 4, 5]


def test_two_runs_on_one_path(recorder, path):
    with pytest.raises(LeakprobeError, match="written by another run") as error:
        recording.Recorder(path, RUN, SETTINGS)
    assert error.value.code == "recording_in_use"
    recorder.close()
    recording.Recorder(path, {"program": "second"}, SETTINGS).close()
    assert recording.load(path).report.run["program"] == "second"


@pytest.mark.parametrize("content", [b"precious", b"SQLite format 3\0" + b"\1" * 200])
def test_a_file_of_something_else_is_not_overwritten(path, content):
    path.write_bytes(content)
    with pytest.raises(LeakprobeError, match="is not a recording") as error:
        recording.Recorder(path, RUN, SETTINGS)
    assert error.value.code == "foreign_file" and path.read_bytes() == content


def test_an_empty_file_is_taken(path):
    path.touch(0o644)
    recording.Recorder(path, RUN, SETTINGS).close()
    assert recording.load(path).state == "ended" and stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("where", ["missing/run.leak", ".", "/proc/run.leak"])
def test_a_place_that_cannot_be_written(tmp_path, where):
    with pytest.raises(LeakprobeError, match="can't be written") as error:
        recording.Recorder(tmp_path / where, RUN, SETTINGS)
    assert error.value.code == "unwritable_file"


def test_a_forked_child_leaves_the_file_alone(recorder, path):
    commit(recorder, [1])
    child = os.fork()
    if child == 0:
        recorder.mark(*rows(100))
        recorder.close(sample())
        del recorder._db
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert place.is_locked(path), "the lock is still the parent's"
    commit(recorder, [2])
    recorder.close()
    loaded = recording.load(path)
    assert [row["step"] for row in loaded.report.timeline] == [1, 2] and loaded.state == "ended"


def database(path, *statements) -> None:
    with sqlite3.connect(path) as db:
        for statement in statements:
            db.execute(statement)


BAD = {
    "missing": (None, "No such file"),
    "empty": (b"", "is empty: no run has written to it"),
    "text": (b"hello", "is not a recording"),
    "broken json": (b'{"schema_version": 1', "can't be read as a report"),
    "other json": (b'{"a": 1}', "not a leakprobe report of schema version 1"),
    "json with a wrong type": (b'{"schema_version": 1, "verdict": "fine"}', "damaged"),
    "a header only": (b"SQLite format 3\0" + b"\0" * 4, "another program"),
}


@pytest.mark.parametrize("content,message", BAD.values(), ids=BAD)
def test_what_is_no_recording_is_named(path, content, message):
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(LeakprobeError, match=message) as error:
        recording.load(path)
    assert error.value.code in ("unreadable_file", "wrong_schema") and str(path) in str(error.value)


def test_other_databases_and_newer_schemas_are_named(path):
    database(path, "CREATE TABLE steps (a)")
    with pytest.raises(LeakprobeError, match="another program's SQLite file"):
        recording.load(path)
    path.unlink()
    sample().save(path)
    database(path, f"PRAGMA user_version = {schema.SCHEMA_VERSION + 1}")
    with pytest.raises(LeakprobeError, match=r"has schema 2, this leakprobe reads up to 1") as error:
        recording.load(path)
    assert error.value.code == "wrong_schema"


DAMAGE = {
    "a table is missing": "DROP TABLE sites",
    "a table is a view": "DROP TABLE lines; CREATE VIEW lines AS SELECT 'x' AS filename, 1 AS lineno, 2 AS bytes_per_step, 3 AS live_bytes",
    "a column is missing": "DROP TABLE steps; CREATE TABLE steps (step)",
    "no JSON": "UPDATE findings SET data = '{'",
    "JSON of another kind": "UPDATE findings SET data = '[1]'",
    "a number that is text": "UPDATE steps SET time = 'noon'",
    "survivors": "UPDATE sites SET survivors = '[[1, \"x\"]]'",
    "survivors that lack a number": "UPDATE sites SET survivors = '[[1, 2, 3]]'",
    "survivors whose steps fall": "UPDATE sites SET survivors = '[[5, 4, 3, 2]]'",
    "a number beyond all memory": "UPDATE steps SET rss = 1e300",
    "a line that is none": "UPDATE findings SET data = json_set(data, '$.allocation', 0)",
    "a stack that is none": "UPDATE findings SET data = json_set(data, '$.allocation_stack', NULL)",
    "no settings": "DELETE FROM meta",
    "a peak of no role": "UPDATE meta SET value = json_set(value, '$[0].parts[0].role', 1) "
    "WHERE key = 'peaks'",
    "a wrong verdict": "UPDATE meta SET value = '\"fine\"' WHERE key = 'verdict'",
}


@pytest.mark.parametrize("statements", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_recording_is_an_error_that_says_so(path, statements):
    sample().save(path)
    database(path, *statements.split("; "))
    with pytest.raises(LeakprobeError, match="damaged") as error:
        recording.load(path)
    assert error.value.code == "unreadable_file"


def test_facts_of_the_run_that_are_no_numbers_are_left_out(path):
    sample().save(path)
    database(
        path, """UPDATE meta SET value = '{"pid": 7, "started": 1e999, "rank": NaN}' WHERE key = 'run'"""
    )
    report = recording.load(path).report
    assert report.run == {"pid": 7} and json.dumps(report.to_dict(), allow_nan=False)


def test_no_byte_of_a_recording_crashes_the_reader(path):
    """Every 97th byte is turned over, one at a time: the file is read, or an error names it."""
    sample().save(path)
    whole = path.read_bytes()
    for at in range(0, len(whole), 97):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        try:
            assert isinstance(recording.load(path).report, Report)
        except LeakprobeError:
            pass
    for length in range(0, len(whole), 4096):
        path.write_bytes(whole[: length + 50])
        with pytest.raises(LeakprobeError):
            recording.load(path)


@pytest.mark.parametrize("seed", range(4))
def test_what_is_read_of_damaged_files_can_be_shown(seed, tmp_path):
    """A short run of the fuzzer: bytes, cells and JSON damaged at random; other exceptions than
    LeakprobeError end it.
    """
    fuzzer = Fuzzer(seed, tmp_path)
    for _ in range(30):
        assert fuzzer.once()
    assert fuzzer.results() >= {"read", "unreadable_file"}


MOUNTS = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:5 / /mnt/my\\040disk rw - nfs4 server:/x rw
31 22 0:6 / /mnt/my rw - tmpfs tmpfs rw
32 22 0:7 / /mnt/données\\040d'hier rw - cifs //server/x rw
""".splitlines()


@pytest.mark.parametrize(
    "where,kind",
    [
        ("/home/a", "ext4"),
        ("/mnt/my disk/run", "nfs4"),
        ("/mnt/my", "tmpfs"),
        ("/mnt/mystery", "ext4"),
        ("/mnt/données d'hier/run", "cifs"),
    ],
)
def test_the_file_system_of_a_path(where, kind):
    assert place.file_system(where, MOUNTS) == kind


def test_on_a_network_file_system_the_lock_is_kept_and_a_copy_is_read(path, monkeypatch):
    monkeypatch.setattr(place, "on_network", lambda path: True)
    monkeypatch.setattr("leakprobe.record.reader.WAIT_S", 0.0)
    recorder = recording.Recorder(path, RUN, SETTINGS)
    commit(recorder, [1, 2, 3])
    other = sqlite3.connect(path, timeout=0)
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        other.execute("SELECT * FROM steps")
    other.close()
    assert len(recording.load(path).report.timeline) == 3
    recorder.close()
    assert recording.load(path).state == "ended"


def test_several_recordings_merge(tmp_path):
    paths = []
    for rank in (0, 1):
        what = sample()
        what.run = {"rank": rank}
        what.save(tmp_path / f"rank{rank}.leak")
        paths.append(tmp_path / f"rank{rank}.leak")
    clean = report()
    clean.run = {"rank": 2}
    clean.save(tmp_path / "rank2.leak")
    merged = recording.load_merged([*paths, tmp_path / "rank2.leak"]).report
    single = finding()
    assert len(merged.findings) == 1 and merged.verdict == "growing"
    assert merged.findings[0].bytes_per_step == 2 * single.bytes_per_step
    assert merged.findings[0].live_count == 2 * single.live_count
    assert "in 2 of 3 recordings (rank 0, rank 1)" in merged.findings[0].evidence
    assert merged.timeline[0]["media"]["python"]["live_bytes"] == 3
    assert merged.memory[0]["rss"] == 30
    assert merged.media["python"]["live_bytes"] == 3 * 2**20
    assert recording.load_merged([tmp_path]).report.to_dict() == merged.to_dict(), (
        "a folder is all that is in it"
    )


def test_workers_with_few_batches_leave_the_verdict_to_the_loop(tmp_path):
    few = [note(kind="warm_up", medium=None, text="run 2 more steps"), note(text="no file to write")]
    for number in (0, 1):
        short = report(notes=few, verdict="inconclusive", measured=7)
        short.run = {"worker": number}
        short.save(tmp_path / f"run.worker{number}.leak")
    alone = recording.load_merged([tmp_path]).report
    assert alone.verdict == "inconclusive" and "2 recordings have too few steps" in verdict_line(alone)
    assert [n.text for n in alone.notes][0] == "worker 0: run 2 more steps"
    report().save(tmp_path / "run.leak")
    merged = recording.load_merged([tmp_path]).report
    assert verdict_line(merged) == "steady: nothing grows (60 steps measured, 5 warm-up)"
    assert [n.text for n in merged.notes] == [f"worker {n}: no file to write" for n in (0, 1)]
    grown = sample()
    grown.run = {"worker": 2}
    grown.save(tmp_path / "run.worker2.leak")
    assert recording.load_merged([tmp_path]).report.verdict == "growing"


def test_ranks_that_are_too_short_are_named(tmp_path):
    for rank, measured in enumerate((60, 3, 60)):
        one = report(verdict="inconclusive" if measured == 3 else None, measured=measured)
        one.run = {"rank": rank}
        one.save(tmp_path / f"rank{rank}.leak")
    assert verdict_line(recording.load_merged([tmp_path]).report) == (
        "inconclusive: 1 recording has too few steps, at least 9 measured ones are needed in each"
    )


def test_merged_marks_carry_the_last_of_each_recording(tmp_path):
    for name, steps in (("a", (1, 2, 3)), ("b", (2,))):
        recorder = recording.Recorder(tmp_path / name, RUN, SETTINGS)
        commit(recorder, steps)
        recorder.close(sample())
    merged = recording.load_merged([tmp_path / "a", tmp_path / "b"]).report
    assert [(r["step"], r["media"]["cpu"]["live_bytes"]) for r in merged.timeline] == [(1, 1), (2, 4), (3, 5)]


def test_a_file_that_is_named_twice_counts_once(tmp_path):
    for name in ("b.leak", "a.leak"):
        sample().save(tmp_path / name)
    os.symlink("a.leak", tmp_path / "same.leak")
    twice = [tmp_path / name for name in ("b.leak", "same.leak", "a.leak", "b.leak")]
    assert recording.files_of([*twice, tmp_path / "x"]) == [
        str(tmp_path / name) for name in ("b.leak", "same.leak", "x")
    ]
    one = recording.load(tmp_path / "a.leak").report
    assert recording.load_merged(twice[1:3]).report.to_dict() == one.to_dict()


def test_a_folder_without_recordings_is_an_error(tmp_path):
    (tmp_path / "x.txt").write_text("x")
    with pytest.raises(LeakprobeError, match="no recording in the folder"):
        recording.load_merged([tmp_path])


def test_no_value_of_the_program_is_in_the_file(path):
    """Facts of the run hold the program, not its arguments or environment."""
    from leakprobe.record.facts import describe_run

    assert set(describe_run()) <= {
        "program",
        "started",
        "pid",
        "leakprobe",
        "python",
        "platform",
        "rank",
        "local_rank",
        "world_size",
    }
    assert json.dumps(describe_run())


def test_a_peak_of_a_step_that_is_thinned_out_passes_to_the_next_one(recorder, path, monkeypatch):
    monkeypatch.setattr(writer, "MAX_STEPS", 64)
    for step in range(1, 400):
        timeline, memory = rows(step)
        timeline["media"]["cpu"] = {"live_bytes": 1, "peak_bytes": 10**6 if step == 11 else 1}
        recorder._next_commit = 0.0
        recorder.mark(timeline, memory)
    recorder.close()
    kept = recording.load(path).report.timeline
    assert 11 not in [row["step"] for row in kept]
    assert max(row["media"]["cpu"]["peak_bytes"] for row in kept) == 10**6


def test_the_journal_of_a_long_name_would_have_too_long_a_one(tmp_path):
    with pytest.raises(LeakprobeError, match="too long a name") as error:
        recording.Recorder(tmp_path / ("n" * 250), RUN, SETTINGS)
    assert error.value.code == "unwritable_file"
