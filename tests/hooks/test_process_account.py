"""What grows and no object stands for is reported; malloc's figures are of the library that serves it."""

import ctypes.util
import json

import pytest
from fresh import run
from native_support import build, linux_only

pytestmark = linux_only

GROWS = """
    import ctypes, json, leakprobe
    from leakprobe import _core
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
    kept = []
    with leakprobe.watch() as probe:
        for i in range(300):
            BODY
            probe.step()
    report = probe.report().to_dict()
    print(json.dumps([report["verdict"], report["findings"], _core.malloc_why_not(), _core.malloc_info()]))
"""
LOST = "libc.memset(libc.malloc(65536), 1, 65536)"
FILLED = """
            if not i:
                buffer = libc.malloc(300 * 65536)
            libc.memset(buffer + i * 65536, 1, 65536)
"""


@pytest.fixture(scope="module")
def unknown(tmp_path_factory):
    """The environment of a process whose malloc nobody can ask."""
    path = tmp_path_factory.mktemp("ext") / "libmalloc.so"
    return {"LD_PRELOAD": str(build("malloc_of_its_own.c", path, "-fno-builtin"))}


def test_growth_that_nothing_explains_is_a_finding(unknown):
    verdict, findings, why_not, _ = run(GROWS.replace("BODY", LOST), env=unknown)
    assert why_not == "an allocator that leakprobe does not know serves malloc"
    assert verdict == "growing" and [f["kind"] for f in findings] == ["unexplained_growth"]
    assert findings[0]["bytes_per_step"] == pytest.approx(65536, rel=0.35)
    assert findings[0]["allocation"] is None and findings[0]["cause"] == "unknown"


def test_what_is_explained_is_told_once(unknown):
    verdict, findings, _, _ = run(GROWS.replace("BODY", "kept.append(bytearray(65536))"), env=unknown)
    assert [f["kind"] for f in findings] == ["retained"] and verdict == "growing"


def test_what_is_not_watched_may_explain_it(unknown):
    code = GROWS.replace("watch()", 'watch(media=["python"])').replace("BODY", LOST)
    assert run(code, env=unknown)[0] == "steady"


ARENA = """
            if not i:
                libc.mmap.restype = ctypes.c_void_p
                libc.mmap.argtypes = [ctypes.c_void_p, *[ctypes.c_size_t] * 5]
                arena = libc.mmap(0, 300 * 65536, 3, 0x22, 2**64 - 1, 0)  # writable; private, anonymous
            libc.memset(arena + i * 65536, 1, 65536)
"""


def test_an_allocator_that_fills_what_it_mapped_beforehand_is_a_finding():
    verdict, findings, why_not, _ = run(GROWS.replace("BODY", ARENA))
    assert why_not is None and verdict == "growing"
    assert [f["kind"] for f in findings] == ["unexplained_growth"]
    assert findings[0]["bytes_per_step"] == pytest.approx(65536, rel=0.2)


ARRAY = """
            if not i:
                import numpy
                array = numpy.empty(300 * 65536, numpy.uint8)
            array[i * 65536 : (i + 1) * 65536] = 1
"""


@pytest.mark.parametrize("body", [FILLED, ARRAY])
def test_a_buffer_that_is_filled_is_no_growth(body):
    if body is ARRAY:
        pytest.importorskip("numpy", reason="needs numpy")
    assert run(GROWS.replace("BODY", body))[:2] == ["steady", []]


@pytest.mark.parametrize("body", ["pass", FILLED, "kept[:] = [bytearray(65536 + 8 * i)]"])
def test_a_clean_loop_has_no_unexplained_growth(unknown, body):
    verdict, findings, _, _ = run(GROWS.replace("BODY", body), env=unknown)
    assert verdict == "steady", findings


def preloaded(name):
    path = ctypes.util.find_library(name)
    if path is None:
        pytest.skip(f"no {name} here")
    return {"LD_PRELOAD": path}


@pytest.mark.parametrize("name", ["jemalloc", "tcmalloc", "mimalloc"])
def test_the_allocator_that_serves_malloc_is_asked(name):
    *_, why_not, info = run(GROWS.replace("BODY", "pass"), env=preloaded(name))
    assert why_not is None and info["source"] == name and info["in_use"] > 1 << 20


@pytest.mark.parametrize("name", ["jemalloc", "tcmalloc"])
def test_what_a_library_forgets_is_found_whatever_serves_malloc(name):
    """mimalloc says only what it has committed, in leaps of 32 MiB."""
    verdict, findings, *_ = run(GROWS.replace("BODY", LOST), env=preloaded(name))
    assert verdict == "growing" and [f["kind"] for f in findings] == ["native_growth"]
    assert findings[0]["bytes_per_step"] == pytest.approx(65536, rel=0.3)


def test_glibc_is_asked_where_it_serves():
    why_not, info = run("""
        import json
        from leakprobe import _core
        print(json.dumps([_core.malloc_why_not(), _core.malloc_info()]))
    """)
    assert (info is None) == (why_not is not None)
    if info is not None:
        assert info["source"] in ("glibc", "jemalloc", "tcmalloc", "mimalloc")
        assert info["in_use"] > 0 and json.dumps(info)
