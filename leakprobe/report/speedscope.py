"""A file for speedscope (https://www.speedscope.app): one profile for each amount.

Format: speedscope's file-format-schema.json; "sampled" profiles, whose samples are stacks, outermost first.
"""

import json
from collections.abc import Sequence
from typing import Any

from leakprobe.model.frames import Frame
from leakprobe.model.report import Report
from leakprobe.report.clean import clean
from leakprobe.report.samples import AMOUNTS, Sample, program_of, samples_of

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
#: Units that speedscope knows; of counts it knows none.
UNITS = {"bytes": "bytes", "count": "none"}


def to_speedscope(parts: Sequence[tuple[str, Report]]) -> str:
    """The samples of (label, report) pairs; amounts that all samples lack have no profile."""
    samples, frames = samples_of(parts), FrameTable()
    stacks = [frames.stack(sample) for sample in samples]
    profiles = [
        profile
        for name in AMOUNTS
        if (profile := sampled(name, samples, stacks))["samples"] or name == "growth"
    ]
    data = {
        "$schema": SCHEMA,
        "exporter": "leakprobe",
        "name": program_of(parts),
        "activeProfileIndex": 0,
        "shared": {"frames": frames.rows},
        "profiles": profiles,
    }
    return json.dumps(data, allow_nan=False) + "\n"


def sampled(amount: str, samples: Sequence[Sample], stacks: Sequence[list[int]]) -> dict[str, Any]:
    """One profile: the stacks with a positive amount."""
    title, unit, of = AMOUNTS[amount]
    found = [(stack, of(sample)) for sample, stack in zip(samples, stacks) if of(sample) > 0]
    return {
        "type": "sampled",
        "name": title,
        "unit": UNITS[unit],
        "startValue": 0,
        "endValue": sum(value for _stack, value in found),
        "samples": [stack for stack, _value in found],
        "weights": [value for _stack, value in found],
    }


class FrameTable:
    """The frames that all profiles share, each once."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self._numbers: dict[tuple[str, str, int], int] = {}

    def stack(self, sample: Sample) -> list[int]:
        """Numbers of the sample's frames, its origin before them, what it allocated behind."""
        first = [self.number(sample.origin, "", 0)] if sample.origin else []
        return [*first, *map(self.of_frame, sample.frames), self.number(sample.what, "", 0)]

    def of_frame(self, frame: Frame) -> int:
        return self.number(frame.function, frame.filename, frame.lineno)

    def number(self, name: str, file: str, line: int) -> int:
        key = (clean(name), clean(file), line)
        if key not in self._numbers:
            self._numbers[key] = len(self.rows)
            row: dict[str, Any] = {"name": key[0]}
            row |= {"file": key[1]} if file else {}
            row |= {"line": line} if line else {}
            self.rows.append(row)
        return self._numbers[key]
