"""Writing touches only what leakprobe wrote: recordings, their journals, pages and other files of a
report.
"""

import errno
import os
import pathlib
import resource
import socket
import sqlite3
import subprocess
import sys

import crafted
import pytest
from reading import state_of, unchanged
from sample_reports import finding, report

from leakprobe import cli, recording
from leakprobe.errors import LeakprobeError
from leakprobe.record import place
from leakprobe.snapshot import Snapshot, SnapshotRow

RUN, SETTINGS = {"program": "train.py"}, {"warmup": 5}


def begin(path):
    recording.Recorder(path, RUN, SETTINGS).close()


# ---- recordings ----


@pytest.mark.parametrize("content", [b"", b"precious", bytes.fromhex("d9d505f920a163d7") + b"x" * 600])
@pytest.mark.parametrize("suffix", ["-journal", "-wal", "-shm"])
@pytest.mark.parametrize("there", ["nothing", "empty", "recording"])
def test_what_lies_beside_a_name_stays(tmp_path, there, suffix, content):
    path = tmp_path / "run.leak"
    if there == "recording":
        crafted.honest(path)
    elif there == "empty":
        path.touch()
    (tmp_path / f"run.leak{suffix}").write_bytes(content)
    if there == "recording" and suffix == "-journal" and content != b"precious":
        begin(path)  # that of a run that was killed
        assert os.listdir(tmp_path) == ["run.leak"]
        return
    with (
        unchanged(tmp_path),
        pytest.raises(LeakprobeError, match=f"run.leak{suffix} is beside it") as error,
    ):
        begin(path)
    assert error.value.code == "foreign_file"


def link(path):
    path.symlink_to("elsewhere")


@pytest.mark.parametrize("suffix", ["-journal", "-wal", "-shm"])
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, link], ids=["fifo", "folder", "link"])
def test_what_is_no_file_beside_a_recording_stays(tmp_path, suffix, make):
    crafted.honest(tmp_path / "run.leak")
    (tmp_path / "elsewhere").write_text("precious")
    make(tmp_path / f"run.leak{suffix}")
    with unchanged(tmp_path), pytest.raises(LeakprobeError, match="is beside it"):
        begin(tmp_path / "run.leak")


def unix_socket(path):
    with socket.socket(socket.AF_UNIX) as made:
        os.chdir(path.parent)
        made.bind(path.name)


