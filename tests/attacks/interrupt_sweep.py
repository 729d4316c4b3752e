"""Signals at every moment of entering, marking and leaving a watch; prints one JSON object of what came out.

    python tests/attacks/interrupt_sweep.py --how timer --signal SIGINT --trials 2000 --record /tmp/run.leak
    --torch

timer: the signal comes after a delay that grows from trial to trial, up to a little more than a trial takes
    that nothing disturbs.
instruction: it comes at the n-th instruction of Python that runs in the main thread, n growing likewise.
raise: instead of a signal, an exception is raised at that instruction, and at each of the ``--more`` that
    follow.
"""

import _thread
import argparse
import faulthandler
import gc
import json
import os
import signal
import sys
import threading
import time
import traceback

import leakprobe
from leakprobe import _core

STEPS = 4
NEVER = 10**9


class Raised(BaseException):
    """What the handler of SIGALRM raises."""


def start_no_thread(*_ignored):
    raise RuntimeError


def raise_it(*_ignored):
    raise Raised


class Instructions:
    """Calls ``act`` at the n-th instruction that runs in this thread, and at ``more`` after it."""

    def __init__(self, n, act, more=0):
        self.left, self.more, self.act = int(n) + 1, more, act

    def __enter__(self):
        sys._getframe(1).f_trace_opcodes = True
        sys._getframe(1).f_trace = self.on_event
        sys.settrace(self.on_event)

    def __exit__(self, *exc_info):
        sys.settrace(None)

    def on_event(self, frame, event, arg):
        frame.f_trace_opcodes = True
        if event == "opcode" and frame.f_code.co_filename != __file__:
            self.left -= 1
            if -self.more <= self.left <= 0:
                self.act()
        return self.on_event


class Stopwatch:
    def __enter__(self):
        self.took = -time.perf_counter()

    def __exit__(self, *exc_info):
        self.took += time.perf_counter()


class Timer:
    """Sends the signal after ``delay`` seconds: SIGALRM by the kernel's timer, another one by a thread."""

    def __init__(self, delay, number):
        self.delay, self.number = delay, number

    def __enter__(self):
        if self.number == signal.SIGALRM:
            signal.setitimer(signal.ITIMER_REAL, max(self.delay, 1e-6))
            return
        ready = threading.Lock()
        ready.acquire()
        self.thread = threading.Thread(target=self.send, args=(ready,))
        self.thread.start()
        with ready:  # the delay counts from here
            pass

    def send(self, ready):
        ready.release()
        time.sleep(self.delay)
        os.kill(os.getpid(), self.number)

    def __exit__(self, *exc_info):
        if self.number == signal.SIGALRM:
            signal.setitimer(signal.ITIMER_REAL, 0)
        else:
            self.thread.join()


def held_by_process():
    """What a watch must give back."""
    held = {
        "descriptors": len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0,
        "collector": gc.isenabled(),
        "finders": len(sys.meta_path),
        "tracers": (sys.gettrace(), threading.gettrace()),
        "threads": threading.active_count(),
    }
    dataloader = sys.modules.get("torch.utils.data.dataloader")
    if dataloader is not None:
        cls = dataloader._MultiProcessingDataLoaderIter
        held["torch"] = cls.__init__, cls.__dict__.get("__init_subclass__")
    return held


