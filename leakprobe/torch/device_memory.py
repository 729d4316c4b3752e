"""What torch and the driver say of each CUDA device: only where the program has started CUDA, which is never done here."""

import sys

#: Key of a row => key of torch.cuda.memory_stats().
STATS = {
    "allocated": "allocated_bytes.all.current",
    "reserved": "reserved_bytes.all.current",
    "split": "inactive_split_bytes.all.current",
}


def read(devices) -> dict[str, dict[str, int]]:
    """{"cuda:0": {allocated, reserved, split, used, total, outside}} in bytes, of devices by number.

    allocated, reserved: of the caching allocator; split: free, in segments that are in part in use; used: of the
    whole device, by all processes; outside: used, less what is reserved here.  Empty where CUDA is not started.
    """
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    if cuda is None or getattr(getattr(torch, "version", None), "cuda", None) is None or not cuda.is_initialized():
        return {}
    found = {}
    for number in devices:
        try:
            row = read_device(cuda, number)
        except Exception:  # another backend than the native one, or a device in trouble: not for us to raise
            continue
        found[f"cuda:{number}"] = row
    return found


def read_device(cuda, number: int) -> dict[str, int]:
    free, total = cuda.mem_get_info(number)
    stats = cuda.memory_stats(number)
    row = {key: int(stats.get(name, 0)) for key, name in STATS.items()}
    row.update(used=total - free, total=total)
    row["outside"] = max(0, row["used"] - row["reserved"])
    return row
