"""Watches that a program enters itself under `leakprobe run`: the run's watch gives way to them, as the
program says best what a step of it is.
"""

import dataclasses
import os
from typing import Any

from leakprobe import _core
from leakprobe.model.finding import Note
from leakprobe.model.parts import named_by_part
from leakprobe.model.report import Report
from leakprobe.probe import Probe

GAVE_WAY = (
    "the program entered a watch of its own at step {step:,} of that of `leakprobe run`, which ended there: "
    "warm-up, limit and steps are the program's"
)
NO_STEPS = (
    "the program entered a watch of its own at step {step:,} of that of `leakprobe run`, which ended there, "
    "and no step came in it: what the program did from then on is not judged; call probe.step() in it, or "
    "take it out"
)


class OwnWatches:
    """Around the program, in the watch that gives way; then report()."""

    def __init__(self, outer: Probe) -> None:
        self._outer = outer
        self._own: Probe | None = None  # the first that found growth, else the last
        #: Of a watch that came after steps of the run's, and where it records: neither overwrites the other.
        self._part: str | None = None

    def __enter__(self) -> "OwnWatches":
        self._outer._gave_way_to = self._hear  # type: ignore[attr-defined]
        _core.give_way(self._outer)
        return self

    def __exit__(self, *exc_info: object) -> None:
        _core.give_way(None)
        del self._outer._gave_way_to  # type: ignore[attr-defined]
        if self._own is not None:
            self._own.__exit__(*exc_info)

    def _hear(self, probe: Any) -> None:
        """A watch is entered: it records where the run's did, unless it has a place of its own."""
        if not isinstance(probe, Probe) or self._has_found():
            return
        self._own, self._part = probe, None
        if probe._record is None and self._outer._record is not None:
            path = os.fspath(self._outer._record)
            if self._outer._steps:
                path = self._part = named_by_part(path, "own-watch")
            probe._record = path

    def _has_found(self) -> bool:
        return self._own is not None and self._own.report().verdict == "growing"

    def report(self) -> Report:
        """That of the program's own watch where steps came in it, unless only the run's found growth; the
        recording is of the same one.
        """
        outer = self._outer.report()
        if self._own is None:
            return outer
        own = self._own.report()
        if own.as_of_step == 0:
            self._drop_part()
            return with_gap(outer, NO_STEPS) if outer.as_of_step else outer
        if outer.verdict == "growing" and own.verdict != "growing":
            return outer
        if self._part is not None and os.path.exists(self._part):
            os.replace(self._part, os.fspath(self._outer._record or self._part))
            self._part = None
        own.notes.append(Note(kind="gap", text=GAVE_WAY.format(step=outer.as_of_step), medium=None))
        return own

    def _drop_part(self) -> None:
        """The recording of a watch without a step; that of the run has all."""
        if self._part is not None and os.path.exists(self._part):
            os.unlink(self._part)
        self._part = None


def with_gap(outer: Report, text: str) -> Report:
    """The run's report; what it did not see may have grown."""
    note = Note(kind="gap", text=text.format(step=outer.as_of_step), medium=None)
    verdict = "inconclusive" if outer.verdict == "steady" else outer.verdict
    return dataclasses.replace(outer, verdict=verdict, notes=[*outer.notes, note])