class Sweep:
    def __init__(self, options):
        self.options = options
        self.out = dict.fromkeys(
            ("trials", "interrupted", "left_on", "locked", "not_given_back", "mark_ended_watch", "unusable"),
            0,
        )
        self.errors, self.where = {}, {}
        self.whole = NEVER  # seconds or instructions of a trial that nothing disturbs

    def watch(self):
        return leakprobe.watch(record=self.options.record)

    def disturbance(self, share):
        """One that comes when this share of an undisturbed trial is over."""
        number = getattr(signal, self.options.signal)
        if self.options.how == "timer":
            return Timer(share * self.whole, number)
        if self.options.how == "instruction":
            return Instructions(share * self.whole, lambda: signal.raise_signal(number))
        return Instructions(share * self.whole, raise_it, self.options.more)

    def enter_and_leave(self, disturbance):
        """A whole watch under the disturbance; it must be off after it."""
        try:
            with disturbance, self.watch() as probe:
                for _ in range(STEPS):
                    probe.step()
        except (KeyboardInterrupt, Raised) as error:
            self.note_interrupt(error)
        except leakprobe.LeakprobeError as error:
            self.note(error)

    def mark(self, disturbance):
        """Marks under the disturbance; the watch must be on after them, and be of use."""
        try:
            with self.watch() as probe:
                try:
                    with disturbance:
                        for _ in range(STEPS):
                            probe.step()
                except (KeyboardInterrupt, Raised) as error:
                    self.note_interrupt(error)
                self.out["mark_ended_watch"] += not leakprobe.is_active()
                for _ in range(STEPS):
                    probe.step()
            steps = [row["step"] for row in probe.report().timeline]
            self.out["unusable"] += steps != sorted(set(steps)) or len(steps) < STEPS
        except leakprobe.LeakprobeError as error:
            self.note(error)

    def note_interrupt(self, error):
        """The function of leakprobe that was cut short, else "the program"."""
        self.out["interrupted"] += 1
        names = ["the program"]
        for frame, _line in traceback.walk_tb(error.__traceback__):
            if os.path.dirname(leakprobe.__file__) in frame.f_code.co_filename:
                names.append(frame.f_code.co_name)
        self.where[names[-1]] = self.where.get(names[-1], 0) + 1

    def note(self, error):
        if error.code in ("recording_in_use", "unwritable_file"):
            self.out["locked"] += 1
        self.errors[error.code] = self.errors.get(error.code, 0) + 1

    def check(self, before):
        on = leakprobe.is_active() or _core.is_active()
        self.out["left_on"] += on
        if on:
            leakprobe.stop()
        now = held_by_process()
        if now != before:
            self.out["not_given_back"] += 1
            self.errors.update(
                {key: repr((before[key], now[key]))[:200] for key in now if now[key] != before[key]}
            )

    def measure(self, trial):
        """How long what is disturbed takes at best."""
        if self.options.how == "timer":
            watch = Stopwatch()
            trial(watch)
            self.whole = min(self.whole, watch.took)
        else:
            counter = Instructions(NEVER, raise_it)
            trial(counter)
            self.whole = min(self.whole, NEVER - counter.left)

    def run(self, trial):
        for _ in range(5):  # what only the first watches do: imports, tables
            self.measure(trial)
        before = held_by_process()
        for n in range(self.options.trials):
            trial(self.disturbance(1.1 * n / self.options.trials))
            self.out["trials"] += 1
            self.check(before)


def main():
    faulthandler.dump_traceback_later(550, exit=True)  # stuck
    parser = argparse.ArgumentParser()
    parser.add_argument("--how", choices=("timer", "instruction", "raise"), default="timer")
    parser.add_argument("--signal", choices=("SIGINT", "SIGALRM"), default="SIGINT")
    parser.add_argument("--what", choices=("enter_and_leave", "mark"), default="enter_and_leave")
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--more", type=int, default=0)
    parser.add_argument("--record")
    parser.add_argument("--torch", action="store_true")
    parser.add_argument("--inline", action="store_true")
    options = parser.parse_args()
    if options.inline:  # as under gevent: no thread of its own protects what is taken and given back
        _thread.start_new_thread = start_no_thread
    if options.torch:
        import torch.utils.data  # noqa: F401
    signal.signal(signal.SIGALRM, raise_it)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's job in the background ignores it
    sweep = Sweep(options)
    sweep.run(getattr(sweep, options.what))
    print(json.dumps({**sweep.out, "errors": sweep.errors, "whole": sweep.whole, "where": sweep.where}))


if __name__ == "__main__":
    main()
