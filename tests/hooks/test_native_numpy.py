"""Blocks of numpy's data buffers, on the real numpy."""

import tracemalloc

import pytest

np = pytest.importorskip("numpy")

from native_support import Totals, linux_only, status

from leakprobe import _core

pytestmark = linux_only
NUMPY_DOMAIN = 389047


@pytest.fixture
def numpy_totals():
    _core.native_install(["numpy"])
    assert status(_core, "numpy") == {
        "medium": "numpy",
        "mechanism": "PyTraceMalloc slots",
        "active": True,
        "why_not": None,
    }
    yield Totals(_core, "numpy")
    _core.native_uninstall()


@pytest.mark.parametrize("make", [np.empty, np.zeros, np.ones])
def test_each_array_is_counted_with_exact_bytes(numpy_totals, make):
    sizes = [1, 7, 1000, 100_000]
    arrays = [make(size, dtype=np.uint8) for size in sizes]
    assert numpy_totals.live() == (len(sizes), sum(sizes))
    del arrays
    assert numpy_totals.live() == (0, 0) and numpy_totals.is_clean()


def test_a_view_keeps_the_base_s_block(numpy_totals):
    base = np.empty(10_000, dtype=np.uint8)
    view = base[5:6].view(np.int8).reshape(1, 1)
    del base
    assert numpy_totals.live() == (1, 10_000)
    del view
    assert numpy_totals.live() == (0, 0)


def test_a_resize_keeps_one_block(numpy_totals):
    array = np.empty(100, dtype=np.uint8)
    for size in (1_000_000, 50, 51, 3_000_000):
        array.resize(size, refcheck=False)
        assert numpy_totals.live() == (1, size)
    del array
    assert numpy_totals.live() == (0, 0) and numpy_totals.unmatched == 0


def test_object_arrays_count_their_pointers(numpy_totals):
    array = np.empty(1000, dtype=object)
    assert numpy_totals.live() == (1, 8000)
    del array
    assert numpy_totals.live() == (0, 0)


def test_foreign_memory_is_not_numpy_s(numpy_totals):
    array = np.frombuffer(bytearray(50_000), dtype=np.uint8)
    assert numpy_totals.live() == (0, 0)
    del array


def test_tracemalloc_sees_what_it_saw_before(numpy_totals):
    tracemalloc.start()
    try:
        array = np.empty(123_457, dtype=np.uint8)
        in_domain = tracemalloc.take_snapshot().filter_traces([tracemalloc.DomainFilter(True, NUMPY_DOMAIN)])
        assert sum(trace.size for trace in in_domain.traces) == 123_457
        assert numpy_totals.live() == (1, 123_457)
        del array
        in_domain = tracemalloc.take_snapshot().filter_traces([tracemalloc.DomainFilter(True, NUMPY_DOMAIN)])
        assert not list(in_domain.traces)
    finally:
        tracemalloc.stop()
    assert numpy_totals.live() == (0, 0)


def test_unknown_media_are_an_error():
    from leakprobe.errors import LeakprobeError

    with pytest.raises(LeakprobeError) as caught:
        _core.native_install(["numpy", "gold"])
    assert caught.value.code == "bad_argument" and "gold" in str(caught.value)
    assert not status(_core, "numpy")["active"]
