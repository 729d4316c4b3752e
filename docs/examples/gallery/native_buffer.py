"""Memory that only C knows of

A binding gets a buffer from the C library and never gives it back. No Python object stands for it.
"""

import ctypes

import leakprobe

libc = ctypes.CDLL(None)
libc.strdup.restype = ctypes.c_void_p
text = b"token " * 20_000


def encode(text):
    return libc.strdup(text)


with leakprobe.watch() as probe:
    for _ in probe.steps(range(80)):
        encode(text)
probe.report().print()
