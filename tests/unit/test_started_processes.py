"""Which processes of a program are watched, and where they record."""

import contextlib
import functools
import os
import subprocess

from sample_reports import finding, report

from leakprobe.cli import processes
from leakprobe.cli.processes import is_of_program


def test_a_program_that_starts_many_has_the_first_watched(monkeypatch):
    monkeypatch.setattr(processes, "MOST_PROCESSES", 2)
    with contextlib.closing(processes.Processes(None, {})) as started:
        paths = [started._next_path() for _ in range(4)]
    assert [path and os.path.basename(path) for path in paths] == [
        "process-1.leak",
        "process-2.leak",
        None,
        None,
    ]
    assert not os.path.exists(os.path.dirname(paths[0]))


class Called:
    def __call__(self):
        return None


def test_what_is_the_programs():
    def own():
        return None

    for target in (own, functools.partial(own), Called(), Called().__call__):
        assert is_of_program(target), target
    for target in (None, len, subprocess.run, functools.partial(os.getpid), [].append):
        assert not is_of_program(target), target


def test_what_an_earlier_run_recorded_is_none_of_this_run(tmp_path):
    own = str(tmp_path / "r.leak")
    for name in ("r.process-1.leak", "r.process-2.leak"):
        report(findings=[finding()]).save(tmp_path / name)
    with contextlib.closing(processes.Processes(own, {})) as started:
        paths = [started._next_path() for _ in range(2)]
        assert [os.path.basename(path) for path in paths] == ["r.process-1.leak", "r.process-2.leak"]
        report().save(paths[1])  # the first has not come to its watch
        found = started._recordings()
    assert [(one.path, one.report.verdict) for one in found] == [(paths[1], "steady")]
