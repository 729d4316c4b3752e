"""The CUDA and pinned hooks on libraries that stand for torch's and for the CUDA runtime: no GPU is
needed.
"""

import pytest

pytest.importorskip("torch")

from cuda_support import standins_of_torch
from native_support import build, linux_only, run_fresh

pytestmark = linux_only

PRELUDE = """
import ctypes, sys, threading
import torch
from leakprobe import _core
from native_support import *
from cuda_support import Standins
cuda = Standins(sys.argv[1])
"""


@pytest.fixture(scope="module")
def standins(tmp_path_factory):
    folder = tmp_path_factory.mktemp("standins")
    made = standins_of_torch(folder)
    build("slot_tool.c", folder / "slot_tool.so")
    return made


def run(code, standins, *arguments):
    return run_fresh(PRELUDE + code, standins, *arguments)


def test_blocks_have_the_line_of_the_thread_that_made_them(standins):
    run(
        """
_core.start(16, "leakprobe")
_core.native_install(["cuda", "pinned"])
row = status(_core, "cuda")
assert not row["active"] and row["mechanism"].startswith("reportMemoryUsageToProfiler"), row
assert "not initialised" in row["why_not"] and not torch.cuda.is_initialized()
def make():
    return cuda.alloc(1, 0, 5000)
made = make()
in_thread = []
thread = threading.Thread(target=lambda: in_thread.append(make()))
thread.start(); thread.join()
blocks = [b for b in _core.ledger_blocks() if b[2] == "cuda:1"]
assert [b[1] for b in blocks] == [5120, 5120]
for address, _, _, site, _ in blocks:
    assert [f[2] for f in _core.site_frames(site)][:2] == ["Standins.alloc", "make"], _core.site_frames(site)
assert {b[0] for b in blocks} == {cuda.address(made), cuda.address(in_thread[0])}
cuda.free(made, 0); cuda.free(in_thread[0], 1)
totals = _core.ledger_totals()["cuda:1"]
assert (totals["live_count"], totals["unmatched"], totals["overwritten"]) == (0, 0, 0)
assert _core.cuda_memory()["segments"][1]["live_bytes"] == 2 << 20
""",
        standins,
    )


def test_eight_python_threads_agree_with_the_reference(standins):
    run(
        """
import random
_core.native_install(["cuda"])
truth, lock = [0] * 4, threading.Lock()
def work(seed):
    rng, kept, live = random.Random(seed), [], [0] * 4
    for _ in range(4000):
        if kept and rng.random() < 0.5:
            device, made = kept.pop(rng.randrange(len(kept)))
            live[device] -= cuda.bytes(made)
            cuda.free(made, rng.random() < 0.1)
        else:
            device = rng.randrange(4)
            made = cuda.alloc(device, 0, rng.randrange(1, 50_000))
            live[device] += cuda.bytes(made)
            kept.append((device, made))
        if rng.random() < 0.01:
            cuda.poll(device)
    with lock:
        for i in range(4): truth[i] += live[i]
threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
totals = _core.ledger_totals()
assert [totals[f"cuda:{i}"]["live_bytes"] for i in range(4)] == truth
assert all(t["unmatched"] == t["overwritten"] == t["dropped"] == 0 for t in totals.values())
""",
        standins,
    )


def test_no_deadlock_when_the_gil_is_held_at_the_device_s_lock(standins):
    """One thread frees with the GIL held and waits for the lock; the other allocates under the lock."""
    run(
        """
import faulthandler
faulthandler.dump_traceback_later(100, exit=True)
_core.native_install(["cuda"])
for i in range(500):
    old, made = cuda.alloc(0, 0, 700), []
    thread = threading.Thread(target=lambda: made.append(cuda.alloc_while_waited_for(0, 700)))
    thread.start()
    cuda.wait_for_holder()
    cuda.with_gil.standin_free_while_held(old)
    thread.join()
    cuda.free(made[0], 0)
assert _core.ledger_totals()["cuda:0"]["live_count"] == 0
""",
        standins,
    )


