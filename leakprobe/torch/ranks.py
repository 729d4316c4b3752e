"""Processes of one distributed job: each records into one folder, and reports can be gathered live.

The rank comes from the launcher's environment, so that all of it works before ``init_process_group()`` and
after a crash.  Live reports go through torch.distributed's key-value store, never through a collective.
"""

import dataclasses
import itertools
import json
import os
import stat
import sys
import time
import zlib
from typing import Any

from leakprobe import launchers
from leakprobe.errors import LeakprobeError
from leakprobe.model import inert
from leakprobe.model.bounds import LEAST_WAIT_S, POLL_S, SENT_FINDINGS, SENT_ROWS
from leakprobe.model.parts import named_by_part
from leakprobe.model.report import Report

_calls = itertools.count()


def rank_and_size() -> tuple[int, int] | None:
    """(rank, number of ranks) of this process, or None where no launcher began several."""
    place = launchers.from_variables()
    return (place.rank, place.world_size) if place is not None and place.world_size > 1 else None


def path_of_rank(path: str) -> str:
    """Where this process records: ``path``, or in a job of several ranks a file in the folder ``path``.

    A rank that the launcher has started again gets a new file.  Errors: LeakprobeError "unwritable_file".
    """
    place = launchers.place()
    if place is None or place.world_size <= 1:
        return path
    try:
        os.makedirs(path, mode=stat.S_IRWXU, exist_ok=True)
    except OSError as error:
        raise LeakprobeError(
            f"the ranks of a job record into one folder, and {path} can't be one: {error.strerror}",
            "unwritable_file",
        ) from error
    restart = launchers.restarts()
    return os.path.join(path, f"rank-{place.rank:05}{f'.restart-{restart}' if restart else ''}.leak")


def named_by_rank(path: str) -> str:
    """ "out.json" as "out.rank-1.json" in a job of several ranks."""
    place = rank_and_size()
    if place is None or not path:
        return path
    return named_by_part(path, f"rank-{place[0]}")


# ---- live ----


@dataclasses.dataclass(frozen=True)
class Exchange:
    """The reports of a job's ranks, this one's included, and the ranks that did not answer in time."""

    reports: dict[int, Report]
    silent: list[int]


def exchange(report: Report, timeout: float) -> Exchange | str:
    """Give ``report`` to the other ranks and take theirs, of those that call this too within ``timeout``
    seconds.

    Where there is no job, or torch.distributed has no store yet: why not.
    """
    store, why_not = find_store()
    if why_not is not None:
        return why_not
    rank, size = rank_in_group()
    call = next(_calls)
    store.set(key_of(call, rank), pack(report))
    reports, silent, ends = {rank: report}, [], time.monotonic() + timeout
    for other in range(size):
        if other == rank:
            continue
        found = receive(store, key_of(call, other), max(LEAST_WAIT_S, ends - time.monotonic()))
        if found is None:
            silent.append(other)
        else:
            reports[other] = found
    return Exchange(dict(sorted(reports.items())), silent)


def find_store() -> tuple[Any, str | None]:
    """(store, None), or (None, why there is none)."""
    distributed = inert.imported("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return (
            None,
            "torch.distributed is not initialised; record=FOLDER and `leakprobe report FOLDER` need no process group",
        )
    try:
        from torch.distributed.distributed_c10d import _get_default_store

        return _get_default_store(), None
    except (ImportError, RuntimeError, ValueError) as error:
        return None, f"torch.distributed gives no store: {error}"


def rank_in_group() -> tuple[int, int]:
    distributed = sys.modules["torch.distributed"]
    return distributed.get_rank(), distributed.get_world_size()


def key_of(call: int, rank: int) -> str:
    return f"leakprobe/{call}/{rank}"


def pack(report: Report) -> bytes:
    """The report without what is long."""
    data = report.to_dict()
    for name in ("timeline", "memory"):
        rows = data[name]
        data[name] = rows[:: max(1, len(rows) // SENT_ROWS)] if rows else []
    data["findings"] = data["findings"][:SENT_FINDINGS]
    data["sites"] = []
    return zlib.compress(json.dumps(data).encode())


def receive(store: Any, key: str, seconds: float) -> Report | None:
    """The report that another rank has set, or None if it does not in time."""
    ends = time.monotonic() + seconds
    try:
        while not store.check([key]):  # wait() with a timeout may leave its connection out of step
            if time.monotonic() >= ends:
                return None
            time.sleep(POLL_S)
        return Report.from_dict(json.loads(zlib.decompress(store.get(key))))
    except (RuntimeError, OSError, ValueError, zlib.error, LeakprobeError):
        return None
