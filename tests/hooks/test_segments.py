"""Memory that the kernel keeps by file, and pages of hugetlbfs: bytes and line, each with a clean twin; also
where only each third step makes some.
"""

import itertools
import mmap
import os
import pathlib
import re

import pytest
from fresh import run
from native_support import linux_only

from leakprobe import _core
from leakprobe.model.budget import Budget
from leakprobe.watch.segments import Segments
from leakprobe.watch.shared_findings import note_of_unlisted

pytestmark = linux_only
#: Lines of what has no name are told by what the kernel counts, of the whole machine: tests beside these make
#: segments too.
ALONE = pytest.mark.skipif(
    "LEAKPROBE_ALONE" not in os.environ, reason="runs alone: LEAKPROBE_ALONE=1, one worker"
)

#: Line 13 is the first of the body.
LOOP = """
import ctypes, json, mmap, os, leakprobe
SIZE, HUGE, STEPS = {size}, 0x40000, {steps}
libc = ctypes.CDLL(None)
libc.mmap.restype = libc.shmat.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
libc.munmap.argtypes, libc.shmdt.argtypes = [ctypes.c_void_p, ctypes.c_size_t], [ctypes.c_void_p]
made = []
def fill(at):
    ctypes.memset(at, 1, SIZE)
    return at
def make(i):
    {make}
def remove(found):
    {remove}
with leakprobe.watch() as probe:
    for i in range(STEPS):
        if i % 3 == 0:
            made.append(make(i))
            if {is_clean}:
                remove(made.pop())
        probe.step()
    report = probe.report()
for found in made:
    remove(found)
print(json.dumps(report.to_dict()))
"""
LINE = 12
MAP = "fill(libc.mmap(None, SIZE, 3, mmap.MAP_ANONYMOUS | mmap.{flags}, -1, 0))"
MAKE = {
    "system_v": (
        "key = libc.shmget(0, SIZE, 0o1600); libc.shmdt(fill(libc.shmat(key, None, 0))); return key",
        "libc.shmctl(found, 0, None)",
    ),
    "memfd": (
        "file = os.memfd_create('scratch'); os.write(file, b'1' * SIZE); return file",
        "os.close(found)",
    ),
    "by_name": (
        "file = libc.shm_open(b'/lp%d-%d' % (os.getpid(), i), os.O_CREAT | os.O_RDWR, 0o600);"
        " os.write(file, b'1' * SIZE); os.close(file); return i",
        "os.unlink(f'/dev/shm/lp{{os.getpid()}}-{{found}}')",
    ),
    "mapping": (f"return {MAP.format(flags='MAP_SHARED')}", "libc.munmap(found, SIZE)"),
}


def report_of(way, is_clean, size=1 << 18, steps=150):
    make, remove = (line.replace("{{", "{").replace("}}", "}") for line in MAKE[way])
    return run(LOOP.format(make=make, remove=remove, is_clean=is_clean, size=size, steps=steps))


WAYS = [way if way == "by_name" else pytest.param(way, marks=ALONE) for way in MAKE]


@pytest.mark.parametrize("way", WAYS)
def test_segments_are_told_with_bytes_and_line(way):
    (finding,) = report_of(way, is_clean=False, steps=300)["findings"]
    assert (finding["medium"], finding["cause"]) == ("shared", "never_closed"), finding
    assert finding["bytes_per_step"] == pytest.approx((1 << 18) / 3, rel=0.15)
    # pages come when they are touched, and how many segments there are is the machine's
    assert finding["allocation"] and finding["allocation"]["lineno"] in (LINE, LINE - 3), finding
    if way == "by_name":  # for how long there is time to list files is the machine's
        made = finding["live_count"] << 18
        assert finding["live_count"] >= 8 and made <= finding["live_bytes"] <= made + (3 << 18)
    else:
        assert finding["live_bytes"] >= 10 << 20


@pytest.mark.parametrize("way", WAYS)
def test_segments_that_are_given_back_are_silent(way):
    assert report_of(way, is_clean=True)["verdict"] == "steady"


FILES_OF_A_CHILD = """
import json, os, subprocess, leakprobe
MAKER = "while read name; do : > /dev/shm/$name; echo; done"
child = subprocess.Popen(["sh", "-c", MAKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
names = [f"lp{os.getpid()}-{i}" for i in range(150)]
with leakprobe.watch() as probe:
    for name in names:
        os.write(child.stdin.fileno(), f"{name}\\n".encode())
        os.read(child.stdout.fileno(), 1)
        probe.step()
    report = probe.report()
child.communicate()
for name in names:
    os.unlink(f"/dev/shm/{name}")
print(json.dumps(report.to_dict()))
"""


def test_files_that_another_process_makes_are_not_taken_for_its_own():
    """Other programs of this user may make and remove a few beside them."""
    report = run(FILES_OF_A_CHILD)
    assert report["verdict"] == "steady" and report["findings"] == []
    (note,) = [note for note in report["notes"] if note["medium"] == "shared"]
    rate = re.search(r"/dev/shm grow, ([\d.]+) files a step", note["text"])
    assert rate and float(rate[1]) == pytest.approx(1, abs=0.15), note


def free_huge_pages():
    rows = pathlib.Path("/proc/meminfo").read_text().splitlines()
    return next((int(row.split()[1]) for row in rows if row.startswith("HugePages_Free:")), 0)


@ALONE
@pytest.mark.skipif(free_huge_pages() < 50, reason="no huge pages here: sysctl vm.nr_hugepages=50")
def test_huge_pages_are_counted_though_they_are_not_resident(monkeypatch):
    """In one test, as two at a time may find too few."""
    size = 2 << 20
    for flags, medium in ("MAP_PRIVATE | HUGE", "native"), ("MAP_SHARED | HUGE", "shared"):
        monkeypatch.setitem(MAKE, "huge", (f"return {MAP.format(flags=flags)}", "libc.munmap(found, SIZE)"))
        (finding,) = report_of("huge", is_clean=False, size=size, steps=135)["findings"]
        assert finding["medium"] == medium and finding["allocation"]["lineno"] in (LINE, LINE - 3), finding
        assert finding["bytes_per_step"] == pytest.approx(size / 3, rel=0.15)
        assert report_of("huge", is_clean=True, size=size, steps=135)["verdict"] == "steady"


def test_segments_that_replace_others_of_their_size_are_counted_once():
    """What is mapped is as large as before, so the mappings are those of the listing before, but for this."""

    def made():
        files = [os.memfd_create("pool") for _ in range(5)]
        for file in files:
            os.truncate(file, 1 << 20)
        return [(file, mmap.mmap(file, 1 << 20)) for file in files]

    before, pool, seen = _core.segments(0)["own"], made(), []
    for _ in range(3):
        seen.append(_core.segments(0)["own"] - before)
        for file, view in pool:
            view.close()
            os.close(file)
        pool = made()
    assert seen == [5, 5, 5]


def test_segments_that_nobody_had_time_to_list_are_said(monkeypatch):
    segments = Segments(0)
    segments.listings = Budget(0.0, 0.0)
    files = itertools.count()
    monkeypatch.setattr(_core, "shared_memory", lambda: (next(files), 0, 0))
    for step in range(100):
        segments.read(step, 0)
    assert len(segments.count.points) <= 1  # there was time for the first
    note = note_of_unlisted(segments.unlisted_rise())
    assert note.kind == "gap" and "1 a step from step 0 to step 99" in note.text
