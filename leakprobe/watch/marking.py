"""Who marks the steps of a watch: the program, or torch for a program that marks none."""

import threading
import weakref
from typing import Any, TypeVar

from leakprobe.model.finding import Note
from leakprobe.model.thresholds import HALF, LEAST_STEPS
from leakprobe.torch.steps import AutoSteps

AnyProbe = TypeVar("AnyProbe")


class Marking:
    """The automatic steps of a watch, and whether a loop is marked twice.

    The first optimizer step, or batch, ends no step: a program that marks its steps may do so right after it.
    Once it does, it alone marks, and what was marked until then is warm-up.
    """

    def __init__(self, probe: Any) -> None:
        self._probe = weakref.ref(probe)  # torch keeps the hooks: a watch that nobody can reach ends
        self._automatic: AutoSteps | None = AutoSteps(self)
        self._has_begun = self._is_certain = False
        self._here = threading.local()  # is_automatic: of the mark that this thread makes
        self._marks = self._given_up = 0  # automatic ones
        self._iterations = self._marked_inside = 0

    # ---- what the watch calls ----

    def leave_to_caller(self) -> None:
        """Who entered the watch marks its steps."""
        self._automatic = None

    def leave_to_torch(self) -> None:
        """Nobody else can mark: the first step counts."""
        self._has_begun = self._is_certain = True

    def install(self) -> None:
        if self._automatic is not None:
            self._automatic.install()

    def remove(self) -> None:
        automatic = self._automatic
        if automatic is not None:
            automatic.remove()
        self._automatic = None

    def give_way(self) -> bool:
        """At a mark, before it counts: if it is the program's, there are no automatic ones any more.  True if
        there were.
        """
        if self._automatic is None or self._is_certain or getattr(self._here, "is_automatic", False):
            return False
        self.remove()
        self._given_up = self._marks
        return self._marks > 0

    def iterated(self, marked_inside: bool) -> None:
        """An iteration of ``Probe.steps()`` is over, in which ``Probe.step()`` was called or was not."""
        self._iterations += 1
        self._marked_inside += marked_inside

    @property
    def notes(self) -> list[Note]:
        found = []
        if self._given_up:
            text = (
                f"the first {self._given_up:,} steps were those of an optimizer or a DataLoader, until the "
                "program marked one itself: they count as warm-up"
            )
            found.append(Note(kind="warm_up", text=text, medium=None))
        if self._iterations > LEAST_STEPS and self._marked_inside > HALF * self._iterations:
            text = (
                "the loop is marked twice, by probe.steps() and by probe.step() inside of it: what is "
                "reported a step is half of what an iteration makes; leave one of them out"
            )
            found.append(Note(kind="gap", text=text, medium=None))
        return found

    # ---- what AutoSteps calls ----

    def is_active(self) -> bool:
        probe = self._probe()
        return self._automatic is not None and probe is not None and bool(probe.is_active())

    def step(self) -> None:
        if not self._has_begun:
            self._has_begun = True
            return
        self._here.is_automatic = True
        try:
            self._of_probe("_step_if_on")
        finally:
            self._here.is_automatic = False
        self._marks += 1

    def epoch(self) -> None:
        if self._has_begun and self._automatic is not None:
            self._of_probe("epoch")

    def _look_at_an_epochs_end(self) -> None:
        if self._has_begun:
            self._of_probe("_look_at_an_epochs_end")

    def _of_probe(self, name: str) -> None:
        probe = self._probe()
        if probe is not None:
            getattr(probe, name)()


def marked_by_caller(probe: AnyProbe) -> AnyProbe:
    """The probe, whose steps the caller marks."""
    marking: Marking = probe._marking  # type: ignore[attr-defined]
    marking.leave_to_caller()
    return probe


def marked_by_torch(probe: AnyProbe) -> AnyProbe:
    """The probe, whose steps nobody else can mark."""
    marking: Marking = probe._marking  # type: ignore[attr-defined]
    marking.leave_to_torch()
    return probe
