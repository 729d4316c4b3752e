"""Names of media: each CUDA device is a medium of its own, "cuda:1", of the family "cuda"."""

from collections.abc import Iterable

#: Families whose blocks are buffers of arrays and tensors.
BUFFERS = frozenset({"numpy", "cpu", "shared", "pinned", "cuda"})

#: Media whose bytes count against the memory of the host.
HOST = frozenset({"python", "numpy", "cpu", "shared", "pinned", "native", "worker"})
#: Families whose blocks lie in private memory of the process.
PRIVATE = frozenset({"python", "numpy", "cpu", "pinned", "native"})


def family(medium: str) -> str:
    """The name that ``watch(media=...)`` knows a medium by."""
    return medium.partition(":")[0]


def is_buffer(medium: str) -> bool:
    return family(medium) in BUFFERS


def of_family(name: str, media: Iterable[str]) -> list[str]:
    """Those of ``media`` that belong to a family, by device."""
    return sorted((m for m in media if family(m) == name), key=lambda m: (len(m), m))
