"""Folded stacks, one "outer;inner;what N" a line: what flamegraph.pl, inferno and most flame graphs read."""

import collections
import os
from collections.abc import Sequence

from leakprobe.model.frames import Frame
from leakprobe.model.report import Report
from leakprobe.report.clean import clean
from leakprobe.report.samples import AMOUNTS, samples_of, whole


def to_folded(parts: Sequence[tuple[str, Report]], amount: str = "growth") -> str:
    """One line per stack; ``amount`` is a key of AMOUNTS.  Equal stacks are added up, largest first.

    The first frame says what is counted, the next the rank or recording, where there are several; the last
    frame is what was allocated.
    """
    title, _unit, of = AMOUNTS[amount]
    total: collections.Counter[str] = collections.Counter()
    for sample in samples_of(parts):
        names = [
            f"leakprobe {title}",
            *filter(None, [sample.origin]),
            *map(frame_name, sample.frames),
            sample.what,
        ]
        total[";".join(map(folded, names))] += whole(of(sample))
    return "".join(f"{stack} {count}\n" for stack, count in total.most_common() if count > 0)


def frame_name(frame: Frame) -> str:
    """ "forward (model.py:21)"."""
    where = f" ({os.path.basename(frame.filename)}:{frame.lineno})" if frame.filename else ""
    return f"{frame.function}{where}"


def folded(name: str) -> str:
    """A name without what ends a frame or a line."""
    return clean(name).replace(";", ":")