@pytest.mark.parametrize(
    "make", [os.mkfifo, os.mkdir, link, unix_socket], ids=["fifo", "folder", "link", "socket"]
)
def test_what_is_no_file_at_the_name_stays(tmp_path, make, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").write_text("precious")
    make(tmp_path / "run.leak")
    with unchanged(tmp_path), pytest.raises(LeakprobeError, match="can't be written"):
        begin(tmp_path / "run.leak")


@pytest.mark.parametrize("there", [False, True], ids=["new", "over an older one"])
@pytest.mark.parametrize("most", [0, 1, 4096, 20_000], ids=str)
def test_a_beginning_without_room_leaves_all_as_it_was(tmp_path, there, most):
    """The largest size of a file stands in for a full disk."""
    path = tmp_path / "run.leak"
    if there:
        crafted.honest(path)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with unchanged_but_times(tmp_path):
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
        try:
            with pytest.raises(LeakprobeError, match="can't be written") as error:
                begin(path)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert error.value.code == "unwritable_file"
    begin(path)


def unchanged_but_times(folder):
    """The folder itself gets a new time, since a file came and went."""
    import contextlib

    @contextlib.contextmanager
    def check():
        before = state_of(folder)
        yield
        after = state_of(folder)
        for found in (before, after):
            del found[str(folder)]
        assert after == before

    return check()


@pytest.mark.parametrize("there", [False, True], ids=["new", "over an older one"])
@pytest.mark.parametrize(
    "error", [sqlite3.OperationalError("disk I/O error"), MemoryError(), KeyboardInterrupt()], ids=repr
)
@pytest.mark.parametrize("at", ["write_beginning", "connect"])
def test_a_beginning_that_is_broken_off_leaves_all_as_it_was(tmp_path, monkeypatch, at, error, there):
    path = tmp_path / "run.leak"
    if there:
        if at == "connect":
            pytest.skip("by then the older one has been replaced, as was asked")
        crafted.honest(path)

    real, calls = recording.Recorder.__init__.__globals__["place"].claim, []

    def fail(*arguments, **options):
        calls.append(arguments)
        if at == "write_beginning" or len(calls) > 1:
            raise error
        return sqlite3.connect(arguments[0], isolation_level=None)

    assert real is place.claim
    monkeypatch.setattr(f"leakprobe.record.writer.{at}", fail)
    with unchanged_but_times(tmp_path), pytest.raises((LeakprobeError, MemoryError, KeyboardInterrupt)):
        begin(path)
    monkeypatch.undo()
    begin(path)
    assert not place.is_locked(path)


def test_an_older_recording_and_its_journal_survive_a_rename_that_fails(tmp_path, monkeypatch):
    path = crafted.honest(tmp_path / "run.leak")
    (tmp_path / "run.leak-journal").write_bytes(crafted.hot_journal(path))
    real = os.rename

    def rename(source, target):
        if target == str(path):
            raise OSError(errno.EACCES, "not here")
        real(source, target)

    with unchanged_but_times(tmp_path), monkeypatch.context() as patched:
        patched.setattr(os, "rename", rename)
        with pytest.raises(LeakprobeError, match="not here"):
            begin(path)


def test_a_name_that_another_run_takes_first(tmp_path, monkeypatch):
    """Both saw that nothing was there; the second one finds the first one's recording, locked."""
    path, real, first = tmp_path / "run.leak", place.give_name, []

    def give_name(fresh, name):
        if not first:
            first.append(None)
            first.append(recording.Recorder(path, RUN, SETTINGS))
        return real(fresh, name)

    monkeypatch.setattr(place, "give_name", give_name)
    with pytest.raises(LeakprobeError) as error:
        begin(path)
    assert error.value.code == "recording_in_use"
    first[1].close()
    assert os.listdir(tmp_path) == ["run.leak"] and recording.load(path).state == "ended"


def test_a_file_system_without_hard_links(tmp_path, monkeypatch):
    def no_links(*_args, **_options):
        raise OSError(errno.EPERM, "no links")

    monkeypatch.setattr(os, "link", no_links)
    begin(tmp_path / "run.leak")
    begin(tmp_path / "run.leak")
    assert os.listdir(tmp_path) == ["run.leak"]


def test_descriptors_that_the_program_closed_are_not_written_to(tmp_path):
    """os.closerange() under a run: what the program opens then gets the numbers of the recording and of
    SQLite.
    """
    code = """
import os, sys
from leakprobe import recording
folder = sys.argv[1]
recorder = recording.Recorder(f"{folder}/run.leak", {}, {"warmup": 5})
taken = [int(n) for n in os.listdir("/proc/self/fd")]
os.closerange(3, 200)
mine = [os.open(f"{folder}/mine{i}", os.O_RDWR | os.O_CREAT) for i in range(20)]
assert set(mine) & set(taken)
row = {"step": 1, "epoch": 1, "time": 0.5, "media": {}}
recorder.mark(row, {"step": 1, "rss": 1})
recorder.close()
print(recorder.notes()[0].text)
for descriptor in mine: os.close(descriptor)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert (
        "1 marks (steps 1 to 1) are missing" in done.stdout and "the program closed its file" in done.stdout
    )
    assert all((tmp_path / f"mine{i}").stat().st_size == 0 for i in range(20))
    assert recording.load(tmp_path / "run.leak").state == "cut off"


# ---- readers that poll ----

POLL = """
import sys, time
from leakprobe import recording
from leakprobe.errors import LeakprobeError
print("ready", flush=True)
read, words = 0, set()
while True:
    try: recording.load(sys.argv[1]); read += 1
    except LeakprobeError as error: words.add(str(error))
    time.sleep(float(sys.argv[2]))
    if sys.argv[3] == "quit" and read >= 1: break
"""
#: A reader that is not leakprobe: the rows of a recording by SQLite itself, which takes its locks.
POLL_SQL = """
import sqlite3, sys, time
print("ready", flush=True)
while True:
    try:
        db = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True, timeout=0.01, isolation_level=None)
        db.execute("BEGIN"); db.execute("SELECT * FROM meta").fetchall(); time.sleep(float(sys.argv[2])); db.close()
    except sqlite3.Error: pass
