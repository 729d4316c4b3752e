"""Blocks of a C library of our own are told by line and bytes, by import slots and by the preloaded library;
slots come and go without a trace.
"""

import json
import math
import zlib

import pytest
from native_support import build, linux_only, run_fresh

from leakprobe import _core, preload

pytestmark = [
    linux_only,
    pytest.mark.skipif(_core.malloc_why_not() is not None, reason="malloc's numbers can't be had here"),
]

#: What sees the calls => variables of the process.
SEEN_BY = {"slots": {}, "preloaded": {"LD_PRELOAD": preload.path()}}
seen_by = pytest.mark.parametrize("seen_by", SEEN_BY)
WAYS = ("malloc", "calloc", "aligned", "mmap", "new", "realloc", "strdup")
LOOP = """
import ctypes, json, sys, leakprobe
library = ctypes.CDLL(sys.argv[1])
for function in ({names}):
    getattr(library, function).argtypes = [ctypes.c_size_t]
{before}
def step(i):
    {body}
with leakprobe.watch() as probe:
    for i in range({steps}):
        step(i)
        probe.step()
print(json.dumps(probe.report().to_dict()))
"""
BODY_LINE = 8
STEPS, BYTES = 120, 128 * 1024


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return build(
        "forgetful.c", tmp_path_factory.mktemp("ext") / "libforgetful.so", "-fno-builtin", "-lstdc++"
    )


def report_of(library, body, seen_by, before="", steps=STEPS):
    names = (
        ", ".join(f"'forget_{way}'" for way in (*WAYS, "getline", "by_pointer", "in_thread"))
        + ", 'keep_some'"
    )
    code = LOOP.format(names=names, body=body, before=before, steps=steps)
    return json.loads(run(code, library, seen_by).splitlines()[-1])


def run(code, library, seen_by):
    code += f"\nfrom leakprobe import _core\nassert _core.is_preloaded() is {seen_by == 'preloaded'}"
    return run_fresh(code, library, alone=True, env=SEEN_BY[seen_by])


@seen_by
@pytest.mark.parametrize("way", [*WAYS, "getline"])
def test_what_a_library_forgets_is_told_by_line_and_bytes(library, way, seen_by):
    check_line(report_of(library, f"library.forget_{way}({BYTES})", seen_by))


@pytest.mark.parametrize("name", ["libc.so.6", None])
@seen_by
def test_a_pointer_that_ctypes_has_looked_up(library, name, seen_by):
    before = f"libc = ctypes.CDLL({name!r}); libc.malloc.restype = ctypes.c_void_p"
    body = f"ctypes.memset(libc.malloc(ctypes.c_size_t({BYTES})), 1, {BYTES})"
    check_line(report_of(library, body, seen_by, before))


def test_a_pointer_that_a_library_has_looked_up_is_seen_by_the_preloaded_library(library):
    report = report_of(library, f"library.forget_by_pointer({BYTES})", "preloaded")
    check_line(report)
    assert "sampled" in report["findings"][0]["evidence"]


def check_line(report):
    (finding,) = report["findings"]
    assert (finding["kind"], finding["cause"]) == ("native_growth", "native_growth")
    assert finding["allocation"]["lineno"] == BODY_LINE
    assert finding["bytes_per_step"] == pytest.approx(BYTES, rel=0.15)
    assert finding["live_bytes"] >= 10 << 20


@seen_by
def test_small_blocks_are_sampled_without_bias(library, seen_by):
    body = "[library.forget_malloc(n) for n in (24, 100, 1000) for _ in range(150)]"
    report = report_of(library, body, seen_by)
    (finding,) = report["findings"]
    assert finding["bytes_per_step"] == pytest.approx(150 * (32 + 112 + 1008), rel=0.15)


@pytest.mark.skipif(not hasattr(zlib, "__file__"), reason="zlib is a part of the interpreter here")
@seen_by
def test_what_an_extension_asks_the_interpreters_raw_allocator_for(library, seen_by):
    """zlib's states come from PyMem_RawMalloc(): the interpreter's own calls of malloc are not sampled."""
    body = "kept[i] = zlib.compressobj(6)"
    report = report_of(library, body, seen_by, "import zlib\nkept = {}", 60)
    finding = report["findings"][0]
    assert finding["allocation"]["lineno"] == BODY_LINE + 1, report
    assert finding["bytes_per_step"] == pytest.approx(268_000, rel=0.15)


