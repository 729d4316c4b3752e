"""What loggers get: memory by medium as of the last mark, under names that all of them take."""

from leakprobe.probe import Probe

PREFIX = "memory/"


def scalars(probe: Probe) -> dict[str, float]:
    """memory/<medium>, memory/rss and memory/suspects_per_step, in bytes; empty before the first mark.

    The colon of "cuda:0" is an underscore here: not every logger takes one in a name.
    """
    now = probe.progress()
    if now is None:
        return {}
    found = {PREFIX + medium.replace(":", "_"): size for medium, size in now["media"].items()}
    if now["rss"] is not None:
        found[PREFIX + "rss"] = now["rss"]
    return {name: float(size) for name, size in found.items()} | {
        PREFIX + "suspects_per_step": float(now["bytes_per_step"])
    }


def step_of(probe: Probe) -> int | None:
    """The step that scalars() speaks of, or None before the first mark."""
    now = probe.progress()
    return None if now is None else int(now["step"])
