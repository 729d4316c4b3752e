"""What was alive when a medium held most: the last births and deaths played backwards from now."""

import collections

from leakprobe import _core
from leakprobe.analysis.frames import FIRST_SITE, innermost_user_frame

#: Functions of torch under which a backward pass allocates; its device threads run no Python and have no site.
BACKWARD_CODE = ("torch/autograd/graph.py", "torch/autograd/__init__.py")


def at_peak(memory_map, medium: str):
    """(bytes, [(role, line, count, bytes)]) as of the highest point, see MemoryMap.peak()."""
    events = [e for e in memory_map.events if e.medium == medium]
    live = {row.address: row for row in memory_map.rows if row.medium == medium}
    most, index = highest(events, sum(row.size for row in live.values()))
    alive = alive_at(events, index, live)
    groups: dict = collections.defaultdict(lambda: [0, 0])
    backward = backward_steps(events)
    for size, row, birth, death in alive:
        role = row.role if row is not None else role_of_the_dead(birth, death, backward)
        where = row.where() if row is not None else line_of(events[death].site)
        entry = groups[role, where]
        entry[0] += 1
        entry[1] += size
    rows = [(*key, count, size) for key, (count, size) in groups.items()]
    return most, sorted(rows, key=lambda r: -r[3])


def highest(events, now: int) -> tuple[int, int]:
    """(bytes, index): the most that was alive, and how many events came before; at the end where nothing was higher."""
    most, index, total = now, len(events), now
    for i in range(len(events) - 1, -1, -1):
        total -= events[i].size
        if total > most:
            most, index = total, i
    return most, index


def alive_at(events, index: int, live):
    """(size, row or None, index of its birth or None, index of its death or None) of each block alive before event ``index``."""
    births = {}
    for i, event in enumerate(events[:index]):
        if event.size > 0:
            births[event.address] = i
        else:
            births.pop(event.address, None)
    found, reborn = [], set()
    for i in range(index, len(events)):
        event = events[i]
        if event.address in reborn:
            continue
        reborn.add(event.address)
        if event.size < 0:  # its first event since is its death: it was alive
            found.append((-event.size, None, births.get(event.address), i))
    found += [(row.size, row, None, None) for address, row in live.items() if address not in reborn]
    return found


def backward_steps(events) -> dict[int, int]:
    """{step: index of the first birth of its backward pass}."""
    known: dict[int, bool] = {}
    first: dict[int, int] = {}
    for i, event in enumerate(events):
        if event.size > 0 and event.step not in first and is_backward(event.site, known):
            first[event.step] = i
    return first


def is_backward(site: int, known: dict) -> bool:
    if site not in known:
        frames = _core.site_frames(site) if site >= FIRST_SITE else ()
        known[site] = any(f[0].replace("\\", "/").endswith(BACKWARD_CODE) for f in frames)
    return known[site]


def role_of_the_dead(birth, death, backward) -> str:
    """The role of a block that has died: what was there before the backward pass and went in it is an activation."""
    starts = [start for start in backward.values() if start <= death]
    if starts and (birth is None or birth < max(starts)):
        return "activation"
    return "temporary"


def line_of(site: int) -> str:
    import os

    frames = _core.site_frames(site) if site >= FIRST_SITE else ()
    frame = innermost_user_frame(frames) or (frames[0] if frames else None)
    return f"{os.path.basename(frame[0])}:{frame[1]}" if frame else "unknown"