@pytest.mark.skipif(not hasattr(zlib, "__file__"), reason="zlib is a part of the interpreter here")
def test_what_is_let_go_with_the_loop_has_the_line_that_it_had_in_it():
    """malloc's growth is known by then, and samples that are free at the end do not say that no line grew.
    Python's part of it is counted though its objects are not watched.
    """
    code = """
import ctypes, json, zlib, leakprobe
def loop(probe):
    kept = []
    for i in range(60):
        kept.append([zlib.compressobj(6) for _ in range(2)])
        probe.step()
with leakprobe.watch(media=("native",)) as probe:
    loop(probe)
print(json.dumps(probe.report().to_dict()))
"""
    found = json.loads(run_fresh(code).splitlines()[-1])["findings"][0]
    assert found["kind"] == "native_growth"
    assert found["allocation"]["lineno"] == 6 and "sampled" in found["evidence"], found
    assert found["bytes_per_step"] == pytest.approx(2 * 268_000, rel=0.15)


@seen_by
def test_several_lines_are_told_apart(library, seen_by):
    body = "\n    ".join(f"library.forget_{way}({20_000 + 8_000 * i})" for i, way in enumerate(WAYS))
    found = {
        f["allocation"]["lineno"] - BODY_LINE: f["bytes_per_step"]
        for f in report_of(library, body, seen_by)["findings"]
        if f["allocation"]
    }
    for i in range(len(WAYS)):
        if WAYS[i] != "realloc":  # a block that grows in place of another is judged by its size alone
            assert found[i] == pytest.approx(20_000 + 8_000 * i, rel=0.15), (WAYS[i], found)


@seen_by
def test_a_thread_without_python_is_named_by_its_library(library, seen_by):
    (finding,) = report_of(library, f"library.forget_in_thread({BYTES})", seen_by)["findings"]
    assert finding["bytes_per_step"] == pytest.approx(BYTES, rel=0.15)
    assert finding["allocation"]["filename"].endswith("libforgetful.so")


@pytest.mark.parametrize(
    "body",
    [
        f"library.keep_some({BYTES})",
        f"[library.keep_some({BYTES} // 64) for _ in range(100)] and None",
        f"library.forget_malloc({BYTES}) if i < 30 else None",
    ],
    ids=range(3),
)
@seen_by
def test_what_has_a_bound_or_stops_is_silent(library, body, seen_by):
    report = report_of(library, body, seen_by)
    assert report["verdict"] == "steady", [f["evidence"] for f in report["findings"]]


@seen_by
def test_deaths_are_seen_and_slots_are_put_back(library, seen_by):
    run(
        """
import ctypes, sys, pathlib
from leakprobe import _core
library = ctypes.CDLL(sys.argv[1])
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
_core.start(16, "/nowhere")
assert not _core.native_samples()
for i in range(20):
    assert _core.native_follow(1)
    blocks = [libc.malloc(1000) for _ in range(200)]
    mine = lambda: sum(size == 1000 for _, _, size, _ in _core.native_samples())
    assert mine() >= 199, mine()
    for block in blocks:
        libc.free(block)
    assert mine() == 0
    assert _core.native_unfollow() == 0
    assert not _core.native_samples()
library.forget_malloc(1000)
assert _core.native_counts()[:2] == (0, 0)
_core.stop()
""",
        library,
        seen_by,
    )


@seen_by
def test_a_library_that_is_unloaded_takes_its_slots_along(library, seen_by):
    run(
        """
import _ctypes, ctypes, sys
from leakprobe import _core
_core.start(16, "/nowhere")
for i in range(50):
    handle = _ctypes.dlopen(sys.argv[1], 0)
    assert _core.native_follow(1)
    _core.native_counts()
    ctypes.CFUNCTYPE(None, ctypes.c_size_t)(_ctypes.dlsym(handle, "forget_malloc"))(100)
    _ctypes.dlclose(handle)
    assert sys.argv[1] not in open("/proc/self/maps").read(), "it must not be pinned"
    if i % 2:
        assert _core.native_unfollow() == 0
assert _core.native_unfollow() == 0
_core.stop()
""",
        library,
        seen_by,
    )