def test_a_thousand_times_leave_slots_and_pages_as_they_were(standins):
    run(
        """
tool = slot_tool(sys.argv[1] + "/slot_tool.so")
report = b"_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"
oom = b"_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE"
wanted = [("libc10_cuda_standin", n) for n in (report, oom, b"cudaMalloc", b"cudaFree", b"cudaMallocAsync", b"cudaFreeAsync", b"cudaSetDevice")]
wanted += [("libtorch_cuda_standin", n) for n in (b"cudaHostAlloc", b"cudaMallocHost", b"cudaFreeHost", b"cudaHostRegister", b"cudaHostUnregister")]
wanted += [("libtorch_python_standin", n) for n in (b"cudaHostRegister", b"cudaHostUnregister")]
slots = [tool.tool_find_slot(o.encode(), n) for o, n in wanted]
assert all(slots), [w for w, s in zip(wanted, slots) if not s]
before = [(tool.tool_read(s), page_permissions(s)) for s in slots]
for i in range(1000):
    _core.native_install(["cuda", "pinned"])
    if i % 100 == 0:
        assert all(tool.tool_read(s) != b[0] for s, b in zip(slots, before)), i
        assert [page_permissions(s) for s in slots] == [b[1] for b in before]
        made = cuda.alloc(0, 0, 100)
        assert _core.ledger_totals()["cuda:0"]["live_count"] == 1
        cuda.free(made, 0)
    _core.native_uninstall()
assert [(tool.tool_read(s), page_permissions(s)) for s in slots] == before
made = cuda.alloc(0, 0, 100)
assert _core.ledger_totals()["cuda:0"]["live_count"] == 0
""",
        standins,
    )


def test_out_of_memory_is_noted_and_forgotten_at_the_next_start(standins):
    run(
        """
_core.native_install(["cuda"])
assert _core.cuda_memory()["oom"] is None
cuda.runtime.standin_set_capacity(2, 10 << 20)
kept = [cuda.alloc(2, 0, 4 << 20), cuda.alloc(2, 0, 4 << 20)]
assert cuda.alloc(2, 0, 4 << 20) is None
oom = _core.cuda_memory()["oom"]
assert oom == {"count": 1, "wanted_bytes": 4 << 20, "allocated_bytes": 8 << 20, "reserved_bytes": 8 << 20, "device": 2}
_core.native_uninstall()
_core.native_install(["cuda"])
assert _core.cuda_memory()["oom"] is None
""",
        standins,
    )


def test_a_child_of_a_fork_records_on_its_own(standins):
    run(
        """
import os
_core.native_install(["cuda", "pinned"])
kept = cuda.alloc(0, 0, 100), cuda.pinned_alloc(100)
stop = threading.Event()
def churn():
    while not stop.is_set():
        cuda.free(cuda.alloc(3, 0, 900), 0)
thread = threading.Thread(target=churn); thread.start()
for i in range(10):
    pid = os.fork()
    if pid == 0:
        fine = False
        try:
            before = _core.ledger_totals()["cuda:0"]["live_count"]
            mine = cuda.pinned_alloc(5000)
            fine = before == 1 and _core.ledger_totals()["pinned"]["live_count"] == 2
        finally:
            os._exit(0 if fine else 1)
    assert os.waitpid(pid, 0)[1] == 0, i
stop.set(); thread.join()
assert _core.ledger_totals()["pinned"]["live_count"] == 1
""",
        standins,
    )


