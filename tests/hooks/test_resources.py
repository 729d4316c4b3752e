"""Descriptors, threads, processes and native memory of real loops, each with a clean twin."""

import os
import re
import sys

import pytest
from clocked import FREE
from fresh import run

from leakprobe import _core

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

LOOP = """
import ctypes, json, os, socket, subprocess, sys, threading, leakprobe
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
libc.calloc.restype, libc.calloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t, ctypes.c_size_t]
kept, never = [], threading.Event()
{before}
def step(i):
    {body}
with leakprobe.watch() as probe:
    for i in range({steps}):
        step(i)
        probe.step()
print(json.dumps(probe.report().to_dict()))
sys.stdout.flush()
os._exit(0)
"""
BODY_LINE = 7


def report_of(body, before="", steps=60, env=None):
    return run(LOOP.format(before=before, body=body, steps=steps), env=env)


def the_finding(body, **options):
    report = report_of(body, **options)
    assert len(report["findings"]) == 1, [(f["kind"], f["evidence"]) for f in report["findings"]]
    return report["findings"][0]


def line_of(finding):
    return finding["allocation"] and finding["allocation"]["lineno"]


def descriptors_are_told():
    return sys.platform == "linux" and os.stat("/proc/self/fd").st_size > 0


needs_malloc = pytest.mark.skipif(
    _core.malloc_why_not() is not None, reason="malloc's numbers can't be had here"
)


@needs_malloc
@pytest.mark.parametrize("size, times", [(100_000, 1), (1000, 20), (3_000_000, 1)])
def test_native_growth_has_the_right_bytes(size, times):
    finding = the_finding(f"[libc.malloc({size}) for _ in range({times})] and None")
    assert (finding["kind"], finding["medium"], finding["cause"]) == (
        "native_growth",
        "native",
        "native_growth",
    )
    assert finding["bytes_per_step"] == pytest.approx(size * times, rel=0.1)
    first, last = map(int, re.search(r"between step (\d+) and step (\d+)", finding["evidence"]).groups())
    assert last - first >= 40  # as of the last full census
    assert finding["live_bytes"] == pytest.approx((last - first) * size * times, rel=0.1)


@needs_malloc
@pytest.mark.parametrize(
    "size, steps, verdict",
    [
        ("1000 + 8 * i", 60, "steady"),
        ("1000 + 8 * i", 1300, "growing"),
        ("1000 + 8 * (i % 20)", 60, "growing"),
    ],
)
def test_growth_is_no_finding_while_it_may_be_a_cache_by_shape(size, steps, verdict):
    """Sizes that never come again can't show what a call leaves behind; after more of them than such caches
    keep it is told.
    """
    pytest.importorskip("numpy")
    report = report_of(f"numpy.zeros({size}); libc.malloc(20_000)", before="import numpy", steps=steps)
    assert report["verdict"] == verdict
    assert any(n["text"].startswith("filling, or a leak: ") for n in report["notes"]) is (verdict == "steady")


@needs_malloc
def test_small_blocks_count_with_their_headers():
    finding = the_finding("[libc.malloc(40) for _ in range(600)] and None")
    assert finding["bytes_per_step"] == pytest.approx(600 * 48, rel=0.1)


@needs_malloc
def test_the_line_of_native_growth_is_measured():
    body = "kept.append(1); len(bytearray(200_000))\n    p = libc.malloc(50_000)\n    del p"
    assert line_of(the_finding(body)) == BODY_LINE + 2


@needs_malloc
def test_no_line_is_named_that_could_be_another():
    threaded = "t = threading.Thread(target=libc.malloc, args=(50_000,)); t.start(); t.join()"
    finding = the_finding(threaded)
    assert finding["kind"] == "native_growth" and finding["allocation"] is None


@needs_malloc
def test_each_of_two_lines_is_named_with_its_part():
    report = report_of("libc.malloc(50_000)\n    libc.malloc(20_000)")
    found = {f["allocation"]["lineno"] - BODY_LINE: f["bytes_per_step"] for f in report["findings"]}
    assert found == {1: pytest.approx(50_000, rel=0.1), 2: pytest.approx(20_000, rel=0.1)}


@needs_malloc
def test_a_tracer_of_someone_else_is_left_alone():
    finding = the_finding(
        "libc.malloc(50_000)\n    assert sys.gettrace() is tracer",
        before="tracer = lambda *a: None\nsys.settrace(tracer)",
    )
    assert finding["kind"] == "native_growth" and line_of(finding) == BODY_LINE + 2  # by samples


@needs_malloc
def test_what_is_freed_after_the_loop_is_not_taken_off():
    """The script's own arrays go when its function returns, before the watch ends."""
    report = run(
        """
        import ctypes, json, leakprobe
        libc = ctypes.CDLL(None)
        libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
        libc.free.argtypes = [ctypes.c_void_p]
        def main(probe):
            table = libc.malloc(64 << 20)
            for i in range(120):
                libc.malloc(60_000)
                probe.step()
            libc.free(table)
        with leakprobe.watch() as probe:
            main(probe)
        print(json.dumps(probe.report().to_dict()))
        """
    )
    (finding,) = report["findings"]
    assert finding["kind"] == "native_growth" and finding["bytes_per_step"] == pytest.approx(60_000, rel=0.1)


