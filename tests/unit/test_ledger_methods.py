"""The ledger of native blocks as Python sees it: totals, groups and series all agree with the blocks."""

import collections

import pytest

from leakprobe import _core
from leakprobe.errors import LeakprobeError

np = pytest.importorskip("numpy")

KIB = 1024


@pytest.fixture
def numpy_blocks(tmp_path):
    """Hooks on numpy's buffers, in a ledger of its own."""
    _core.start(16, str(tmp_path) + "/")
    try:
        _core.native_install(["numpy"])
        if not any(row["medium"] == "numpy" and row["active"] for row in _core.native_status()):
            pytest.skip("numpy's buffers can't be hooked here")
        yield
    finally:
        _core.native_uninstall()
        _core.stop()


def blocks_of(size):
    return [row for row in _core.ledger_blocks() if row[1] == size and row[2] == "numpy"]


def make(count, size):
    return [np.empty(size, np.uint8) for _ in range(count)]


def test_a_block_is_one_row_with_its_address_step_and_line(numpy_blocks):
    step = _core.mark()
    kept = make(3, 77 * KIB)
    rows = blocks_of(77 * KIB)
    assert sorted(row[0] for row in rows) == sorted(array.ctypes.data for array in kept)
    assert {row[4] for row in rows} == {step}
    filename, _, function = _core.site_frames(rows[0][3])[0]
    assert filename == __file__ and function.rpartition(".")[2] in ("<listcomp>", "make")
    del kept
    assert blocks_of(77 * KIB) == []


def test_blocks_are_sorted_by_address(numpy_blocks):
    kept = make(50, 3 * KIB)
    addresses = [row[0] for row in _core.ledger_blocks()]
    assert len(addresses) >= 50 and addresses == sorted(addresses)
    del kept


def test_groups_series_and_totals_agree_with_the_blocks(numpy_blocks):
    kept = []
    for i in range(6):
        kept.append(make(i + 1, 5 * KIB))
        first_of_all = _core.mark() - 1 - i
    rows = _core.ledger_blocks()
    totals = _core.ledger_totals()["numpy"]
    of_numpy = [row for row in rows if row[2] == "numpy"]
    assert totals["live_count"] == len(of_numpy) and totals["live_bytes"] == sum(row[1] for row in of_numpy)
    assert totals["peak_bytes"] >= totals["live_bytes"] and totals["dropped"] == 0
    expected = collections.defaultdict(lambda: collections.defaultdict(lambda: [0, 0]))
    for _, size, medium, site, step in rows:
        cell = expected[medium, _core.site_base(site)][step]
        cell[0] += 1
        cell[1] += size
    first, last = first_of_all + 1, first_of_all + 4
    groups = _core.ledger_groups(first, last, 0)
    assert {group[:2] for group in groups} == set(expected)
    for medium, site, count, size, window_count, window_bytes, window_steps, first_step, last_step in groups:
        steps = expected[medium, site]
        inside = [cell for step, cell in steps.items() if first <= step <= last]
        assert _core.ledger_series(medium, site) == [(s, *cell) for s, cell in sorted(steps.items())]
        assert (count, size) == tuple(map(sum, zip(*steps.values())))
        assert (window_count, window_bytes) == (sum(c[0] for c in inside), sum(c[1] for c in inside))
        assert (window_steps, first_step, last_step) == (len(inside), min(steps), max(steps))


def test_groups_with_too_few_steps_in_the_window_are_left_out(numpy_blocks):
    kept = []
    for _ in range(4):
        kept.append(make(1, 9 * KIB))
        _core.mark()
    site = _core.site_base(blocks_of(9 * KIB)[0][3])
    assert [g[1] for g in _core.ledger_groups(0, 2**32 - 1, 4) if g[0] == "numpy"].count(site) == 1
    assert all(g[1] != site for g in _core.ledger_groups(0, 2**32 - 1, 5))