def test_what_torch_says_decides_when_the_canary_runs(standins):
    """CUDA is never started for it; in a child of a fork, and while a graph is captured, it waits on."""
    run(
        """
state = {"initialized": False, "bad_fork": False, "contexts": set(), "asked": []}
torch.cuda.is_initialized = lambda: state["initialized"] and not state["bad_fork"]
torch.cuda._is_in_bad_fork = lambda: state["bad_fork"]
class Runtime:
    cudaHostRegister = staticmethod(lambda address, size, flags: cuda.user.pinned_register(ctypes.c_void_p(address), ctypes.c_size_t(size)))
    cudaHostUnregister = staticmethod(lambda address: cuda.user.pinned_unregister(ctypes.c_void_p(address)))
torch.cuda.cudart = Runtime
class Storage:
    def __init__(self, size, device):
        state["asked"].append(device)
        self.made = cuda.alloc(int(device[-1]), 0, size)
    def __del__(self):
        cuda.free(self.made, 0)
original, torch.UntypedStorage = torch.UntypedStorage, Storage
torch._C._cuda_getDevice = lambda: 0
torch._C._cuda_getDeviceCount = lambda: 3
torch._C._cuda_hasPrimaryContext = lambda device: device in state["contexts"]
cuda.runtime.standin_refuse_registers(1)
_core.native_install(["cuda", "pinned"])
calls = cuda.runtime.standin_calls()
assert _core.native_rescan() is False and cuda.runtime.standin_calls() == calls
state.update(initialized=True, bad_fork=True)
assert _core.native_rescan() is False and "forked" in status(_core, "cuda")["why_not"]
state["bad_fork"] = False
torch._C._cuda_isCurrentStreamCapturing = lambda: True
assert _core.native_rescan() is False and "captured" in status(_core, "cuda")["why_not"]
torch._C._cuda_isCurrentStreamCapturing = lambda: False
assert _core.native_rescan() is True and not state["asked"]
assert not status(_core, "cuda")["active"] and "no device is in use" in status(_core, "cuda")["why_not"]
state["contexts"].add(2)
assert _core.native_rescan() is True and _core.native_rescan() is False
assert state["asked"] == ["cuda:2"]
for medium in ("cuda", "pinned"):
    row = status(_core, medium)
    assert row["active"] and row["why_not"] is None, row
assert cuda.runtime.cudaGetLastError() == 0, "the canary of pinned memory does not reach CUDA"
assert _core.ledger_totals().get("cuda:0", {"live_count": 0})["live_count"] == 0
assert _core.cuda_memory()["registered"]["live_bytes"] == 0
""",
        standins,
    )


def test_a_torch_that_can_t_tell_contexts_is_asked_for_its_memory(standins):
    run(
        """
asked = []
class Storage:
    def __init__(self, size, device):
        asked.append(device)
        self.made = cuda.alloc(int(device[-1]), 0, size)
    def __del__(self):
        cuda.free(self.made, 0)
torch.cuda.is_initialized = lambda: True
torch.UntypedStorage = Storage
torch._C._cuda_getDevice = lambda: 0
torch._C._cuda_getDeviceCount = lambda: 3
reserved = [0, 0, 0]
torch.cuda.memory_reserved = reserved.__getitem__
_core.native_install(["cuda"])
assert not status(_core, "cuda")["active"] and not asked
reserved[1] = 2 << 20
assert _core.native_rescan() is True and asked == ["cuda:1"]
""",
        standins,
    )


def test_a_view_of_a_pinned_block_tells_what_it_views_and_what_it_keeps(standins):
    run(
        """
import leakprobe, numpy
def batch(size):
    made = cuda.pinned_alloc(size)
    memory = (ctypes.c_char * size).from_address(cuda.host.pinned_address(made))
    return torch.from_numpy(numpy.frombuffer(memory, dtype="f4"))
arrays, tensors = [], []
with leakprobe.watch(warmup=2) as probe:
    for i in range(12):
        arrays.append(batch(3000).numpy()[:10])
        tensors.append(batch(70_000)[5:105])
        probe.step()
    report = probe.report()
found = {f.holder["text"].split(" ")[0]: f for f in report.findings if f.medium == "pinned"}
assert found["arrays"].evidence.endswith("; the numpy.ndarray shown views 40 B of a storage of 2.9 KiB in a pinned block of 4.0 KiB"), found
assert found["tensors"].evidence.endswith("; the torch.Tensor shown views 400 B of a storage of 68.4 KiB in a pinned block of 128 KiB"), found
assert found["tensors"].path[-1]["text"] == "buffer (pinned, 131072 bytes), 400 of them viewed", found["tensors"].path
assert {f.cause for f in found.values()} == {"batch_memory_kept"}
assert not any("pinned block" in f.evidence for f in report.findings if f.medium not in ("pinned", "python"))
""",
        standins,
    )


def test_devices_without_a_medium_are_told(standins):
    run(
        """
import leakprobe
with leakprobe.watch(warmup=0) as probe:
    cuda.allocator.standin_report(ctypes.c_void_p(0x1000), ctypes.c_int64(512), 1, 16)
    probe.step()
(text,) = [n.text for n in probe.report().notes if n.kind == "gap" and n.medium == "cuda"]
assert text.startswith("CUDA devices from cuda:16 on are not followed") and text.endswith("left out: 1"), text
with leakprobe.watch(warmup=0) as probe:
    probe.step()
assert not any(n.medium == "cuda" for n in probe.report().notes)
""",
        standins,
    )
