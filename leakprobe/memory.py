"""What the process has now: bytes by kind of memory, resident memory, and what of that nothing explains."""

import dataclasses
from typing import Any, TextIO

from leakprobe import _core
from leakprobe.model.media import is_on_host
from leakprobe.model.units import format_size
from leakprobe.report.clean import clean
from leakprobe.report.streams import stream_of, write


@dataclasses.dataclass(frozen=True)
class MemoryTotals:
    """Memory of the process, in bytes.

    media: {kind of memory: bytes alive}.  "python" is all of Python's objects; of buffers there are those
        that were seen: all since the watch began, none without one.
    rss: resident memory of the process, or None where the system does not say.
    probe: what leakprobe's own tables take.
    unexplained: what of rss is none of these, 0 or more: code, libraries' own memory, and freed memory that
        allocators keep; None without rss.
    """

    media: dict[str, int]
    rss: int | None
    probe: int
    unexplained: int | None

    def to_dict(self) -> dict[str, Any]:
        """Plain data, with the same keys."""
        return dataclasses.asdict(self)

    def print(self, file: TextIO | None = None) -> None:
        """A line for each part, the largest first, below that of the resident memory."""
        of_host = {name: size for name, size in self.media.items() if is_on_host(name)}
        parts = {**of_host, "leakprobe itself": self.probe}
        if self.unexplained is not None:
            parts["not accounted for"] = self.unexplained
        rss = "not known" if self.rss is None else format_size(self.rss)
        lines = [f"resident memory  {rss}", *lines_of(parts)]
        devices = {name: size for name, size in self.media.items() if name not in of_host}
        if devices:
            lines += ["on devices", *lines_of(devices)]
        write("".join(f"{line}\n" for line in lines), stream_of(file))


def lines_of(parts: dict[str, int]) -> list[str]:
    return [
        f"  {format_size(size):>10}  {clean(name)}"
        for name, size in sorted(parts.items(), key=lambda p: -p[1])
    ]


def memory() -> MemoryTotals:
    """The MemoryTotals of now.  Python's objects are counted by a pass over all of them, as for snapshot().

    Errors: LeakprobeError "gc_running", "already_active".
    """
    with _core.QuietCollector():
        python = _core.census(True, 0, 2**32 - 1, 2**32 - 1).total_bytes
        media = {"python": python} | {
            name: total["live_bytes"] for name, total in _core.ledger_totals().items() if total["live_bytes"]
        }
        rss, probe = _core.rss_bytes(), _core.overhead_bytes()
    explained = probe + sum(size for name, size in media.items() if is_on_host(name))
    return MemoryTotals(media, rss, probe, None if rss is None else max(0, rss - explained))