"""


def pollers(path, interval: float, count: int = 2):
    codes = [POLL] * count + [POLL_SQL]
    made = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(path), str(interval), "on"], stdout=subprocess.PIPE, text=True
        )
        for code in codes
    ]
    for process in made:
        assert process.stdout.readline() == "ready\n"
    return made


def begin_many(path, count: int) -> list:
    failed = []
    for i in range(count):
        try:
            recorder = recording.Recorder(path, RUN, SETTINGS)
            recorder.mark(
                {"step": 1, "epoch": 1, "time": 0.5, "media": {}},
                {"step": 1, "rss": i, "python_heap": 1, "native_accounted": 1, "probe_overhead": 1},
            )
            recorder.close()
            failed += [note.text for note in recorder.notes()]
        except LeakprobeError as error:
            failed.append(str(error))
    return failed


def test_readers_that_poll_make_no_beginning_fail(tmp_path):
    """As many beginnings as CI has time for; 2,000 by hand: `python
    tests/attacks/test_recordings_writing.py`.
    """
    path = tmp_path / "run.leak"
    begin(path)
    processes = pollers(path, 0.0)
    try:
        assert begin_many(path, 200) == []
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    assert recording.load(path).report.memory[0]["rss"] == 199


def test_a_run_that_has_the_file_is_said_at_once(tmp_path):
    """Only readers are waited for."""
    recorder = recording.Recorder(tmp_path / "run.leak", RUN, SETTINGS)
    code = "import sys\nfrom leakprobe import recording\nrecording.Recorder(sys.argv[1], {}, {})"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "run.leak")], capture_output=True, text=True, timeout=300
    )
    assert "is being written by another run" in done.stderr
    recorder.close()


# ---- pages, reports, exports, snapshots ----


@pytest.fixture
def files(tmp_path):
    """A recording, a report, and a file of each kind that is leakprobe's."""
    crafted.honest(tmp_path / "run.leak")
    what = report([finding()])
    what.to_json(tmp_path / "report.json")
    what.to_html(tmp_path / "page.html")
    Snapshot([SnapshotRow("cpu", None, (("train.py", 3, "f"),), 1, 2, 4, 1024)], 1).save(
        tmp_path / "snapshot"
    )
    for kind in ("perfetto", "csv", "dot", "memory_viz"):
        code = cli.main(["export", str(tmp_path / "run.leak"), "--format", kind, "-o", str(tmp_path / kind)])
        assert code == 0
    return tmp_path


def write_all(folder: pathlib.Path, name: str):
    """(what, function that writes it to the name) of all that leakprobe writes."""
    target, run = str(folder / name), str(folder / "run.leak")
    verbs = [
        ["report", run, "--html", target],
        ["report", run, "--json", target],
        *(
            ["export", run, "--format", kind, "-o", target]
            for kind in ("perfetto", "csv", "dot", "memory_viz")
        ),
    ]
    return [
        *((" ".join(verb), lambda verb=verb: cli.main(verb)) for verb in verbs),
        ("record", lambda: begin(target)),
        ("save", lambda: report().save(target)),
        ("to_json", lambda: report().to_json(target)),
        ("to_html", lambda: report().to_html(target)),
        ("Snapshot.save", lambda: Snapshot([], 1).save(target)),
    ]