@needs_malloc
def test_no_tracer_stays_behind():
    report_of(
        "libc.malloc(50_000)\n    assert i < 40 or sys.gettrace() is None\n    assert i < 40 or sys._getframe(1).f_trace is None"
    )


@pytest.mark.parametrize(
    "body",
    [
        "libc.free(libc.malloc(100_000))",
        "[libc.free(p) for p in [libc.malloc(1000) for _ in range(200)]] and None",
        "kept.append(libc.malloc(50_000)) if i < 30 else None",  # a cache that is full at half time
        "kept.append(libc.malloc(100_000)); len(kept) > 8 and libc.free(kept.pop(0))",  # a ring
        "ctypes.memset(lazily + i * 262144, 1, 262144)",  # touches a block that was there before
        "open('/etc/passwd').close()",
        "kept.append(os.open('/dev/null', 0)); len(kept) > 9 and os.close(kept.pop(0))",
        "i < 30 and i % 5 == 0 and kept.append(os.open('/dev/null', 0))",  # opened when first needed
        "t = threading.Thread(target=int); t.start(); t.join()",
        "subprocess.run(['true'])",
    ],
    ids=range(10),
)
def test_clean_twins_are_silent(body):
    report = report_of(body, before="lazily = libc.calloc(64, 1 << 20)")
    assert report["verdict"] == "steady", [f["evidence"] for f in report["findings"]]


def test_large_blocks_of_python_are_no_native_growth():
    finding = the_finding("kept.append(bytes(100_000))")
    assert finding["kind"] == "retained" and finding["medium"] == "python"


def test_files_kept_open_are_one_finding_with_their_owner():
    finding = the_finding("kept.append(open('/etc/passwd'))")
    assert finding["kind"] == "retained" and "kept" in finding["holder"]["text"]
    assert finding["cause"] == "never_closed" and "open descriptors rose" in finding["evidence"]
    assert line_of(finding) == BODY_LINE + 1


def test_descriptors_without_an_object_are_a_finding_with_the_line_that_was_measured():
    finding = the_finding("os.open('/dev/null', os.O_RDONLY)")
    assert (finding["kind"], finding["medium"], finding["type"]) == ("resource_growth", "fd", None)
    assert finding["count_per_step"] == 1 and finding["live_count"] == 55
    assert finding["allocation"]["filename"] == "<string>" and finding["cause"] == "never_closed"
    assert line_of(finding) == BODY_LINE + 1


OWNED = """import tempfile, sqlite3
path = os.path.join(tempfile.mkdtemp(), 'rows')
database = sqlite3.connect(path)
database.execute('create table t (n text)')
database.executemany('insert into t values (?)', [('x' * 300,)] * 3000)
database.commit()
class Shard:
    def __init__(self):
        self.database = sqlite3.connect(path)
        self.rows = self.database.execute('select n from t')
def read(i):
    one = Shard()
    kept.append((one, {'number': i}))
    one.rows.fetchmany(50)"""


@needs_malloc
def test_what_a_library_keeps_for_objects_of_several_lines_is_part_of_their_one_finding():
    finding = the_finding("read(i)", before=OWNED, steps=200)
    assert (finding["kind"], finding["cause"]) == ("retained", "never_closed")
    assert (
        finding["bytes_per_step"] > 50_000
        and "is memory of a library that its items own" in finding["evidence"]
    )


def test_live_bytes_of_segments_are_those_that_came():
    finding = the_finding(
        "kept.append(os.memfd_create('new')); os.write(kept[-1], b'x' * 65536)",
        before="old = os.memfd_create('old'); os.write(old, b'x' * (16 << 20))",
    )
    assert finding["medium"] == "shared" and finding["live_bytes"] < 60 * 65536


def test_mappings_in_a_list_are_told_with_it():
    finding = the_finding(
        "kept.append(mmap.mmap(-1, 65536)); kept[-1].write(b'x' * 65536)", before=f"import mmap{FREE}"
    )
    assert finding["holder"] and finding["holder"]["text"].startswith("kept (list")


def test_descriptors_that_some_steps_keep_are_a_finding():
    finding = the_finding("i % 7 or os.open('/dev/null', os.O_RDONLY)", steps=150)
    assert (finding["medium"], finding["cause"]) == ("fd", "never_closed")
    assert finding["count_per_step"] == pytest.approx(1 / 7, abs=0.02)
    assert line_of(finding) == BODY_LINE + 1


@pytest.mark.skipif(not descriptors_are_told(), reason="needs Linux 6.2")
def test_copies_of_descriptors_that_are_closed_are_a_finding_with_their_line():
    """mmap keeps a copy: the number that is free next stays what it was."""
    finding = the_finding("number = os.open('/dev/null', os.O_RDONLY); os.dup(number); os.close(number)")
    assert (finding["medium"], finding["cause"]) == ("fd", "never_closed")
    assert line_of(finding) == BODY_LINE + 1


