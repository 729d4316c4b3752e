"""A TrainerCallback for transformers: an optimizer step is a step; memory/* goes where the Trainer reports.

from leakprobe.integrations.huggingface import LeakprobeCallback

trainer = Trainer(..., callbacks=[LeakprobeCallback(warmup=5)])
"""

import logging
import sys
import types
from typing import Any

try:
    from transformers import TrainerCallback
    from transformers.trainer_callback import CallbackHandler
except ImportError:
    raise ImportError("LeakprobeCallback needs transformers: python3 -m pip install transformers") from None

from leakprobe.integrations.session import Session
from leakprobe.integrations.tensorboard import Writer
from leakprobe.model.report import Report

_logger = logging.getLogger("leakprobe")


class LeakprobeCallback(TrainerCallback):  # type: ignore[misc]  # mypy does not follow transformers' imports
    """Watches train() and prints the report at its end; ``report`` keeps it.

    warmup, and options such as limit, media and record, are those of leakprobe.watch(); show=False prints
    nothing.
    log: what the Trainer logs (each logging_steps) goes with memory/<medium>, memory/rss and
        memory/suspects_per_step, in bytes, to all that it reports to.
    writer: a SummaryWriter that gets them at each step.
    The Trainer does not call its callbacks after an exception: the watch then goes on until the next
    train(), close() or leakprobe.stop().
    """

    def __init__(
        self,
        warmup: int = 5,
        *,
        show: bool = True,
        log: bool = True,
        writer: Writer | None = None,
        **options: Any,
    ):
        self._log, self._logged = log, -1
        self._session = Session(warmup, show=show, writer=writer, **options)

    @property
    def report(self) -> Report | None:
        """The Report of the last train(), or None."""
        return self._session.report

    def close(self) -> None:
        """End the watch if an exception left it on."""
        self._session.end()

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._logged = -1
        if self._log:
            go_first(self, sys._getframe(1))
        self._session.begin()

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._session.epoch()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._session.step()

    def on_log(
        self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        """All callbacks get one dict, one after the other: what the first adds, the others report."""
        if self._log and logs is not None and state.global_step != self._logged:
            self._logged = state.global_step
            logs.update(self._session.scalars())

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._session.end()


def go_first(callback: TrainerCallback, caller: types.FrameType) -> None:
    """Put the callback before those that report, which the Trainer has put before all that it is given.

    The handler that calls callbacks tells them nothing of itself or of the Trainer: ``caller`` is its frame.
    It is in the middle of its list, which is in the same order behind the callback as before.
    """
    handler = caller.f_locals.get("self")
    if isinstance(handler, CallbackHandler) and callback in handler.callbacks:
        handler.callbacks.remove(callback)
        handler.callbacks.insert(0, callback)
    else:
        _logger.warning("memory/* is not logged: this version of transformers calls callbacks in another way")
