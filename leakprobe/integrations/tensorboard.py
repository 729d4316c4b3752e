"""Scalars of memory for TensorBoard, through any SummaryWriter.

writer = SummaryWriter(folder)
with leakprobe.watch() as probe:
    for batch in probe.steps(loader):
        train_step(batch)
        write_scalars(writer, probe)
"""


def write_scalars(writer, probe) -> None:
    """Write memory/<medium>, memory/rss and memory/suspects_per_step, in bytes, as of the probe's last mark.

    ``writer``: anything with add_scalar(tag, value, global_step).  Before the first mark nothing is written.
    """
    now = probe.progress()
    if now is None:
        return
    for medium, size in now["media"].items():
        writer.add_scalar(f"memory/{medium}", size, now["step"])
    if now["rss"] is not None:
        writer.add_scalar("memory/rss", now["rss"], now["step"])
    writer.add_scalar("memory/suspects_per_step", now["bytes_per_step"], now["step"])