def test_threads_that_never_end_are_told_once():
    finding = the_finding("threading.Thread(target=never.wait, daemon=True).start()")
    assert "threads rose" in finding["evidence"] and finding["cause"] == "never_ended"
    assert line_of(finding) == BODY_LINE + 1


def test_processes_that_nobody_waits_for():
    finding = the_finding("os.fork() == 0 and os._exit(0)", steps=40)
    assert (finding["kind"], finding["medium"]) == ("resource_growth", "process")
    assert finding["count_per_step"] == pytest.approx(1, abs=0.1)


def test_look_marks_tell_what_malloc_and_the_kernel_say():
    rows = report_of("pass")["memory"]
    looks = [r for r in rows if "malloc_in_use" in r]
    assert 2 <= len(looks) <= 6  # few: nothing grows
    assert (
        all(r["private"] > 1 << 20 and r["shared"] >= 0 for r in looks if "private" in r)
        and "private" in looks[0]
    )


def test_another_malloc_is_not_available(tmp_path):
    library = tmp_path / "malloc.so"
    source = tmp_path / "malloc.c"
    source.write_text(
        "#include <stddef.h>\nextern void *__libc_malloc(size_t);\nvoid *malloc(size_t n) { return __libc_malloc(n); }\n"
    )
    if os.system(f"cc -shared -fPIC -o {library} {source}") != 0:
        pytest.skip("no C compiler")
    report = report_of("libc.malloc(100_000)", env={"LD_PRELOAD": str(library)})
    assert report["verdict"] == "steady"
    assert {r["malloc_in_use"] for r in report["memory"] if "malloc_in_use" in r} == {"not available"}


def test_counts_are_right():
    before, after, kinds = run(
        """
        import json, os, socket, tempfile, threading
        from leakprobe import _core
        before = [*_core.resource_counts(), _core.resources()["children"]]
        never = threading.Event()
        for _ in range(7):
            threading.Thread(target=never.wait, daemon=True).start()
        files = [tempfile.TemporaryFile() for _ in range(5)] + [socket.socket() for _ in range(3)]
        pipes = [os.pipe() for _ in range(2)]
        children = [os.fork() or os._exit(0) for _ in range(4)]
        found = _core.resources()
        print(json.dumps([before, [*_core.resource_counts(), found["children"]], found["descriptors_by_kind"]]), flush=True)
        os._exit(0)
        """
    )
    assert [b - a for a, b in zip(before, after)] == [12, 7, 4]
    assert kinds["socket"] >= 3 and kinds["file"] >= 5 and kinds["pipe"] >= 4


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="segments are the files of /dev/shm")
def test_segments_are_counted_as_they_come_and_go():
    """Where nothing was mapped since the last count, that one stands."""
    counts = run(
        """
        import json
        from multiprocessing import shared_memory
        from leakprobe import _core
        def count():
            return _core.resources()["segments"]
        counts, held = [count(), count()], []
        for size in (1, 5000, 2_000_000):
            held.append(shared_memory.SharedMemory(create=True, size=size))
            counts += [count(), count()]
        while held:
            segment = held.pop()
            segment.close()
            segment.unlink()
            counts += [count(), count()]
        print(json.dumps([n - counts[0] for n in counts]))
        """
    )
    assert counts == [0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 1, 1, 0, 0]


def test_a_look_does_not_show_in_what_malloc_holds():
    """Its own objects, of a heap with many sites, are made after malloc was read."""
    points, looks = run("""
        import json, leakprobe
        scope = {"slots": [None] * 3000 * 40}
        exec(compile("".join(f"def f{i}(n):\\n    slots[3000 * n + {i}] = [1.5 * n]\\n" for i in range(3000)), "<sites>", "exec"), scope)
        makers, looks = [scope[f"f{i}"] for i in range(3000)], set()
        with leakprobe.watch() as probe:
            for n in range(40):
                for make in makers:
                    make(n)
                probe.step()
                looks.add(probe.progress()["looked"])
        print(json.dumps([probe._readings.engine.resources.beyond_ledger.points, sorted(looks - {None})]))
    """)
    value = dict(points)
    between = [step for step in looks if step - 1 in value and step + 1 in value]
    assert between, looks
    for step in between:
        assert value[step] - max(value[step - 1], value[step + 1]) < 8_192, (step, points)


@needs_malloc
@pytest.mark.parametrize("onset", [100, 200, 300])
def test_native_growth_that_begins_late_has_its_own_rate(onset):
    """No two full censuses are needed where no line of Python's grows."""
    finding = the_finding(f"i < {onset} or libc.malloc(9000)", before=FREE, steps=600)
    assert (finding["kind"], finding["medium"]) == ("native_growth", "native")
    assert finding["bytes_per_step"] == pytest.approx(9000, rel=0.1)


def test_descriptors_that_began_to_rise_too_late_for_a_verdict():
    report = report_of("i < 420 or os.open('/dev/null', os.O_RDONLY)", before=FREE, steps=600)
    told = [note["text"] for note in report["notes"] if note["kind"] == "warm_up"]
    assert (report["verdict"], report["findings"]) == ("inconclusive", [])
    assert len(told) == 1 and "more open descriptors at step 600" in told[0]
