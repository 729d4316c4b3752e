"""The stand-ins for CUDA's libraries (tests/ext/standins.py), opened: functions under short names."""

import ctypes
import pathlib

POINTER = ctypes.c_void_p


def standins_of_torch(folder):
    """The folder of stand-ins beside this torch's libraries; skips without a torch for the CPU."""
    import pytest
    from native_support import skip_on_cuda_build
    from standins import build_standins

    torch = pytest.importorskip("torch")
    skip_on_cuda_build()
    return build_standins(folder, torch_lib=pathlib.Path(torch.__file__).parent / "lib")


class Standins:
    """alloc(device, pool, bytes) gives a handle or None; free(handle, delayed); calls let the GIL go."""

    def __init__(self, folder):
        self.runtime = self._open(folder, "libcudart_standin")
        self.allocator = self._open(folder, "libc10_cuda_standin")
        self.host = self._open(folder, "libtorch_cuda_standin")
        self.user = self._open(folder, "libtorch_python_standin")
        self.with_gil = ctypes.PyDLL(f"{folder}/libc10_cuda_standin.so")
        self.with_gil.standin_free_while_held.argtypes = [POINTER]
        for name, result, *arguments in (
            ("alloc", POINTER, ctypes.c_int, ctypes.c_int, ctypes.c_size_t),
            ("free", None, POINTER, ctypes.c_int),
            ("address", POINTER, POINTER),
            ("bytes", ctypes.c_size_t, POINTER),
            ("poll", None, ctypes.c_int),
            ("empty_cache", None, ctypes.c_int),
            ("alloc_while_waited_for", POINTER, ctypes.c_int, ctypes.c_size_t),
            ("wait_for_holder", None),
            ("uncached", POINTER, ctypes.c_int, ctypes.c_size_t, ctypes.c_int),
        ):
            function = getattr(self.allocator, f"standin_{name}")
            function.restype, function.argtypes = result, arguments
            if name != "alloc":
                setattr(self, name, function)
        self._alloc = self.allocator.standin_alloc
        self.runtime.standin_set_capacity.argtypes = [ctypes.c_int, ctypes.c_size_t]
        self.runtime.standin_calls.restype = ctypes.c_uint64
        self.host.pinned_alloc.restype, self.host.pinned_alloc.argtypes = (
            POINTER,
            [ctypes.c_size_t, ctypes.c_int],
        )
        self.host.pinned_address.restype, self.host.pinned_address.argtypes = POINTER, [POINTER]
        self.host.pinned_free.argtypes = [POINTER]

    @staticmethod
    def _open(folder, name):
        return ctypes.CDLL(f"{folder}/{name}.so")

    def alloc(self, device, pool, size):
        return self._alloc(device, pool, size)

    def pinned_alloc(self, size, old=0):
        return self.host.pinned_alloc(size, old)
