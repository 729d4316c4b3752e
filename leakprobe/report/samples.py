"""Stacks with amounts, as flame graphs take them: what folded, speedscope and pprof files share.

What grows comes from the findings, what is alive from the allocation sites of the last look, so that nothing
is counted twice: a finding may speak for several sites.  A report without sites gives the findings' live
amounts.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence

from leakprobe.model.finding import Finding
from leakprobe.model.frames import Frame
from leakprobe.model.report import Report
from leakprobe.model.rows import SiteRow
from leakprobe.report.clean import clean
from leakprobe.report.places import grown_at

#: The frame of what has no line: native memory, objects older than the watch.
NO_LINE = Frame("", 0, "(line not known)")


@dataclasses.dataclass(frozen=True)
class Sample:
    """One stack, outermost frame first.  Bytes are bytes; growth is per step.

    origin: the rank, worker or file that it comes from, "" where there is one only; finding: its fingerprint.
    """

    frames: tuple[Frame, ...]
    medium: str
    type: str | None
    origin: str = ""
    live_bytes: int = 0
    live_count: int = 0
    bytes_per_step: float = 0.0
    count_per_step: float = 0.0
    finding: str | None = None
    cause: str | None = None

    @property
    def what(self) -> str:
        """ "torch.Tensor (cpu)": what the stack allocated."""
        return clean(f"{self.type or 'buffers'} ({self.medium})")


#: Amount => how a file names it, its unit, the amount of a sample.
Amount = tuple[str, str, Callable[[Sample], float]]
AMOUNTS: dict[str, Amount] = {
    "growth": ("growth per step", "bytes", lambda sample: sample.bytes_per_step),
    "live": ("live bytes", "bytes", lambda sample: sample.live_bytes),
    "growth-count": ("growth of counts per step", "count", lambda sample: sample.count_per_step),
    "live-count": ("live objects and blocks", "count", lambda sample: sample.live_count),
}


def samples_of(parts: Sequence[tuple[str, Report]]) -> list[Sample]:
    """The samples of (label, report) pairs; ``label`` is left out where there is one pair only.

    What a loop's own report says of its DataLoader workers is left to their reports, where there are any.
    """
    with_workers = any("worker" in report.run for _label, report in parts)
    found: list[Sample] = []
    for label, report in parts:
        of_one = [*growing(report), *(alive(report.sites) if report.sites else ())]
        found += [
            dataclasses.replace(sample, origin=label if len(parts) > 1 else "")
            for sample in of_one
            if not (with_workers and "worker" not in report.run and sample.medium == "worker")
        ]
    return found


def program_of(parts: Sequence[tuple[str, Report]]) -> str:
    """The program that the first report names."""
    names = (report.run.get("program") for _label, report in parts)
    return clean(next((name for name in names if isinstance(name, str)), "program"))


def growing(report: Report) -> Iterator[Sample]:
    for finding in report.findings:
        sample = Sample(
            frames=outermost_first(finding.allocation_stack, finding),
            medium=finding.medium,
            type=finding.type,
            bytes_per_step=finding.bytes_per_step,
            count_per_step=finding.count_per_step,
            finding=finding.fingerprint,
            cause=finding.cause,
        )
        if not report.sites:
            sample = dataclasses.replace(sample, live_bytes=finding.live_bytes, live_count=finding.live_count)
        yield sample


def alive(sites: Sequence[SiteRow]) -> Iterator[Sample]:
    for site in sites:
        yield Sample(
            frames=outermost_first(site["allocation_stack"]),
            medium=site["medium"],
            type=site["type"],
            live_bytes=site["live_bytes"],
            live_count=site["live_count"],
        )


def outermost_first(stack: Sequence[Frame], finding: Finding | None = None) -> tuple[Frame, ...]:
    """The stack turned round; without one, the line that last grew the finding's holder, else NO_LINE."""
    if stack:
        return tuple(reversed(stack))
    return ((finding and grown_at(finding)) or NO_LINE,)


def whole(amount: float) -> int:
    """For formats that know whole numbers of 64 bits only."""
    return max(-(2**63), min(round(amount), 2**63 - 1))
