"""Slots are put back as they were; beside another tool's patches; libraries imported late."""

import pytest

pytest.importorskip("torch")

from native_support import CPU_MECHANISMS, build, linux_only, run_fresh

pytestmark = linux_only

PRELUDE = """
import sys
import torch
from leakprobe import _core
from native_support import *
tool = slot_tool(sys.argv[1])
slot = tool.tool_find_slot(b"libc10.so", NEW)
assert slot
first = tool.tool_read(slot)
"""


@pytest.fixture(scope="module")
def tool_path(tmp_path_factory):
    return build("slot_tool.c", tmp_path_factory.mktemp("ext") / "slot_tool.so")


def run(code, tool_path):
    return run_fresh(PRELUDE + code, tool_path)


def test_a_thousand_times_leave_slots_and_pages_as_they_were(tool_path):
    run(
        """
import numpy
umath = tool.tool_find_slot(b"_multiarray_umath", b"PyTraceMalloc_Track")
shared = tool.tool_find_slot(b"libtorch_cpu", b"_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE")
slots = [slot, umath, shared]
torch.empty(1); numpy.empty(1); torch.empty(1).share_memory_()
before = [(tool.tool_read(s), page_permissions(s)) for s in slots]
for i in range(1000):
    _core.native_install(["cpu", "shared", "numpy"])
    assert all(status(_core, m)["active"] for m in ("cpu", "shared", "numpy")), i
    if i % 100 == 0:
        assert all(tool.tool_read(s) != b[0] for s, b in zip(slots, before))
        assert [page_permissions(s) for s in slots] == [b[1] for b in before]
    _core.native_uninstall()
assert [(tool.tool_read(s), page_permissions(s)) for s in slots] == before
""",
        tool_path,
    )


def test_a_layer_over_us_is_left_alone_and_we_pass_through(tool_path):
    run(
        """
_core.native_install(["cpu"])
ours = tool.tool_read(slot)
tool.tool_push_layer(slot)
layer = tool.tool_read(slot)
_core.native_uninstall()
assert tool.tool_read(slot) == layer, "we took a slot that is not ours"
cpu = Totals(_core, "cpu")
calls = tool.tool_layer_calls()
x = torch.empty(100)
assert tool.tool_layer_calls() == calls + 1 and cpu.live() == (0, 0)
del x
# again: no ring, each block once
_core.native_install(["cpu"])
assert status(_core, "cpu")["active"] and tool.tool_read(slot) == layer
cpu = Totals(_core, "cpu")
x = torch.empty(100)
assert cpu.live() == (1, 400)
del x
assert cpu.live() == (0, 0)
_core.native_uninstall()
# the layer goes, and restores what it found: us
tool.tool_pop_layer(slot)
assert tool.tool_read(slot) == ours
x = torch.empty(100); del x
_core.native_install(["cpu"])
_core.native_uninstall()
assert tool.tool_read(slot) == first
""",
        tool_path,
    )


def test_a_layer_below_us_is_put_back(tool_path):
    run(
        """
tool.tool_push_layer(slot)
layer = tool.tool_read(slot)
_core.native_install(["cpu"])
cpu = Totals(_core, "cpu")
calls = tool.tool_layer_calls()
x = torch.empty(100)
assert cpu.live() == (1, 400) and tool.tool_layer_calls() == calls + 1
_core.native_uninstall()
assert tool.tool_read(slot) == layer
tool.tool_pop_layer(slot)
_core.native_install(["cpu"])
cpu = Totals(_core, "cpu")
calls = tool.tool_layer_calls()
y = torch.empty(100)
assert cpu.live() == (1, 400) and tool.tool_layer_calls() == calls
_core.native_uninstall()
assert tool.tool_read(slot) == first
""",
        tool_path,
    )


def test_a_tool_that_restores_over_us_loses_to_the_next_mark(tool_path):
    run(
        """
_core.native_install(["cpu"])
tool.tool_write(slot, first)
cpu = Totals(_core, "cpu")
x = torch.empty(100)
assert cpu.live() == (0, 0)
_core.native_rescan()
y = torch.empty(100)
assert cpu.live() == (1, 400)
_core.native_uninstall()
assert tool.tool_read(slot) == first
""",
        tool_path,
    )


