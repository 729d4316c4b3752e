"""LeakprobeCallback.steps() of accelerate, with trackers that only note what they get."""

import pytest

import leakprobe
from leakprobe.integrations.accelerate import LeakprobeCallback


class Trackers:
    def __init__(self):
        self.logged = []

    def log(self, values, step=None):
        self.logged.append((step, sorted(values)))


class Loader(list):
    dataset = "data"


def test_steps_keeps_length_and_attributes_and_logs():
    trackers = Trackers()
    with LeakprobeCallback(trackers, warmup=1, log_every=4, show=False) as memory:
        for _ in range(2):
            steps = memory.steps(Loader(range(10)))
            assert (len(steps), steps.dataset, steps[3]) == (10, "data", 3)
            assert list(steps) == list(range(10))
    assert memory.report.steps == {"warmup": 1, "measured": 19}
    assert [step for step, _names in trackers.logged] == [4, 8, 12, 16, 20]
    assert all("memory/rss" in names for _step, names in trackers.logged)


def test_an_epochs_end_is_looked_at(monkeypatch):
    ends = []
    monkeypatch.setattr(leakprobe.Probe, "_look_at_an_epochs_end", lambda probe: ends.append(probe._steps))
    with LeakprobeCallback(Trackers(), show=False) as memory:
        for _ in range(3):
            assert next(iter(memory.steps(iter([1, 2])))) == 1
            list(memory.steps([1, 2]))
    assert ends == [2, 4, 6]


def test_a_loop_that_is_marked_twice_is_noted():
    with LeakprobeCallback(Trackers(), show=False) as memory:
        for _ in memory.steps(range(30)):
            memory.step()
    assert any("marked twice" in note.text for note in memory.report.notes)


def test_outside_of_the_watch_the_loop_goes_on_unmarked():
    memory = LeakprobeCallback(Trackers(), show=False)
    assert list(memory.steps([1, 2])) == [1, 2] and memory.report is None
    with pytest.raises(leakprobe.LeakprobeError):
        memory.steps(None)
