"""What the tests of the native hooks share: totals as differences, test libraries, fresh processes."""

import ctypes
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys

import forked
import pytest

EXT = pathlib.Path(__file__).parent.parent / "ext"
NEW = b"_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm"
CPU_MECHANISMS = [
    "ProfiledCPUMemoryReporter slots",
    "alloc_cpu and free_cpu slots",
    "posix_memalign and free slots of libc10",
]

HAS_TORCH = importlib.util.find_spec("torch") is not None
needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="needs torch")
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="native hooks are for Linux")


def has_libuv() -> bool:
    """False for Debian's torch: torchrun asks for it all the same, but for a rendezvous in a file."""
    import torch.distributed as dist

    try:
        dist.TCPStore("127.0.0.1", 0, 1, True, wait_for_workers=False)
    except dist.DistStoreError:
        return False
    return True


def skip_without_torch(*texts):
    """Skips where the code of a script is torch's and torch is absent."""
    if not HAS_TORCH and any("torch" in text or "nn." in text for text in texts):
        pytest.skip("needs torch")


def skip_on_cuda_build():
    """Skips where torch brings the libraries that others stand for: both would be hooked, and mixed up."""
    import torch

    if torch.version.cuda is not None:
        pytest.skip("this torch has CUDA's own libraries, which others stand for here")


class Totals:
    """The ledger's totals of one medium, from now on."""

    def __init__(self, core, medium):
        self._core, self._medium = core, medium
        self._first = self._now()

    def _now(self):
        totals = dict.fromkeys(("live_bytes", "live_count", "unmatched", "overwritten", "dropped"), 0)
        totals.update(self._core.ledger_totals().get(self._medium, {}))
        return totals

    def __getattr__(self, name):
        return self._now()[name] - self._first[name]

    def live(self):
        return self.live_count, self.live_bytes

    def is_clean(self):
        return (self.unmatched, self.overwritten, self.dropped) == (0, 0, 0)


def status(core, medium):
    return next(row for row in core.native_status() if row["medium"] == medium)


def compiler():
    found = shutil.which("cc") or shutil.which("gcc")
    if found is None:
        pytest.skip("no C compiler")
    return found


def build(source, target, *options):
    subprocess.run(
        [compiler(), "-shared", "-fPIC", "-O1", "-o", str(target), str(EXT / source), *options], check=True
    )
    return target


def slot_tool(path):
    """tests/ext/slot_tool.c, loaded."""
    tool = ctypes.CDLL(str(path))
    tool.tool_find_slot.restype = tool.tool_read.restype = ctypes.c_void_p
    tool.tool_find_slot.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
    tool.tool_read.argtypes = tool.tool_push_layer.argtypes = tool.tool_pop_layer.argtypes = [ctypes.c_void_p]
    tool.tool_write.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    tool.tool_open_lazily.restype = ctypes.c_void_p
    return tool


def build_late(folder, *options):
    """tests/ext/late_importer.c, linked with the libc10 of the torch that is imported."""
    lib = pathlib.Path(sys.modules["torch"].__file__).parent / "lib"
    return build(
        "late_importer.c", folder / "libtorch_cpu_late.so", f"-L{lib}", "-lc10", f"-Wl,-rpath,{lib}", *options
    )


def page_permissions(address):
    for line in open("/proc/self/maps"):
        first, last = (int(x, 16) for x in line.split()[0].split("-"))
        if first <= address < last:
            return line.split()[1]
    raise LookupError(hex(address))


def run_fresh(code, *arguments, trains=False, alone=False, env=()):
    """Run code in a process of its own, which must end well; returns what it printed.

    It has torch imported if the code names it, unless ``alone``, with which it may have variables ``env``;
    ``trains``: see forked.py.
    """
    path = [str(pathlib.Path(__file__).parent), *filter(None, sys.path)]
    command = ["-c", code, *map(str, arguments)]
    if alone or not HAS_TORCH or "torch" not in code:
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(path), **dict(env)}
        done = subprocess.run(
            [sys.executable, *command], capture_output=True, text=True, timeout=900, env=env
        )
    else:
        done = forked.run(command, path=path, trains=trains)
    assert done.returncode == 0, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout
