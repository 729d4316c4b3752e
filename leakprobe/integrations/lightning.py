"""A Callback for Lightning: a training batch is a step, and memory/* goes to the trainer's loggers.

from leakprobe.integrations.lightning import LeakprobeCallback

trainer = Trainer(callbacks=[LeakprobeCallback(warmup=5, record="run.leak")])
"""

from typing import Any

try:
    from lightning.pytorch.callbacks import Callback
except ImportError:
    try:
        from pytorch_lightning.callbacks import Callback
    except ImportError:
        raise ImportError("LeakprobeCallback needs Lightning: python3 -m pip install lightning") from None

from leakprobe.integrations.session import Session
from leakprobe.integrations.tensorboard import Writer
from leakprobe.model.report import Report


class LeakprobeCallback(Callback):  # type: ignore[misc]  # mypy does not follow Lightning's imports
    """Watches fit() and prints the report at its end, also after an exception; ``report`` keeps it.

    warmup, and options such as limit, media and record, are those of leakprobe.watch(); show=False prints
    nothing.
    log: the trainer's loggers get memory/<medium>, memory/rss and memory/suspects_per_step, in bytes, as
        often as they get metrics (the trainer's log_every_n_steps).
    writer: a SummaryWriter that gets them at each step.
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
        super().__init__()
        self._log, self._logged = log, -1
        self._session = Session(warmup, show=show, writer=writer, **options)

    @property
    def report(self) -> Report | None:
        """The Report of the last fit(), or None."""
        return self._session.report

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self._logged = -1
        self._session.begin()

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        self._session.epoch()

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        self._session.step()
        if self._log and trainer.loggers:
            self._log_memory(trainer)

    def _log_memory(self, trainer: Any) -> None:
        """Beside the metrics of the same step, which Lightning numbers from 0."""
        step, every = number_of_step(trainer), trainer.log_every_n_steps
        if every < 1 or (step + 1) % every or step == self._logged:
            return
        self._logged = step
        values = self._session.scalars()
        for logger in trainer.loggers if values else ():
            logger.log_metrics(values, step=step)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self._session.end()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._session.end()


def number_of_step(trainer: Any) -> int:
    """The number, from 0, by which Lightning logs what belongs to the batch that ends: it counts batches
    behind which optimizers stepped, once the callbacks were called.

    global_step, which counts the step of each optimizer, where a version of Lightning has no such count.
    """
    loop = getattr(trainer.fit_loop, "epoch_loop", None)
    return int(getattr(loop, "_batches_that_stepped", trainer.global_step - 1))
