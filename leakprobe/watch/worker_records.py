"""The recording of one DataLoader worker: a file beside that of the parent, written by the worker itself."""

import contextlib
import dataclasses
import os
import time
from collections.abc import Callable
from typing import Any

from leakprobe.model.parts import named_by_part
from leakprobe.model.report import Report
from leakprobe.model.units import TIME_DIGITS
from leakprobe.watch.timeline import Timeline


def path_of_worker(record: str, number: int, slot: int) -> str:
    """ "run.leak" as "run.worker0.leak"; "run.loader1.worker0.leak" for a loader that runs beside another."""
    loader = f"loader{number}." if number else ""
    return named_by_part(record, f"{loader}worker{slot}")


class WorkerRecord:
    """Each batch is a row; what a look found is there with the batch that it was taken at.

    Errors: LeakprobeError of a Recorder, from the constructor only.
    """

    def __init__(self, settings: dict[str, Any], slot: int):
        from multiprocessing.util import Finalize

        from leakprobe.record.writer import Recorder

        number = settings["loader"]
        run = {
            **settings["run"],
            "worker": slot,
            "pid": os.getpid(),
            "started": round(time.time(), TIME_DIGITS),
            **({"loader": number} if number else {}),
        }
        options = {key: settings[key] for key in ("warmup", "limit", "media")}
        self._recorder = Recorder(path_of_worker(settings["record"], number, slot), run, options)
        self._run, self._timeline = run, Timeline()
        self._conclude: Callable[[], Report] | None = None
        Finalize(None, self._finish, exitpriority=1)  # atexit does not run in a forked worker

    def mark(self, step: int, heap_bytes: int, conclude: Callable[[], Report], is_new: bool) -> None:
        """Take a batch.  ``conclude()`` gives the Report as of now; it is asked where ``is_new``, and at the
        end.
        """
        self._conclude = conclude
        self._timeline.add(step, 0, heap_bytes)
        self._recorder.mark(
            self._timeline.row(-1), self._timeline.memory_row(-1), self._report(conclude) if is_new else None
        )

    def close(self) -> None:
        """Write what is left.  A second call does nothing."""
        report = self._report(self._conclude) if self._conclude is not None else None
        self._conclude = None
        self._recorder.close(report)

    def _finish(self) -> None:
        """At the end of the process: nothing that fails here may be told as the worker's error."""
        with contextlib.suppress(Exception):
            self.close()

    def _report(self, conclude: Callable[[], Report]) -> Report:
        report = conclude()
        report.run = dict(self._run)
        report.findings = [
            dataclasses.replace(f, kind="worker_growth", medium="worker") for f in report.findings
        ]
        report.notes += self._recorder.notes()
        return report
