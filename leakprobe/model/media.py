"""Names of media, from the table of the core (src/ledger/medium.h).

Each CUDA device is a medium of its own, "cuda:1", of the family "cuda".
"""

from collections.abc import Iterable

from leakprobe import _core

#: Every family, as ``watch(media=...)`` knows it.
ALL = frozenset(row.name for row in _core.MEDIA)
#: Families whose blocks a hook sees, in the order of the table: buffers of arrays and tensors.
HOOKED = tuple(row.name for row in _core.MEDIA if row.module)
#: The same as a set.
BUFFERS = frozenset(HOOKED)
#: Those of them that are there in a worker process, where CUDA is not used.
HOOKED_IN_WORKERS = frozenset(row.name for row in _core.MEDIA if row.module and not row.on_cuda)

#: Those of them that a hook sees on the host, in the order of the table.
HOOKED_ON_HOST = tuple(row.name for row in _core.MEDIA if row.module and row.memory != "device")
#: Those of them that hold nothing but tensors.
TORCH = frozenset(row.name for row in _core.MEDIA if row.module == "torch")
#: Those of them of whose blocks no owner is seen.
UNOWNED = frozenset(row.name for row in _core.MEDIA if row.module and not row.has_owners)

#: Those of them whose freed blocks torch keeps for the next, and no hook hears of it.
CACHED = frozenset({"pinned"})
#: Families whose blocks CUDA's driver gives out.
ON_CUDA = frozenset(row.name for row in _core.MEDIA if row.on_cuda)
#: Media whose bytes count against the memory of the host.
HOST = frozenset(row.name for row in _core.MEDIA if row.memory not in ("", "device"))
#: Families whose blocks lie in private memory of the process.
PRIVATE = frozenset(row.name for row in _core.MEDIA if row.memory in ("private", "malloc"))
#: Those of them whose blocks malloc serves.
MALLOC = frozenset(row.name for row in _core.MEDIA if row.memory == "malloc")


def family(medium: str) -> str:
    """The name that ``watch(media=...)`` knows a medium by."""
    return medium.partition(":")[0]


def is_on_host(medium: str) -> bool:
    return family(medium) in HOST


def is_buffer(medium: str) -> bool:
    return family(medium) in BUFFERS


def of_family(name: str, media: Iterable[str]) -> list[str]:
    """Those of ``media`` that belong to a family, by device."""
    return sorted((m for m in media if family(m) == name), key=lambda m: (len(m), m))
