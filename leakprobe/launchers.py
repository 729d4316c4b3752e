"""Which process of a job this is: what a launcher, a process group or Ray Train says of its rank.

Launchers tell it by variables of the environment, so that it is known before any library is imported and
after a crash.  Where none did (processes that a script spawned itself), torch.distributed knows once its
group is there, and Ray Train in each of its workers; neither is imported for it.
"""

import dataclasses
import os
import sys
from typing import Any


@dataclasses.dataclass(frozen=True)
class Variables:
    """The variables of a launcher; those of a process group count only where both rank and size are set."""

    rank: str
    world_size: str
    local_rank: str


#: The first launcher whose rank and size are set counts.
LAUNCHERS = (
    Variables("RANK", "WORLD_SIZE", "LOCAL_RANK"),  # torchrun, accelerate, DeepSpeed, Ray Train for torch
    Variables("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"),
    Variables("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
    Variables("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),  # MPICH and Intel MPI
    Variables("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK"),
)
#: How often torchrun has started the process again.
RESTART = "TORCHELASTIC_RESTART_COUNT"


@dataclasses.dataclass(frozen=True)
class Place:
    """The place of this process in its job."""

    rank: int
    world_size: int
    local_rank: int | None = None


def place() -> Place | None:
    """Where this process stands in a job, which may be its only one; None where nothing says so."""
    return from_variables() or from_process_group() or from_ray()


def number(name: str) -> int | None:
    """The whole number that a variable holds."""
    text = os.environ.get(name, "")
    return int(text) if text.isdecimal() else None


def from_variables() -> Place | None:
    for names in LAUNCHERS:
        rank, size = number(names.rank), number(names.world_size)
        if rank is not None and size is not None:
            return Place(rank, size, number(names.local_rank))
    return None


def from_process_group() -> Place | None:
    distributed: Any = sys.modules.get("torch.distributed")
    try:
        if distributed is None or not distributed.is_available() or not distributed.is_initialized():
            return None
        return Place(distributed.get_rank(), distributed.get_world_size(), number("LOCAL_RANK"))
    except (AttributeError, RuntimeError, ValueError):  # half imported, or taken down meanwhile
        return None


def from_ray() -> Place | None:
    train: Any = sys.modules.get("ray.train")
    try:
        if train is None:
            return None
        here = train.get_context()
        rank, size = here.get_world_rank(), here.get_world_size()
        return None if rank is None or size is None else Place(rank, size, here.get_local_rank())
    except Exception:  # no worker of Ray Train: what is raised then is its own affair
        return None


def restarts() -> int:
    """How often the launcher has started this process again."""
    return number(RESTART) or 0