@pytest.mark.parametrize(
    "content",
    [
        b"precious",
        b"<!doctype html><title>mine</title>",
        b'{"schema_version": 1}',
        b"step,epoch\n",
        b"\x80\x04.",
    ],
)
def test_a_file_of_someone_else_is_not_overwritten(files, content, capsys):  # fmt: skip
    (files / "thesis").write_bytes(content)
    (files / "link").symlink_to("thesis")
    os.link(files / "thesis", files / "hard")
    for name in ("thesis", "link", "hard"):
        for what, write in write_all(files, name):
            with unchanged(files):
                try:
                    assert write() == cli.USAGE, what
                except LeakprobeError as error:
                    assert error.code in ("foreign_file", "unwritable_file"), what


@pytest.mark.parametrize("option", [["--html"], ["--json"]])
@pytest.mark.parametrize("source", ["run.leak", "report.json"])
@pytest.mark.parametrize("target", ["itself", "link", "hard link", "another spelling"])
def test_what_is_read_is_not_written_over(files, source, target, option, capsys):
    name = files / source
    if target == "link":
        name = files / "link"
        name.symlink_to(source)
    elif target == "hard link":
        name = files / "hard"
        os.link(files / source, name)
    elif target == "another spelling":
        name = files / "." / ".." / files.name / source
    with unchanged(files):
        assert cli.main(["report", str(files / source), *option, str(name)]) == cli.USAGE
    assert "is what is read here" in capsys.readouterr().err


def test_no_recording_of_a_folder_that_is_read_is_written_over(files, capsys):
    with unchanged(files):
        assert cli.main(["report", str(files), "--json", str(files / "run.leak")]) == cli.USAGE
    assert "is what is read here" in capsys.readouterr().err


def test_two_options_name_one_file(files, capsys):
    target = str(files / "out")
    assert cli.main(["report", str(files / "run.leak"), "--html", target, "--json", target]) == cli.USAGE
    assert "--html and --json name one file" in capsys.readouterr().err and not os.path.exists(target)
    script = files / "train.py"
    script.write_text("print('ran')")
    assert cli.main(["run", "-o", target, "--html", target, str(script)]) == cli.USAGE
    assert "name one file" in capsys.readouterr().err


def test_a_script_is_not_written_over_by_the_page_of_its_run(files, capsys):
    script = files / "train.py"
    script.write_text("print('ran')")
    with unchanged(files):
        assert cli.main(["run", "--html", str(script), str(script)]) == cli.USAGE
    assert "left as it is" in capsys.readouterr().err


def test_what_leakprobe_wrote_is_written_anew(files):
    """Each kind over an older one of its kind, and over an empty file."""
    verbs = {
        "page.html": ["report", "{}", "--html"],
        "report.json": ["report", "{}", "--json"],
        **{
            kind: ["export", "{}", "--format", kind, "-o"]
            for kind in ("perfetto", "csv", "dot", "memory_viz")
        },
    }
    for name, verb in verbs.items():
        for _ in range(2):
            assert cli.main([*(a.format(files / "run.leak") for a in verb), str(files / name)]) in (0, 1), (
                name
            )
            assert (files / name).stat().st_size > 20
            os.truncate(files / name, 0)
    Snapshot([], 1).save(files / "snapshot")
    begin(files / "run.leak")


def test_a_report_that_does_not_fit_leaves_no_half_of_it(files):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(LeakprobeError, match="can't be written"):
            report([finding()]).to_json(files / "new.json")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not (files / "new.json").exists()


def main() -> None:
    """2,000 beginnings beside readers that poll each 50 ms, then without a pause."""
    import tempfile

    for interval in (0.05, 0.0):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "run.leak")
            begin(path)
            processes = pollers(path, interval)
            failed = begin_many(path, 2000)
            for process in processes:
                process.kill()
                process.communicate()
            print(
                f"readers each {interval * 1000:g} ms: 2000 beginnings, {len(failed)} failed {failed[:2]}",
                flush=True,
            )


if __name__ == "__main__":
    main()
