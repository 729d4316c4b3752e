"""Scalars of memory for TensorBoard, through any SummaryWriter.

writer = SummaryWriter(folder)
with leakprobe.watch() as probe:
    for batch in probe.steps(loader):
        train_step(batch)
        write_scalars(writer, probe)
"""

from typing import Protocol

from leakprobe.integrations.scalars import scalars, step_of
from leakprobe.probe import Probe


class Writer(Protocol):
    """A SummaryWriter of torch or tensorboardX."""

    def add_scalar(self, tag: str, scalar_value: float, global_step: int, /) -> object: ...


def write_scalars(writer: Writer, probe: Probe) -> None:
    """Write memory/<medium>, memory/rss and memory/suspects_per_step, in bytes, as of the probe's last mark.

    ``writer``: anything with add_scalar(tag, value, global_step).  Before the first mark nothing is written.
    """
    step = step_of(probe)
    if step is not None:
        for name, value in scalars(probe).items():
            writer.add_scalar(name, value, step)