@seen_by
def test_a_library_that_is_loaded_again_where_it_was_is_seen(library, seen_by):
    run(
        """
import _ctypes, ctypes, sys
from leakprobe import _core
_core.start(16, "/nowhere")
assert _core.native_follow(1000)
for _ in range(5):
    handle, before = _ctypes.dlopen(sys.argv[1], 0), _core.native_counts()[0]
    forget = ctypes.CFUNCTYPE(None, ctypes.c_size_t)(_ctypes.dlsym(handle, "forget_malloc"))
    for _ in range(1000):
        forget(1000)
    assert 400 < _core.native_counts()[0] - before < 900  # 632 of 1,000
    _ctypes.dlclose(handle)
assert _core.native_unfollow() == 0
_core.stop()
""",
        library,
        seen_by,
    )


@seen_by
def test_a_rare_sample_of_an_earlier_watch_does_not_delay_those_of_this_one(library, seen_by):
    run(
        """
import ctypes, sys
from leakprobe import _core
library = ctypes.CDLL(sys.argv[1])
library.forget_malloc.argtypes = [ctypes.c_size_t]
_core.start(16, "/nowhere")
for _ in range(10):
    assert _core.native_follow(1 << 50)
    library.forget_malloc(1000)
    _core.native_unfollow()
    assert _core.native_follow(1000)
    before = _core.native_counts()[0]
    for _ in range(2000):
        library.forget_malloc(1000)
    assert _core.native_counts()[0] - before > 700
    _core.native_unfollow()
_core.stop()
""",
        library,
        seen_by,
    )


@seen_by
def test_threads_that_come_one_after_another_are_sampled_by_chance(library, seen_by):
    """They lie at one address, and each has one block only."""
    out = run(
        """
import ctypes, sys
from leakprobe import _core
library = ctypes.CDLL(sys.argv[1])
library.forget_in_thread.argtypes = [ctypes.c_size_t]
_core.start(16, "/nowhere")
assert _core.native_follow(100_000)
for _ in range(300):
    library.forget_in_thread(100_000)
print(sum(weight for _, _, weight, _ in _core.native_samples() if weight > 100_000))
_core.native_unfollow()
_core.stop()
""",
        library,
        seen_by,
    )
    assert int(out.split()[-1]) == pytest.approx(300 * 100_000, rel=0.2)  # five deviations


@seen_by
def test_samples_that_get_rarer_stand_for_as_much(library, seen_by):
    out = run(
        """
import ctypes, sys
from leakprobe import _core
library = ctypes.CDLL(sys.argv[1])
library.forget_malloc.argtypes = [ctypes.c_size_t]
_core.start(16, "/nowhere")
def weights():
    rows = _core.native_samples()
    return len(rows), sum(weight for _, _, weight, _ in rows)
for mean in (1000, 4000):
    assert _core.native_follow(mean)
    for _ in range(2000):
        library.forget_malloc(1000)
    print(*weights())
_core.native_unfollow()
_core.stop()
""",
        library,
        seen_by,
    )
    numbers = list(map(int, out.split()))[-4:]
    assert numbers[0] == pytest.approx(2000 * (1 - math.exp(-1)), rel=0.1)
    assert numbers[2] == pytest.approx(4000 * (1 - math.exp(-1 / 4)), rel=0.15)
    assert numbers[1] == pytest.approx(2_000_000, rel=0.1)
    assert numbers[3] == pytest.approx(4_000_000, rel=0.15)


