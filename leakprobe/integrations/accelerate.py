"""For loops with Hugging Face accelerate: watches them, and logs memory/* to the accelerator's trackers.

from leakprobe.integrations.accelerate import LeakprobeCallback

accelerator = Accelerator(log_with="tensorboard", project_dir=folder)
accelerator.init_trackers("run")
with LeakprobeCallback(accelerator) as memory:
    for batch in memory.steps(loader):         # or memory.step() at the end of each step
        train_step(batch)
memory.report.print()
"""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeVar

from leakprobe.checks import checked_int
from leakprobe.integrations.session import Session
from leakprobe.model.report import Report
from leakprobe.watch.iteration import Steps, steps_over

Item = TypeVar("Item")


class Trackers(Protocol):
    """An accelerate.Accelerator, as far as it is needed here."""

    def log(self, values: dict[str, Any], step: int | None = None) -> None: ...


class LeakprobeCallback:
    """A context manager that watches a loop; its report is printed at the end, also after an exception.

    warmup, and options such as limit, media and record, are those of leakprobe.watch(); show=False prints
    nothing.
    accelerator: its trackers, on its main process, get memory/<medium>, memory/rss and
        memory/suspects_per_step, in bytes, at every ``log_every``-th step; 0 for never.
    Errors: LeakprobeError "bad_argument".
    """

    def __init__(
        self,
        accelerator: Trackers,
        warmup: int = 5,
        *,
        log_every: int = 10,
        show: bool = True,
        **options: Any,
    ):
        self._accelerator, self._log_every = accelerator, checked_int("log_every", log_every, 0)
        self._session = Session(warmup, show=show, **options)
        self._steps = 0

    @property
    def report(self) -> Report | None:
        """The Report of the last watch, or None before its end."""
        return self._session.report

    def __enter__(self) -> "LeakprobeCallback":
        self._steps = 0
        self._session.begin()
        return self

    def __exit__(self, *exception: object) -> None:
        self._session.end()

    def step(self) -> None:
        """Mark the end of a step."""
        self._session.step()
        self._steps += 1
        if self._log_every > 0 and self._steps % self._log_every == 0:
            values: Mapping[str, float] = self._session.scalars()
            if values:
                self._accelerator.log(dict(values), step=self._steps)

    def epoch(self) -> None:
        """Mark the beginning of an epoch."""
        self._session.epoch()

    def steps(self, iterable: Iterable[Item]) -> Steps[Item]:
        """The items of ``iterable``, an epoch, with a step marked after each; ``len()`` and attributes are
        kept.

        Errors: LeakprobeError "bad_argument" for what is not iterable.
        """
        return steps_over(Marks(self, self._session), iterable)


class Marks:
    """What a loop of steps() asks of a probe, for one whose marks are those of a callback."""

    def __init__(self, callback: LeakprobeCallback, session: Session) -> None:
        self._callback, self._session = callback, session
        self.is_active, self.epoch, self._step_if_on = session.is_active, callback.epoch, callback.step
        self._look_at_an_epochs_end = session._look_at_an_epochs_end

    @property
    def _marking(self) -> "Marks":
        return self  # no attribute: that would be a cycle for each loop

    @property
    def _steps(self) -> int:
        return self._callback._steps

    def iterated(self, marked_inside: bool) -> None:
        probe = self._session._probe
        if probe is not None:
            probe._marking.iterated(marked_inside)
