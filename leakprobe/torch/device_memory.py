"""What torch and the driver say of each CUDA device: only where the program has started CUDA, which is never
done here.
"""

import functools
from collections.abc import Callable, Collection, Iterable
from typing import Any

from leakprobe.model import inert

#: Key of a row => key of torch.cuda.memory_stats().
STATS = {
    "allocated": "allocated_bytes.all.current",
    "reserved": "reserved_bytes.all.current",
    "split": "inactive_split_bytes.all.current",
    "peak": "allocated_bytes.all.peak",
}
#: Key of torch.cuda.host_memory_stats(), which older torch has not got: what its allocator owns.
PINNED = "allocated_bytes.current"


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
        size = one_of(getattr(cuda, "host_memory_stats", dict), PINNED)
        if size is not None:
            found["pinned"] = size, "totals by torch.cuda.host_memory_stats(); no lines"
    for number in with_memory() if "cuda" in wanted else ():
        size = one_of(functools.partial(cuda.memory_stats, number), STATS["allocated"])
        if size is not None:
            found[f"cuda:{number}"] = size, "totals by torch.cuda.memory_stats(); no lines"
    return found


def one_of(read_stats: Callable[[], Any], key: str) -> int | None:
    """A number of some statistics of torch; None where it has no such number."""
    try:
        stats = read_stats()
        return int(stats[key]) if key in stats else None
    except Exception:  # another backend, or a device in trouble: not for us to raise
        return None


def with_memory() -> list[int]:
    """Devices of which torch has memory; asking makes no context on the others."""
    cuda = started()
    if cuda is None:
        return []
    return [
        n
        for n in range(cuda.device_count())
        if one_of(functools.partial(cuda.memory_stats, n), STATS["reserved"])
    ]


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
    stats = cuda.memory_stats(number)
    row = {key: int(stats.get(name, 0)) for key, name in STATS.items()}
    row.update(used=total - free, total=total)
    row["outside"] = max(0, row["used"] - row["reserved"])
    return row
