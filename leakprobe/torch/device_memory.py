"""What torch and the driver say of each CUDA device: only where the program has started CUDA, which is never
done here.
"""

import contextlib
import os
from collections.abc import Callable, Collection, Iterable
from typing import Any

from leakprobe.model import inert

#: Key of a row => keys of torch.cuda.memory_stats_as_nested_dict(), a tenth as dear as memory_stats().
STATS = {
    "allocated": ("allocated_bytes", "all", "current"),
    "reserved": ("reserved_bytes", "all", "current"),
    "split": ("inactive_split_bytes", "all", "current"),
    "peak": ("allocated_bytes", "all", "peak"),
}
#: Keys of torch.cuda.host_memory_stats(), which old torch has not got: what its allocator owns.  A torch that
#: has the first has what is in use under the second.
PINNED = ("reserved_bytes.current", "allocated_bytes.current")
#: Variables with the settings of torch's allocators, and the one that takes pinned memory in one piece.
SETTINGS = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
PINNED_RESERVE = "pinned_reserve_segment_size_mb"


def reserves_pinned() -> bool:
    """True where torch cuts pinned blocks from one segment that it takes at the first of them."""
    return any(PINNED_RESERVE in os.environ.get(name, "") for name in SETTINGS)


def started() -> Any:
    """torch.cuda, or None where the program has not started CUDA in this process."""
    torch = inert.imported("torch")
    cuda = getattr(torch, "cuda", None)
    if (
        cuda is None
        or getattr(getattr(torch, "version", None), "cuda", None) is None
        or not getattr(cuda, "is_initialized", bool)()
    ):
        return None
    return cuda


def totals(wanted: Collection[str]) -> dict[str, tuple[int, str]]:
    """{medium: (bytes, mechanism)} of "pinned" and "cuda" as torch itself counts them, for media that no hook
    serves.

    The bytes of "cuda:N" are those in use, of "pinned" those that torch owns.  Empty where CUDA is not
    started.
    """
    cuda = started()
    found: dict[str, tuple[int, str]] = {}
    if cuda is None:
        return found
    if "pinned" in wanted:
        size = first_of(getattr(cuda, "host_memory_stats", dict), PINNED)
        if size is not None:
            found["pinned"] = size, "totals by torch.cuda.host_memory_stats(); no lines"
    for number in with_memory() if "cuda" in wanted else ():
        size = stat_of(cuda, number, "allocated")
        if size is not None:
            found[f"cuda:{number}"] = size, "totals by torch.cuda.memory_stats(); no lines"
    return found


def first_of(read_stats: Callable[[], Any], keys: Iterable[str]) -> int | None:
    """The first of some numbers that statistics of torch have; None where they have none."""
    try:
        stats = read_stats()
        return next((int(stats[key]) for key in keys if key in stats), None)
    except Exception:  # another backend, or a device in trouble: not for us to raise
        return None


def stat_of(cuda: Any, number: int, key: str) -> int | None:
    """A number of a device, by its key of STATS; None where torch has no such number."""
    try:
        return find_in(cuda.memory_stats_as_nested_dict(number), STATS[key])
    except Exception:  # as above
        return None


def find_in(stats: Any, keys: Iterable[str]) -> int | None:
    for key in keys:
        stats = stats.get(key)
        if stats is None:
            return None
    return int(stats)


def with_memory() -> list[int]:
    """Devices of which torch has memory; asking makes no context on the others."""
    cuda = started()
    if cuda is None:
        return []
    return [n for n in range(cuda.device_count()) if stat_of(cuda, n, "reserved")]


def usage(devices: Iterable[int]) -> dict[str, tuple[int, int]]:
    """{"cuda:0": (bytes in use by all processes, bytes in all)} of devices by number; two calls of CUDA's."""
    cuda = started()
    found = {}
    for number in devices if cuda is not None else ():
        with contextlib.suppress(Exception):  # as above
            free, total = cuda.mem_get_info(number)
            found[f"cuda:{number}"] = total - free, total
    return found


def read(devices: Iterable[int]) -> dict[str, dict[str, int]]:
    """{"cuda:0": {allocated, reserved, split, peak, used, total, outside}} in bytes, of devices by number.

    allocated, reserved: of the caching allocator; peak: the most that was allocated, since the program last
    set that back; split: free, in segments that are in part in use; used: of the whole device, by all
    processes; outside: used, less what is reserved here.  Empty where CUDA is not started.
    """
    cuda = started()
    if cuda is None:
        return {}
    found = {}
    for number in devices:
        try:
            row = read_device(cuda, number)
        except Exception:  # another backend than the native one, or a device in trouble: not for us to raise
            continue
        found[f"cuda:{number}"] = row
    return found


def read_device(cuda: Any, number: int) -> dict[str, int]:
    free, total = cuda.mem_get_info(number)
    stats = cuda.memory_stats_as_nested_dict(number)
    row = {key: find_in(stats, keys) or 0 for key, keys in STATS.items()}
    row.update(used=total - free, total=total)
    row["outside"] = max(0, row["used"] - row["reserved"])
    return row
