"""A Callback for Lightning: a training batch is a step.

from leakprobe.integrations.lightning import LeakprobeCallback

trainer = Trainer(callbacks=[LeakprobeCallback(warmup=5, record="run.leak")])
"""

try:
    from lightning.pytorch.callbacks import Callback
except ImportError:
    try:
        from pytorch_lightning.callbacks import Callback
    except ImportError:
        raise ImportError("LeakprobeCallback needs Lightning: python3 -m pip install lightning") from None

from leakprobe.integrations.session import Session


class LeakprobeCallback(Callback):
    """Watches fit() and prints the report at its end, also after an exception; ``report`` keeps it.

    warmup, and options such as limit, media and record, are those of leakprobe.watch(); show=False prints
    nothing;
    writer: a SummaryWriter that gets memory/<medium>.
    """

    def __init__(self, warmup=5, *, show=True, writer=None, **options):
        super().__init__()
        self._session = Session(warmup, show=show, writer=writer, **options)

    @property
    def report(self):
        """The Report of the last fit(), or None."""
        return self._session.report

    def on_train_start(self, trainer, pl_module) -> None:
        self._session.begin()

    def on_train_epoch_start(self, trainer, pl_module) -> None:
        self._session.epoch()

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx) -> None:
        self._session.step()

    def on_train_end(self, trainer, pl_module) -> None:
        self._session.end()

    def on_exception(self, trainer, pl_module, exception) -> None:
        self._session.end()