def test_a_new_start_forgets_the_blocks_of_the_last_one(numpy_blocks, tmp_path):
    kept = make(5, 11 * KIB)
    assert len(blocks_of(11 * KIB)) == 5
    _core.native_uninstall()
    _core.stop()
    _core.start(16, str(tmp_path) + "/")
    assert _core.ledger_blocks() == [] and _core.ledger_totals() == {}
    del kept


def test_an_unknown_medium_is_an_error_and_an_unknown_site_is_empty():
    with pytest.raises(LeakprobeError) as error:
        _core.ledger_series("tape", 16)
    assert error.value.code == "bad_argument"
    assert _core.ledger_series("cpu", 2**20 - 1) == []


def test_overhead_is_counted(numpy_blocks):
    before = _core.overhead_bytes()
    kept = make(20_000, 16)
    assert 0 < before <= _core.overhead_bytes()
    del kept


needs_snapshots = pytest.mark.skipif(
    not hasattr(_core, "snapshot_new"), reason="no _core.Snapshot in this build"
)


@needs_snapshots
def test_rows_of_a_snapshot_are_joined_and_sorted():
    rows = [(900, 20, 3, 4, 1, 10), (700, 30, 1, 1, 2, 20), (900, 20, 1, 3, 5, 50)]
    found = [row for row in _core.snapshot_new(rows).rows() if row[0] == "python"]
    assert found == [("python", 700, 30, 1, 1, 2, 20), ("python", 900, 20, 1, 4, 6, 60)]


@needs_snapshots
def test_the_difference_of_two_snapshots():
    older = _core.snapshot_new([(1, 16, 0, 0, 5, 500), (2, 16, 0, 0, 1, 10), (3, 16, 0, 0, 7, 70)])
    newer = _core.snapshot_new([(1, 16, 0, 9, 4, 600), (3, 16, 0, 0, 7, 70), (4, 17, 9, 9, 2, 20)])
    assert newer.diff(older) == [
        ("python", 1, 16, -1, 100),
        ("python", 2, 16, -1, -10),
        ("python", 4, 17, 2, 20),
    ]
    assert older.diff(newer) == [(*row[:3], -row[3], -row[4]) for row in newer.diff(older)]
    assert newer.diff(newer) == []


@needs_snapshots
def test_native_blocks_are_in_a_snapshot(numpy_blocks):
    older = _core.snapshot_new()
    kept = make(4, 13 * KIB)
    site = _core.site_base(blocks_of(13 * KIB)[0][3])
    assert [row for row in _core.snapshot_new().diff(older) if row[2] == site] == [
        ("numpy", 0, site, 4, 4 * 13 * KIB)
    ]
    del kept


@needs_snapshots
def test_a_snapshot_gives_its_memory_back():
    rows = [(i, 16, 0, 0, 1, 1) for i in range(1000)]
    snapshot = _core.snapshot_new(rows)
    before = _core.overhead_bytes()
    for _ in range(100):
        snapshot.diff(_core.snapshot_new(rows))
    assert _core.overhead_bytes() == before


@needs_snapshots
@pytest.mark.parametrize("rows", [5, [5], [(1, 2)], [("a", 16, 0, 0, 1, 1)], [[1, 16, 0, 0, 1, 1]]])
def test_bad_rows_are_an_error(rows):
    with pytest.raises((TypeError, LeakprobeError)):
        _core.snapshot_new(rows)


@needs_snapshots
def test_only_snapshots_can_be_compared():
    with pytest.raises(LeakprobeError) as error:
        _core.snapshot_new().diff([])
    assert error.value.code == "bad_argument"
    with pytest.raises(TypeError):
        type(_core.snapshot_new())()


def test_sizes_are_counted_once(numpy_blocks):
    before = _core.ledger_sizes()
    kept = [make(3, (500 + i) * KIB) for i in range(20)]
    assert _core.ledger_sizes() - before in (19, 20)  # two sizes may share a bit
    del kept
    make(5, 500 * KIB)
    assert _core.ledger_sizes() - before in (19, 20)
