"""A watch that a library's callbacks begin, step and end."""

from leakprobe import switch


class Session:
    """begin(), step(), epoch() and end() of one training run; the report of the last one is kept in
    ``report``.

    writer: a SummaryWriter that gets memory/<medium> at each step, or None.  show: print the report at the
        end.
    options: those of leakprobe.watch().
    """

    def __init__(self, warmup=5, *, show=True, writer=None, **options):
        self._warmup, self._show, self._writer, self._options = warmup, show, writer, options
        self._probe = None
        self.report = None
        self._new_watch()  # wrong options are an error now, not in the middle of the first epoch

    def _new_watch(self):
        from leakprobe.probe import watch

        return watch(self._warmup, **self._options)

    def begin(self) -> None:
        self.end()
        self.report, self._probe = None, self._new_watch()
        self._probe.__enter__()

    def step(self) -> None:
        if self._probe is None or not self._probe.is_active():
            return
        self._probe.step()
        if self._writer is not None:
            from leakprobe.integrations.tensorboard import write_scalars

            write_scalars(self._writer, self._probe)

    def epoch(self) -> None:
        if self._probe is not None and self._probe.is_active():
            self._probe.epoch()

    def end(self) -> None:
        """End the watch; a second call does nothing."""
        probe, self._probe = self._probe, None
        if probe is None:
            return
        if probe.is_active():
            probe._look_at_the_end()
        probe.__exit__(None, None, None)
        self.report = probe.report()
        if self._show:
            off = switch.disabled_line()
            self.report.print() if off is None else print(off)
