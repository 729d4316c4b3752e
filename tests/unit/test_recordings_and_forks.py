"""No fork comes in the middle of a commit, whichever thread forks."""

import threading

import pytest

from leakprobe.record import live


class Writer:
    """As a Recorder: ``is_asked`` is set by the second that wants to hold it."""

    def __init__(self):
        self.lock, self.is_asked, self.was_in_child = threading.Lock(), threading.Event(), False

    def hold(self):
        if not self.lock.acquire(blocking=False):
            self.is_asked.set()
            self.lock.acquire()

    def release(self):
        self.lock.release()

    def after_fork_in_child(self):
        self.was_in_child = True

    def close(self, *, ended):
        pass


@pytest.fixture
def writer(monkeypatch):
    monkeypatch.setattr(live, "_writers", [])
    monkeypatch.setattr(live, "_held", {})
    made = Writer()
    live.add(made)
    return made


def fork_in_parent():
    live._before_fork()
    live._after_fork_in_parent()


def test_two_threads_that_fork_at_once_leave_no_lock_behind(writer):
    live._before_fork()
    other = threading.Thread(target=fork_in_parent)
    other.start()
    assert writer.is_asked.wait(60)
    live._after_fork_in_parent()
    other.join(60)
    assert not other.is_alive() and not writer.lock.locked()


def test_a_child_of_any_thread_forgets_what_its_parent_writes(writer):
    live._before_fork()
    live._after_fork_in_child()
    assert writer.was_in_child and not live._writers and not live._held
