"""A TrainerCallback for transformers: an optimizer step is a step.

from leakprobe.integrations.huggingface import LeakprobeCallback

trainer = Trainer(..., callbacks=[LeakprobeCallback(warmup=5)])
"""

try:
    from transformers import TrainerCallback
except ImportError:
    raise ImportError("LeakprobeCallback needs transformers: python3 -m pip install transformers") from None

from leakprobe.integrations.session import Session


class LeakprobeCallback(TrainerCallback):
    """Watches train() and prints the report at its end; ``report`` keeps it.

    warmup, and options such as limit, media and record, are those of leakprobe.watch(); show=False prints
    nothing;
    writer: a SummaryWriter that gets memory/<medium>.  The Trainer tells no callback of an exception: after
        one, the
    watch goes on until the next train(), close() or leakprobe.stop().
    """

    def __init__(self, warmup=5, *, show=True, writer=None, **options):
        self._session = Session(warmup, show=show, writer=writer, **options)

    @property
    def report(self):
        """The Report of the last train(), or None."""
        return self._session.report

    def close(self) -> None:
        """End the watch if an exception left it on."""
        self._session.end()

    def on_train_begin(self, args, state, control, **kwargs) -> None:
        self._session.begin()

    def on_epoch_begin(self, args, state, control, **kwargs) -> None:
        self._session.epoch()

    def on_step_end(self, args, state, control, **kwargs) -> None:
        self._session.step()

    def on_train_end(self, args, state, control, **kwargs) -> None:
        self._session.end()
