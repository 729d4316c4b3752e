"""What proving the hooks does to a program that uses CUDA: nothing.  On the fake runtime (fake_gpu.py)."""

import os

import pytest
from native_support import run_fresh

pytestmark = [
    pytest.mark.fake_gpu,
    pytest.mark.skipif(not os.environ.get("FAKE_CUDA"), reason="not run under tests/gpu/fake_gpu.py"),
]

PRELUDE = """
import ctypes
import torch, leakprobe
from leakprobe import _core
from native_support import status
fake = ctypes.CDLL(None)
def contexts():
    return [bool(torch._C._cuda_hasPrimaryContext(i)) for i in range(2)]
def steps(count, make):
    with leakprobe.watch(warmup=1) as probe:
        for i in range(count):
            made = make()
            probe.step()
        return {name: status(_core, name) for name in ("cuda", "pinned")}
"""


def test_a_device_that_the_program_does_not_use_gets_no_context():
    run_fresh(
        PRELUDE
        + """
kept = torch.empty(1 << 20, dtype=torch.uint8, device="cuda:1")
assert contexts() == [False, True]
rows = steps(12, lambda: torch.empty(1 << 20, dtype=torch.uint8, device="cuda:1"))
assert contexts() == [False, True] and torch.cuda.memory_reserved(0) == 0
assert rows["cuda"]["active"] and rows["pinned"]["active"], rows
"""
    )


def test_a_program_that_only_asks_for_the_name_of_its_device_gets_none():
    run_fresh(
        PRELUDE
        + """
torch.cuda.get_device_name(0)
assert torch.cuda.is_initialized()
rows = steps(5, lambda: torch.zeros(10))
assert contexts() == [False, False] and torch.cuda.memory_stats(0)["num_device_alloc"] == 0
assert not rows["cuda"]["active"] and "no device is in use" in rows["cuda"]["why_not"], rows
assert rows["pinned"]["active"], rows
"""
    )


def test_where_memory_can_t_be_registered_the_program_s_next_kernel_runs():
    run_fresh(
        PRELUDE
        + """
fake.standin_refuse_registers(1)
weights = torch.zeros(8, device="cuda")
rows = steps(3, lambda: weights.add_(1))  # each launch raises what an earlier call left behind
assert rows["pinned"]["active"], rows
assert torch.cuda.cudart().cudaHostRegister(weights.data_ptr(), 8, 0) != torch.cuda.cudart().cudaError.success
try:
    weights.add_(1)
except RuntimeError as error:
    assert "CUDA error" in str(error)
else:
    raise AssertionError("the fake runtime leaves no error")
"""
    )
