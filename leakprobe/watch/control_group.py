"""What the kernel counts of the control group that the process is in, and how far its limit is.

Names of files: Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst of the kernel; waiting for
memory: Documentation/accounting/psi.rst.
"""

import dataclasses
import os
import pathlib

from leakprobe.model.units import UNITS

#: File systems of control groups.
VERSION_1, VERSION_2 = "cgroup", "cgroup2"
SELF, MOUNTS = pathlib.Path("/proc/self/cgroup"), pathlib.Path("/proc/self/mountinfo")

#: What the whole machine waits for memory.
MACHINE_PRESSURE = pathlib.Path("/proc/pressure/memory")


@dataclasses.dataclass(frozen=True, slots=True)
class Account:
    """Bytes of one control group with all below it; ``limit`` is None where it has none.

    ``current`` is anonymous memory, page cache, shared memory and the kernel's own; ``reclaimable``: page
    cache that is given up before the limit kills.  ``killed``: processes that the kernel ended for want of
    memory.  ``waiting``: percent of the last minute in which some task of the group waited for memory; None
    where the kernel does not tell it of groups.
    """

    path: str
    current: int
    limit: int | None
    anonymous: int
    page_cache: int
    shared: int
    kernel: int
    reclaimable: int
    killed: int
    waiting: float | None = None

    @property
    def needed(self) -> int:
        return self.current - self.reclaimable

    @property
    def room(self) -> float:
        """Bytes until the limit; infinite without one."""
        return self.limit - self.needed if self.limit is not None else float("inf")


@dataclasses.dataclass(frozen=True, slots=True)
class Own:
    """The group of this process: the file system that shows it, and its path there."""

    kind: str
    path: str


def read() -> Account | None:
    """The account of the group of this process, or of one above it whose limit is nearer; None where none is
    counted.
    """
    accounts = [account for folder in folders() if (account := read_folder(folder)) is not None]
    limited = [account for account in accounts if account.limit is not None]
    return min(limited, key=lambda account: account.room) if limited else next(iter(accounts), None)


def folders() -> list[pathlib.Path]:
    """The folder of the group whose memory is counted, and those above it up to where it is mounted."""
    try:
        groups = [line.split(":") for line in SELF.read_text().splitlines() if line.count(":") > 1]
        mounts = [line.split() for line in MOUNTS.read_text().splitlines()]
    except OSError:
        return []
    own = own_path(groups)
    for _, _, _, root, mount, *rest in mounts:
        kind, options = rest[rest.index("-") + 1], rest[-1].split(",")
        if own is not None and kind == own.kind and (kind == VERSION_2 or "memory" in options):
            return between(pathlib.Path(mount), root, own.path)
    return []


def own_path(groups: list[list[str]]) -> Own | None:
    """Of the rows of /proc/self/cgroup, which are [number, controllers, path]: of version 1 if that counts
    memory.
    """
    for _, names, *path in groups:
        if "memory" in names.split(","):
            return Own(VERSION_1, ":".join(path))
    for number, names, *path in groups:
        if number == "0" and not names:
            return Own(VERSION_2, ":".join(path))
    return None


def between(mount: pathlib.Path, root: str, path: str) -> list[pathlib.Path]:
    """From the group ``path`` up to the mount point, which shows the group ``root``."""
    inside = os.path.relpath(path, root)
    if inside.startswith(".."):  # of another name space: what is mounted is all that can be seen
        return [mount]
    own = mount / inside
    return [own, *(folder for folder in own.parents if folder == mount or mount in folder.parents)]


def read_folder(folder: pathlib.Path) -> Account | None:
    """The account of one group, whichever version of control groups it is of."""
    try:
        stat = numbers(folder / "memory.stat")
        if (folder / "memory.current").exists():
            return of_version_2(folder, stat)
        return of_version_1(folder, stat)
    except (OSError, ValueError, KeyError):  # the root has no account; some kernels leave files out
        return None


def of_version_2(folder: pathlib.Path, stat: dict[str, int]) -> Account:
    kernel = stat.get(
        "kernel", sum(stat.get(name, 0) for name in ("kernel_stack", "slab", "pagetables", "percpu"))
    )
    limit = (folder / "memory.max").read_text().strip()
    return Account(
        path=str(folder),
        current=int((folder / "memory.current").read_text()),
        limit=below_machine(int(limit)) if limit.isdigit() else None,
        anonymous=stat["anon"],
        page_cache=stat["file"] - stat["shmem"],
        shared=stat["shmem"],
        kernel=kernel + stat.get("sock", 0),
        reclaimable=stat["inactive_file"],
        killed=numbers(folder / "memory.events").get("oom_kill", 0),
        waiting=waiting(folder / "memory.pressure"),
    )


def of_version_1(folder: pathlib.Path, stat: dict[str, int]) -> Account:
    kernel = folder / "memory.kmem.usage_in_bytes"
    shared = stat.get("total_shmem", 0)
    return Account(
        path=str(folder),
        current=int((folder / "memory.usage_in_bytes").read_text()),
        limit=below_machine(int((folder / "memory.limit_in_bytes").read_text())),
        anonymous=stat["total_rss"],
        page_cache=stat["total_cache"] - shared,
        shared=shared,
        kernel=int(kernel.read_text()) if kernel.exists() else 0,
        reclaimable=stat["total_inactive_file"],
        killed=numbers(folder / "memory.oom_control").get("oom_kill", 0),
    )


def waiting(path: pathlib.Path) -> float | None:
    """Percent of the last minute in which some task waited for memory; None where that is not told."""
    try:
        some = path.read_text().splitlines()[0].split()
        return float(dict(part.split("=") for part in some[1:])["avg60"])
    except (OSError, ValueError, KeyError, IndexError):  # switched off by psi=0 the file can't be read
        return None


def below_machine(limit: int) -> int | None:
    """A limit that the machine has the memory for; version 1 writes a huge one for none."""
    return limit if limit < machine_bytes() else None


def machine_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def available_bytes() -> int:
    """What the machine can still give out without swapping; all free pages where /proc does not say."""
    try:
        lines = pathlib.Path("/proc/meminfo").read_text().splitlines()
        rows = dict(line.split(":", 1) for line in lines)
        return int(rows["MemAvailable"].split()[0]) * UNITS["KiB"]
    except (OSError, ValueError, KeyError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")


def numbers(path: pathlib.Path) -> dict[str, int]:
    """A file of names and numbers, one of each a line."""
    pairs = (line.split() for line in path.read_text().splitlines())
    return {name: int(number) for name, number in pairs}