@seen_by
def test_forks_and_threads_while_blocks_are_sampled(library, seen_by):
    run(
        """
import ctypes, os, sys, threading
from leakprobe import _core
library = ctypes.CDLL(sys.argv[1])
library.keep_some.argtypes = [ctypes.c_size_t]
_core.start(16, "/nowhere")
assert _core.native_follow(1)
ended = threading.Event()
def churn():
    while not ended.is_set():
        library.forget_in_thread(64)
threads = [threading.Thread(target=churn, daemon=True) for _ in range(3)]
for thread in threads:
    thread.start()
for i in range(40):
    child = os.fork()
    if child == 0:
        library.forget_malloc(100)
        library.keep_some(100)
        os._exit(0 if not _core.native_samples() else 1)
    assert os.waitpid(child, 0)[1] == 0
    if i % 8 == 7:
        assert _core.native_unfollow() == 0
        assert _core.native_follow(1)
library.forget_malloc(100)
ended.set()
for thread in threads:
    thread.join()
assert _core.native_counts()[0] > 0
assert _core.native_unfollow() == 0
_core.stop()
""",
        library,
        seen_by,
    )


@pytest.mark.parametrize("fork", ["os.fork", "fork_in_c"])
@seen_by
def test_a_fork_waits_for_no_thread_that_waits_for_the_sampler(library, fork, seen_by):
    """A library's own lock, which fork() takes, is held by threads that allocate."""
    run(
        f"""
import ctypes, os, sys, threading
from leakprobe import _core
library = ctypes.CDLL(sys.argv[1])
library.allocate_with_lock.argtypes = [ctypes.c_size_t]
library.hold_lock_over_forks()
_core.start(16, "/nowhere")
assert _core.native_follow(1)
ended = threading.Event()
def churn():
    while not ended.is_set():
        library.allocate_with_lock(64)
def fork_in_c():
    assert library.fork_and_allocate() == 0
def fork_in_python():
    child = os.fork()
    if child == 0:
        library.allocate_with_lock(64)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
threads = [threading.Thread(target=churn, daemon=True) for _ in range(3)]
for thread in threads:
    thread.start()
for i in range(200):
    {"fork_in_c" if fork == "fork_in_c" else "fork_in_python"}()
ended.set()
for thread in threads:
    thread.join()
assert _core.native_counts()[0] > 0
_core.native_unfollow()
_core.stop()
""",
        library,
        seen_by,
    )


@seen_by
def test_nothing_is_sampled_while_nothing_grows(library, seen_by):
    run(
        """
import ctypes, sys, leakprobe
from leakprobe import _core
library = ctypes.CDLL(sys.argv[1])
library.keep_some.argtypes = [ctypes.c_size_t]
[library.keep_some(5000) for _ in range(20)]
follow, calls = _core.native_follow, []
_core.native_follow = lambda mean: calls.append(mean) or follow(mean)
with leakprobe.watch() as probe:
    for i in range(60):
        library.keep_some(5000)
        probe.step()
assert not calls
""",
        library,
        seen_by,
    )


def test_a_leak_that_runs_for_long_leaves_room_for_the_next(library):
    """64 samples a step would fill the table after 1,024 steps."""
    code = """
import ctypes, json, sys
from leakprobe import _core
from leakprobe.model import bounds
from leakprobe.watch.native_samples import NativeSamples
library = ctypes.CDLL(sys.argv[1])
library.forget_malloc.argtypes = [ctypes.c_size_t]
_core.start(16, "/nowhere")
samples = NativeSamples()
samples._allowance_s = float("inf")  # as if the steps were long
samples.want(0, 64 * bounds.LEAST_MEAN)
for step in range(1500):
    for _ in range(64): library.forget_malloc(640)  # each is taken but one in 22,000
    _core.mark()
    samples.mark()
rows = _core.native_samples()
counts, told = _core.native_counts(), sum(size for _, _, size, _ in rows)
samples.end()
print(json.dumps([counts, told, max(row[1] for row in rows), bounds.SAMPLES_KEPT]))
"""
    (taken, live, _missed, dropped), told, newest, kept = json.loads(
        run(code, library, "slots").splitlines()[-1]
    )
    assert taken > 65_536 > kept > live and dropped == 0
    assert told == pytest.approx(1500 * 64 * 640, rel=0.05) and newest >= 1499
