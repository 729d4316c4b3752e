"""The last line of the terminal, kept for one line about the run while the script prints above it.

The lines above are made the scroll region (DECSTBM), as package managers do for their progress bar.
"""

import os
import sys
import time
from collections.abc import Mapping
from typing import Any, Protocol, TextIO

from leakprobe.model.report import Report
from leakprobe.model.units import counted, format_rate, format_size

#: Seconds between two drawings.
INTERVAL_S = 0.25


class Watched(Protocol):
    """What the line shows: a Probe."""

    def progress(self) -> Mapping[str, Any] | None: ...


class LiveLine:
    """show() at each step, end() before the terminal is used for anything else."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._pid = stream, os.getpid()
        self._size: os.terminal_size | None = None
        self._next = 0.0

    @classmethod
    def if_wanted(cls) -> "LiveLine | None":
        """A LiveLine on standard error if that is a terminal that knows regions, else None."""
        stream = sys.__stderr__
        plain = os.environ.get("TERM", "dumb") in ("dumb", "") or os.environ.get("LEAKPROBE_LIVE") == "0"
        return cls(stream) if stream is not None and stream.isatty() and not plain else None

    def show(self, probe: Watched) -> None:
        now = time.monotonic()
        if now < self._next or os.getpid() != self._pid:
            return
        self._next = now + INTERVAL_S
        progress = probe.progress()
        if progress is None:
            return
        try:
            size = os.get_terminal_size(self._stream.fileno())
            begin = self._begin(size) if size != self._size else ""
            line = line_within(progress, max(1, size.columns - 1))
            self._stream.write(f"{begin}\x1b7\x1b[{size.lines};1H\x1b[2K\x1b[2m{line}\x1b[0m\x1b8")
            self._stream.flush()
        except (OSError, ValueError):
            self._next = float("inf")

    def _begin(self, size: os.terminal_size) -> str:
        """Free the last line by scrolling, and keep what the script prints above it."""
        self._size = size
        return f"\n\x1b7\x1b[1;{size.lines - 1}r\x1b8\x1b[1A" if size.lines > 2 else ""

    def end(self) -> None:
        """Give the line back."""
        if self._size is None or os.getpid() != self._pid:
            return
        try:
            self._stream.write(f"\x1b7\x1b[r\x1b[{self._size.lines};1H\x1b[2K\x1b8")
            self._stream.flush()
        except (OSError, ValueError):
            pass
        self._size = None


def line_within(progress: Mapping[str, Any], columns: int) -> str:
    """The line, without RSS on a narrow terminal: what grows is not to be cut off."""
    line = line_of(progress)
    return (line if len(line) <= columns else line_of(progress, with_rss=False))[:columns]


def line_of(progress: Mapping[str, Any], with_rss: bool = True) -> str:
    """ "step 120   RSS 1.2 GiB   +4.0 MiB/step in 2 suspects"."""
    rss = format_size(progress["rss"]) if progress["rss"] is not None else "not known"
    text = f"leakprobe  step {progress['step']:,}" + (f"   RSS {rss}" if with_rss else "")
    if progress["looked"] is None:
        return f"{text}   not checked yet"
    if not progress["suspects"]:
        return f"{text}   nothing grows (step {progress['looked']:,})"
    suspects = counted(progress["suspects"], "suspect")
    return f"{text}   {format_rate(progress['bytes_per_step'])} in {suspects} (step {progress['looked']:,})"


def line_of_report(report: Report) -> str:
    """The same of a recording that is being written."""
    if not report.timeline:
        return "leakprobe  waiting for the first step"
    rates = [f.bytes_per_step for f in report.findings]
    return line_of(
        {"step": report.timeline[-1]["step"], "rss": report.memory[-1]["rss"], "looked": report.as_of_step or None,
         "suspects": len(rates), "bytes_per_step": sum(rates)}
    )  # fmt: skip
