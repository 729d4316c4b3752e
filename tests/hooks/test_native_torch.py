"""Blocks of torch's CPU storage and shared memory, on the real torch."""

import ctypes
import random
import threading

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

from native_support import CPU_MECHANISMS, Totals, build_late, linux_only, status

from leakprobe import _core

pytestmark = linux_only


@pytest.fixture(params=CPU_MECHANISMS)
def cpu(request):
    """Totals of the cpu medium, hooked by each of the mechanisms."""
    _core.native_install(["cpu"], request.param)
    assert status(_core, "cpu")["mechanism"] == request.param
    yield Totals(_core, "cpu")
    _core.native_uninstall()


@pytest.fixture
def both():
    _core.native_install(["cpu", "shared"])
    assert status(_core, "cpu")["active"] and status(_core, "shared")["active"]
    yield Totals(_core, "cpu"), Totals(_core, "shared")
    _core.native_uninstall()


def test_the_best_mechanism_serves():
    _core.native_install(["cpu"])
    try:
        assert status(_core, "cpu") == {
            "medium": "cpu",
            "mechanism": CPU_MECHANISMS[0],
            "active": True,
            "why_not": None,
        }
    finally:
        _core.native_uninstall()
    assert not status(_core, "cpu")["active"]


def test_each_tensor_is_counted_with_exact_bytes(cpu):
    sizes = [1, 2, 3, 1000, 4099, 65536, 1 << 20]
    tensors = [torch.empty(size, dtype=torch.uint8) for size in sizes]
    assert cpu.live() == (len(sizes), sum(sizes))
    tensors.pop()
    assert cpu.live() == (len(sizes) - 1, sum(sizes[:-1]))
    del tensors
    assert cpu.live() == (0, 0) and cpu.is_clean()


def test_an_empty_storage_is_no_block(cpu):
    tensor = torch.empty(0)
    assert cpu.live() == (0, 0)
    del tensor
    assert cpu.live() == (0, 0) and cpu.is_clean()


def test_a_resize_replaces_the_block(cpu):
    tensor = torch.empty(10, dtype=torch.uint8)
    tensor.resize_(100_000)
    assert cpu.live() == (1, 100_000)
    del tensor
    assert cpu.live() == (0, 0)


def test_a_numpy_view_keeps_the_block(cpu):
    tensor = torch.empty(5000, dtype=torch.uint8)
    view = tensor.numpy()[10:20]
    del tensor
    assert cpu.live() == (1, 5000)
    del view
    assert cpu.live() == (0, 0)


def test_foreign_memory_is_not_torch_s(cpu):
    array = np.zeros(10_000)
    tensor = torch.from_numpy(array)
    assert cpu.live() == (0, 0)
    del tensor


def test_what_could_not_be_allocated_is_not_recorded(cpu):
    """The C++ exception passes through the trampoline's frame."""
    for _ in range(3):
        with pytest.raises(RuntimeError):
            torch.empty(1 << 50)
    assert cpu.live() == (0, 0)


def churn(seed, count, kept):
    rng = random.Random(seed)
    mine = []
    for _ in range(count):
        if mine and rng.random() < 0.5:
            mine[rng.randrange(len(mine))] = mine[-1]
            mine.pop()
        else:
            mine.append(torch.empty(rng.choice((1, 17, 300, 5000, 70000)), dtype=torch.uint8))
    kept.append(mine)


def test_eight_threads_agree_with_the_truth():
    _core.native_install(["cpu"])
    cpu = Totals(_core, "cpu")
    try:
        kept = []
        threads = [threading.Thread(target=churn, args=(seed, 20_000, kept)) for seed in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        blocks = {t.data_ptr(): t.untyped_storage().nbytes() for mine in kept for t in mine}
        assert cpu.live() == (len(blocks), sum(blocks.values()))
        kept.clear()
        del blocks
        assert cpu.live() == (0, 0) and cpu.is_clean()
    finally:
        _core.native_uninstall()


def test_threads_run_while_hooks_come_and_go():
    stop = threading.Event()

    def work():
        while not stop.is_set():
            torch.empty(100)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for i in range(200):
            _core.native_install(["cpu"], CPU_MECHANISMS[i % 3])
            assert status(_core, "cpu")["active"]
            _core.native_uninstall()
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_shared_memory_is_counted_and_leaves_cpu(both):
    cpu, shared = both
    tensor = torch.empty(5000, dtype=torch.uint8)
    tensor.share_memory_()
    assert cpu.live() == (0, 0) and shared.live() == (1, 5000)
    view = tensor[3:7]
    del tensor
    assert shared.live() == (1, 5000)
    del view
    assert shared.live() == (0, 0) and shared.is_clean()


def test_canaries_leave_no_trace():
    _core.native_uninstall()
    before = _core.ledger_totals()
    for _ in range(3):
        _core.native_install(["cpu", "shared", "numpy"])
        _core.native_uninstall()
    assert _core.ledger_totals() == before


def test_modes_do_not_mislead_the_canary():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode(), torch.device("meta"):
        _core.native_install(["cpu", "shared"])
        active = status(_core, "cpu")["active"], status(_core, "shared")["active"]
    _core.native_uninstall()
    assert active == (True, True)


def test_tensors_older_than_the_hooks_are_unmatched():
    tensor = torch.empty(100)
    _core.native_install(["cpu"])
    cpu = Totals(_core, "cpu")
    del tensor
    assert cpu.live() == (0, 0) and cpu.unmatched == 1
    _core.native_uninstall()


def test_after_uninstall_nothing_is_recorded(both):
    cpu, shared = both
    _core.native_uninstall()
    kept = torch.empty(100), torch.empty(100).share_memory_()
    assert cpu.live() == (0, 0) and shared.live() == (0, 0)
    del kept


def test_rescan_says_nothing_new(both):
    assert [_core.native_rescan() for _ in range(100)] == [False] * 100


@pytest.fixture
def late(both, tmp_path):
    """A library that reports shared memory, loaded after the hooks were installed."""
    library = ctypes.CDLL(str(build_late(tmp_path)))
    library.late_report.argtypes = [ctypes.c_size_t, ctypes.c_int64, ctypes.c_int, ctypes.c_int]
    return library.late_report, both[1]


def test_a_library_loaded_later_is_hooked_by_rescan(late):
    report, shared = late
    report(0x10000, 64, 0, -1)
    assert shared.live() == (0, 0)
    _core.native_rescan()
    report(0x20000, 64, 0, -1)
    assert shared.live() == (1, 64)
    report(0x20000, -64, 0, -1)
    assert shared.live() == (0, 0) and shared.is_clean()


def test_other_devices_are_not_shared_memory(late):
    report, shared = late
    _core.native_rescan()
    report(0x30000, 64, 1, 0)
    report(0x30000, 64, 0, 0)
    assert shared.live() == (0, 0)


@pytest.mark.parametrize("second", [100, 200])
def test_a_birth_may_come_before_the_death_at_its_address(late, second):
    report, shared = late
    _core.native_rescan()
    report(0x40000, 100, 0, -1)
    report(0x40000, second, 0, -1)
    report(0x40000, -100, 0, -1)
    assert shared.live() == (1, second)
    report(0x40000, -second, 0, -1)
    assert shared.live() == (0, 0) and shared.is_clean()
