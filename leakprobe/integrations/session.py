"""A watch that a library's callbacks begin, step and end."""

import sys
from collections.abc import Callable
from typing import Any

from leakprobe import switch
from leakprobe.integrations.scalars import scalars
from leakprobe.integrations.tensorboard import Writer, write_scalars
from leakprobe.model.report import Report
from leakprobe.probe import Probe, watch
from leakprobe.torch.steps import AutoSteps
from leakprobe.watch.marking import marked_by_caller


class Session:
    """begin(), step(), epoch() and end() of one training run; the report of the last one is kept in
    ``report``.

    writer: a SummaryWriter that gets memory/<medium> at each step, or None.  show: print the report at the
        end.
    options: those of leakprobe.watch().
    """

    def __init__(self, warmup: int = 5, *, show: bool = True, writer: Writer | None = None, **options: Any):
        self._warmup, self._show, self._writer, self._options = warmup, show, writer, options
        self._probe: Probe | None = None
        self.report: Report | None = None
        self._new_watch()  # wrong options are an error now, not in the middle of the first epoch

    def _new_watch(self) -> Probe:
        probe: Probe = watch(self._warmup, **self._options)
        return marked_by_caller(probe)

    def begin(self) -> Probe:
        """The probe of the watch that has begun."""
        self.end()
        self.report, self._probe = None, self._new_watch()
        return self._probe.__enter__()

    def is_active(self) -> bool:
        return self._probe is not None and self._probe.is_active()

    def step(self) -> None:
        probe = self._probe  # another thread may end the watch meanwhile
        if probe is None or not probe.is_active():
            return
        probe._step_if_on()
        if self._writer is not None:
            write_scalars(self._writer, probe)

    def scalars(self) -> dict[str, float]:
        """memory/* as of the last mark, for a logger; empty before the first."""
        return scalars(self._probe) if self._probe is not None and self._probe.is_active() else {}

    def epoch(self) -> None:
        if self._probe is not None and self._probe.is_active():
            self._probe.epoch()

    def _look_at_an_epochs_end(self) -> None:
        if self._probe is not None:
            self._probe._look_at_an_epochs_end()

    def end(self, *, alive: bool = True, kind: type[BaseException] | None = None) -> None:
        """End the watch; a second call does nothing.  ``alive``: what the last steps made is there still, and
        is looked at once more; the locals of a loop that has returned are not.  ``kind``: the type of the
        exception that ended the loop.
        """
        probe, self._probe = self._probe, None
        if probe is None:
            return
        if alive and probe.is_active():
            probe._look_at_the_end()
        probe.__exit__(kind, None, None)
        self.report = probe.report()
        if self._show:
            off = switch.disabled_line()
            self.report.print() if off is None else print(off)


def called_under(session: Session, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What the function gives, called under a session that has begun: a step is an optimizer step, else a
    batch of a DataLoader.
    """
    steps = AutoSteps(session)
    steps.install()
    try:
        return function(*args, **kwargs)
    finally:
        steps.remove()
        session.end(alive=False, kind=sys.exc_info()[0])