@pytest.mark.parametrize("binding", ["lazy", "now"])
def test_a_slot_that_is_not_bound_yet_stays_ours_after_the_first_call(tool_path, tmp_path, binding):
    """To call the lazy resolver as the original would bind the slot and lose the hook."""
    run_fresh(
        PRELUDE
        + """
import ctypes, pathlib
path = build_late(pathlib.Path(sys.argv[2]), "-Wl,-z," + sys.argv[3], "-Wl,-z,relro")
_core.native_install(["shared"])
assert tool.tool_open_lazily(str(path).encode())
late_slot = tool.tool_find_slot(b"libtorch_cpu_late", b"_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE")
unbound, permissions = tool.tool_read(late_slot), page_permissions(late_slot)
assert permissions[1] == ("w" if sys.argv[3] == "lazy" else "-")
_core.native_rescan()
ours = tool.tool_read(late_slot)
assert ours != unbound and page_permissions(late_slot) == permissions
report = ctypes.CDLL(None, handle=tool.tool_open_lazily(str(path).encode())).late_report
report.argtypes = [ctypes.c_size_t, ctypes.c_int64, ctypes.c_int, ctypes.c_int]
shared = Totals(_core, "shared")
for i in range(1, 4):
    report(i << 16, 64, 0, -1)
    assert shared.live() == (i, 64 * i) and tool.tool_read(late_slot) == ours
_core.native_uninstall()
assert tool.tool_read(late_slot) == unbound
report(5 << 16, 64, 0, -1)
assert shared.live_count == 3
""",
        tool_path,
        tmp_path,
        binding,
    )


def test_torch_and_numpy_imported_after_the_start():
    run_fresh(
        """
import sys
from leakprobe import _core
from native_support import status
_core.native_install(["cpu", "shared", "numpy", "cuda", "pinned"])
assert "torch" not in sys.modules and "numpy" not in sys.modules
assert [row["why_not"] for row in _core.native_status()] == ["numpy is not imported"] + ["torch is not imported"] * 4
assert _core.native_rescan() is False
import numpy
assert status(_core, "numpy")["why_not"] == "numpy was imported, and no mark has come since"
assert _core.native_rescan() is True
assert status(_core, "numpy")["active"] and not status(_core, "cpu")["active"]
import torch
assert _core.native_rescan() is True and _core.native_rescan() is False
for medium in ("cpu", "shared"):
    assert status(_core, medium)["active"]
assert status(_core, "cuda")["why_not"] in ("no CUDA build of torch", None) or not torch.cuda.is_initialized()
_core.native_uninstall()
assert {row["why_not"] for row in _core.native_status()} == {"not asked for"}
assert _core.native_rescan() is False
""",
        alone=True,
    )


def test_tensors_die_after_the_hooks_at_exit():
    run_fresh(
        """
import torch, atexit
from leakprobe import _core
_core.native_install(["cpu", "shared"])
kept = torch.empty(1000), torch.empty(1000).share_memory_()
builtin = kept
import builtins
builtins.kept_for_ever = kept
"""
    )


def test_a_forked_child_can_allocate():
    run_fresh(
        """
import os, torch, threading
from leakprobe import _core
_core.native_install(["cpu", "shared"])
pid = os.fork()
if pid == 0:
    x = torch.empty(1000); y = torch.empty(10).share_memory_(); del x, y
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
"""
    )


@pytest.mark.parametrize("mechanism", [CPU_MECHANISMS[0], CPU_MECHANISMS[2]])
def test_forks_while_threads_allocate(mechanism):
    """The tables are held over the fork: a child finds them whole, and no lock taken."""
    run_fresh(
        """
import os, sys, threading, torch
from leakprobe import _core
from native_support import Totals, status
torch.set_num_threads(1)
kept = torch.empty(1000)
_core.native_install(["cpu"], sys.argv[1])
assert status(_core, "cpu")["mechanism"] == sys.argv[1]
done = threading.Event()
def work():
    while not done.is_set():
        made = [torch.empty(100 + i) for i in range(50)]
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads: thread.start()
for i in range(5):
    pid = os.fork()
    if pid == 0:
        ok = False
        try:
            cpu = Totals(_core, "cpu")
            made = [torch.empty(100 + i) for i in range(200)]
            ok = cpu.live_count == 200 and cpu.is_clean()
            made.clear()
            ok = ok and cpu.live() == (0, 0) and cpu.is_clean()
        finally:
            os._exit(0 if ok else 1)
    assert os.waitpid(pid, 0)[1] == 0, i
done.set()
for thread in threads: thread.join()
""",
        mechanism,
    )
