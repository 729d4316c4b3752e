"""The account of the control group: as the kernel's files of either version have it, and in a real one."""

import os
import pathlib
import re
import subprocess
import sys

import pytest
from native_support import linux_only

from leakprobe.watch import control_group
from leakprobe.watch.forecast import limit_note

pytestmark = linux_only

MIB = 1 << 20
STAT_2 = {"anon": 300, "file": 200, "kernel": 20, "sock": 0, "shmem": 50, "inactive_file": 100}
STAT_1 = {"total_rss": 300, "total_cache": 200, "total_shmem": 50, "total_inactive_file": 100}


def group(folder, files):
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(f"{text}\n")
    return folder


def text_of(stat):
    return "\n".join(f"{name} {count * MIB}" for name, count in stat.items())


def version_2(folder, limit):
    files = {"memory.current": 520 * MIB, "memory.max": limit, "memory.stat": text_of(STAT_2)}
    return group(folder, files | {"memory.events": "oom 1\noom_kill 3"})


@pytest.fixture
def placed(tmp_path, monkeypatch):
    """Gives the process a place in a tree of groups under tmp_path."""

    def place(own, mount):
        (tmp_path / "self").write_text(own)
        (tmp_path / "mounts").write_text(mount)
        monkeypatch.setattr(control_group, "SELF", tmp_path / "self")
        monkeypatch.setattr(control_group, "MOUNTS", tmp_path / "mounts")

    return place


def test_version_2_adds_up_and_the_nearest_limit_counts(tmp_path, placed):
    version_2(tmp_path / "root" / "job", 4096 * MIB)
    version_2(tmp_path / "root" / "job" / "step", "max")
    placed("0::/job/step\n", f"30 1 0:26 / {tmp_path}/root rw - cgroup2 cgroup2 rw\n")
    found = control_group.read()
    assert found.path.endswith("root/job") and found.limit == 4096 * MIB and found.killed == 3
    assert found.current == found.anonymous + found.page_cache + found.shared + found.kernel
    assert found.needed == 420 * MIB and found.room == (4096 - 420) * MIB


def test_what_waits_for_memory_is_told_of_the_group(tmp_path, placed):
    folder = version_2(tmp_path / "root", 1420 * MIB)
    placed("0::/\n", f"30 1 0:26 / {tmp_path}/root rw - cgroup2 cgroup2 rw\n")
    assert control_group.read().waiting is None
    rows = [f"{who} avg10=9.00 avg60=2.50 avg300=0.40 total=16581" for who in ("some", "full")]
    (folder / "memory.pressure").write_text("\n".join(rows))
    assert control_group.read().waiting == 2.5
    assert (
        "tasks waited for memory in 2.5 % of the last minute"
        in limit_note(2.0 * MIB, 300, control_group.read()).text
    )
    for text in ("", "some", "some avg60=\n", "full"):
        (folder / "memory.pressure").write_text(text)
        assert control_group.read().waiting is None


def test_version_1_is_read_by_its_own_names(tmp_path, placed):
    files = {"memory.usage_in_bytes": 520 * MIB, "memory.limit_in_bytes": 9223372036854771712}
    kernel = {"memory.kmem.usage_in_bytes": 20 * MIB, "memory.oom_control": "oom_kill_disable 0\noom_kill 1"}
    group(tmp_path / "memory" / "job", files | kernel | {"memory.stat": text_of(STAT_1)})
    mount = f"35 31 0:32 / {tmp_path}/memory rw - cgroup cgroup rw,memory\n"
    placed("4:memory:/job\n0::/\n", mount)
    found = control_group.read()
    assert found.limit is None and found.killed == 1
    assert found.current == found.anonymous + found.page_cache + found.shared + found.kernel


def test_what_is_mounted_is_read_where_the_name_is_of_another_name_space(tmp_path, placed):
    version_2(tmp_path / "root", 1024 * MIB)
    placed("0::/\n", f"30 1 0:26 /docker/abc {tmp_path}/root rw - cgroup2 cgroup2 rw\n")
    assert control_group.read().limit == 1024 * MIB


@pytest.mark.parametrize("own", ["", "garbage", "0::/gone\n"])
def test_without_an_account_there_is_none(tmp_path, placed, own):
    placed(own, f"30 1 0:26 / {tmp_path}/nowhere rw - cgroup2 cgroup2 rw\n")
    assert control_group.read() is None


def test_the_forecast_counts_what_is_left(tmp_path, placed):
    version_2(tmp_path / "root", 1420 * MIB)
    placed("0::/\n", f"30 1 0:26 / {tmp_path}/root rw - cgroup2 cgroup2 rw\n")
    note = limit_note(2.0 * MIB, 300, control_group.read())
    assert "reached in about 500 steps, near step 800" in note.text, note.text
    assert limit_note(2.0 * MIB, 5, control_group.read()) is not None
    assert limit_note(2.0 * MIB, 4, control_group.read()) is None  # 500 steps are no news after 4


LEAKS = """
import leakprobe, sys
open(sys.argv[1] + "/cgroup.procs", "w").write("0")
from leakprobe.watch import control_group
kept = []
with leakprobe.watch() as probe:
    for step in range(100):
        kept.append(bytearray(b"x" * (1 << 20)))
        probe.step()
notes = [n.text for n in probe.report().notes if n.kind == "memory_limit"]
found = control_group.read()
parts = found.anonymous + found.page_cache + found.shared + found.kernel
print(found.current, parts, found.limit, notes, flush=True)
while True:
    kept.append(bytearray(b"x" * (1 << 20)))
    step += 1
    print(step, flush=True)
"""


@pytest.fixture
def limited():
    """A control group of the test's own, of 500 MiB."""
    account = control_group.read()
    if account is None:
        pytest.skip("no control group counts memory here")
    folder = pathlib.Path(account.path) / f"leakprobe-test-{os.getpid()}"
    name = (
        "memory.max" if (pathlib.Path(account.path) / "memory.current").exists() else "memory.limit_in_bytes"
    )
    try:
        folder.mkdir()
        (folder / name).write_text(str(500 * MIB))
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    yield folder
    folder.rmdir()


def test_a_real_group_adds_up_and_its_limit_is_foreseen(limited):
    command = [sys.executable, "-c", LEAKS, str(limited)]
    lines = subprocess.run(command, capture_output=True, text=True, timeout=300).stdout.splitlines()
    current, parts, limit, text = lines[0].split(" ", 3)
    assert int(limit) == 500 * MIB
    assert int(parts) == pytest.approx(int(current), rel=0.02)
    foreseen = int(re.search(r"near step ([\d,]+)", text)[1].replace(",", ""))
    assert foreseen == pytest.approx(int(lines[-1]), rel=0.1), (text, lines[-1])
