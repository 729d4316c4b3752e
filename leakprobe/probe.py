"""The front door: ``watch()`` and the Probe it gives, ``start()`` and ``stop()``."""

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from leakprobe import _core, switch
from leakprobe.checks import checked_bool, checked_int
from leakprobe.errors import LeakprobeError
from leakprobe.evidence.phases import Phases
from leakprobe.model import bounds
from leakprobe.model.frames import PACKAGE_DIR
from leakprobe.model.media import ALL, BUFFERS
from leakprobe.model.report import Report
from leakprobe.model.thresholds import HALF
from leakprobe.model.units import parse_share
from leakprobe.record import recorder_class
from leakprobe.record.facts import describe_run, library_versions
from leakprobe.torch.devices import Devices
from leakprobe.torch.ranks import path_of_rank
from leakprobe.torch.role_readings import RoleReadings
from leakprobe.torch.workers import Workers
from leakprobe.watch import conclusions
from leakprobe.watch.arguments import checked_limit, checked_media, checked_record
from leakprobe.watch.callbacks import Callback, Callbacks
from leakprobe.watch.decorator import Wrapping
from leakprobe.watch.engine import Engine, Settings
from leakprobe.watch.given import Given
from leakprobe.watch.iteration import Steps, steps_over
from leakprobe.watch.marking import Marking
from leakprobe.watch.mishaps import Mishap
from leakprobe.watch.pressure import Pressure
from leakprobe.watch.readings import Readings
from leakprobe.watch.schedule import Following, Moment
from leakprobe.watch.worker import Pairs, WorkerInit

if TYPE_CHECKING:
    from leakprobe.record.writer import Recorder

Item = TypeVar("Item")


def watch(
    warmup: int = bounds.WARMUP,
    *,
    media: str | Iterable[str] = ALL,
    stack_depth: int = bounds.STACK_FRAMES,
    record: str | os.PathLike[str] | None = None,
    workers: bool = True,
    limit: str | float = "256 B/step",
    on_growth: Callback | None = None,
    on_cycle: Callback | None = None,
    memory_limit: str | float | None = None,
) -> "Probe":
    """A context manager that watches the loop inside it for memory that grows; ``async with`` does too.

    Where the program marks no step, a step is an optimizer step, else a batch of a DataLoader.

    As a decorator, ``@leakprobe.watch()``, it watches each call of a function or coroutine function, and what
    a generator function gives; a call inside of a watch is part of that.  The decorated function's attribute
    ``report`` is the Report of the last watched call, and growth is a warning of the logger "leakprobe".

    warmup: steps at the start that are not judged (0 or more).
    media: the kinds of memory to watch, by their names in ``leakprobe.ALL``.
    stack_depth: frames kept of an allocation's stack, 1 to 64; for a line that grows, all of them.
    limit: what a finding must exceed, as "256 B/step"; of descriptors one in 20 steps is enough.
    on_growth: a function, called once with the report, at the first mark where the verdict is "growing".
    on_cycle: called once with the report, at the first mark where a reference cycle is found.
        Both run after the mark, in the thread that marks, and may call stop().  What they raise does not
        reach the loop: it is a warning of the logger "leakprobe" and a note in the report; KeyboardInterrupt
        and SystemExit pass through.
    memory_limit: "90 %" of each CUDA device in use and of the host's memory, or a size such as "8 GiB".  At
        the first mark above it the report says who holds the memory and what a gc.collect() would free, and
        on_growth is called.  The same is reported, without any limit, when CUDA's allocator runs out of
        memory.
    record: path of a recording, written as the loop goes; what was recorded survives the process, also
        SIGKILL. In a job of several ranks (torchrun) it is a folder, in which each rank has its file.
    workers: follow DataLoader workers too (where "worker" is among the media).

    With ``LEAKPROBE=0`` in the environment the probe does nothing and its report is inconclusive.
    Errors: LeakprobeError with code "bad_argument"; on entering, "already_active" inside another watch but
    that of ``leakprobe run``, "unwritable_file", "recording_in_use" or "foreign_file" for a record's path.
    """
    if callable(warmup):
        raise LeakprobeError("the decorator must be called: write @leakprobe.watch()", "bad_argument")
    return Probe(
        warmup=checked_int("warmup", warmup, 0, bounds.LONGEST_WARMUP),
        media=checked_media(media),
        stack_depth=checked_int("stack_depth", stack_depth, 1, bounds.MOST_STACK_FRAMES),
        limit=checked_limit(limit),
        record=checked_record(record),
        workers=checked_bool("workers", workers),
        on_growth=on_growth,
        on_cycle=on_cycle,
        memory_limit=parse_share(memory_limit),
    )


class Probe(_core.Watch, Wrapping):
    """A watch over a loop: mark its steps, then ask for the report.  Its marks may come from any thread."""

    #: What the base class (src/python/watch/watch.h) takes one by one and gives back in reverse, as
    #: (take, give back): names of methods, and functions of C, which need no memory to be called.
    RESOURCES: Pairs = (
        ("_begin_recording", "_end_recording"),
        ("_install_hooks", _core.stop),
        ("_install_slots", _core.native_uninstall),
        ("_begin_readings", "_end_readings"),  # the last readings ask how the slots serve
        ("_install_workers", "_remove_workers"),
    )

    def __init__(
        self,
        *,
        warmup: int,
        media: frozenset[str],
        stack_depth: int,
        limit: float,
        record: str | None = None,
        workers: bool = True,
        on_growth: Callback | None = None,
        on_cycle: Callback | None = None,
        memory_limit: float | None = None,
    ) -> None:
        self._options = options = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        self._record = record
        self._recorder: Recorder | None = None
        self._run: dict[str, Any] = {}
        self._warmup, self._media, self._stack_depth, self._limit = warmup, media, stack_depth, limit
        self._enabled = switch.disabled_line() is None
        self._pid = self._steps = self._epoch = self._heap_bytes = 0  # heap: CPython's, before the hooks
        self._readings: Readings | None = None
        self._devices = Devices(warmup, limit)
        self._pressure = Pressure(memory_limit, self._devices)
        given: dict[str, Any] = {n: options[n] for n in ("warmup", "media", "stack_depth", "limit")}
        self._workers = Workers(WorkerInit, **given) if workers and "worker" in media else None
        self._marking, self._phases = Marking(self), Phases()
        self._roles = RoleReadings(media)
        self._status: conclusions.Status | None = None  # of the hooks, once they are gone
        self._following = Following(warmup)
        self._next_memory = bounds.MEMORY_STEPS  # the measured steps at which pages and devices are read next
        self._owes_memory = self._owes_report = False  # since the last look, or news of workers
        self._given, self._mishap = Given(), Mishap()
        self._callbacks = Callbacks(on_growth, on_cycle)

    def __repr__(self) -> str:
        return f"<leakprobe watch: {self._state.lower()}, step {self._steps}>"

    # ---- entering: see the base class ----

    def _prepare(self) -> Pairs | None:
        """What is to be taken, or None with LEAKPROBE=0; all imports are done here, since their locks may be
        this thread's.
        """
        if not self._enabled:
            self._forget()
            return None
        self._pid = os.getpid()
        self._run = describe_run()
        if self._record is not None:
            recorder_class()
        return self.RESOURCES

    def _begin_recording(self) -> None:
        if self._record is not None:
            settings = {"warmup": self._warmup, "limit": self._limit, "media": sorted(self._media)}
            self._recorder = recorder_class()(path_of_rank(self._record), self._run, settings)

    def _install_hooks(self) -> None:
        self._heap_bytes = _core.python_bytes()
        _core.start(self._stack_depth, PACKAGE_DIR)

    def _begin_readings(self) -> None:
        settings = Settings(self._warmup, self._media, self._limit)
        self._readings = Readings.begin(settings, self._heap_bytes)

    def _install_slots(self) -> None:
        _core.native_install(sorted(self._media & BUFFERS))

    def _install_workers(self) -> None:
        self._roles.install()
        self._marking.install()
        if self._workers is not None:
            if self._recorder is not None:
                self._workers.record_beside(self._recorder.path, self._run)
            self._workers.install()

    # ---- leaving: each of these may be called again if it failed ----

    def _last_look(self, kind: type[BaseException] | None) -> None:
        """In the thread that leaves, while all is there; ``kind``: the type of the exception that left the
        block, or None.
        """
        if self._readings is None or os.getpid() != self._pid:
            return
        try:
            self._look_after(kind)
            if self._steps:
                self._readings.engine.look_at_the_end(self._steps)
        except Exception as error:
            self._failed(error)

    def _let_go(self) -> None:
        """What belongs to the thread that leaves."""
        if self._readings is not None:
            self._readings.engine.let_go()

    def _remove_workers(self) -> None:
        self._marking.remove()
        self._roles.remove()
        if self._workers is not None:
            self._workers.remove()

    def _end_readings(self) -> None:
        try:
            if self._readings is not None:
                self._end_timeline(self._readings)
                self._settle(self._readings)
                self._roles.settle(self._steps, self._warmup)
        except Exception as error:
            self._failed(error)
        self._status = conclusions.read_status()

    def _end_recording(self) -> None:
        self._forget()
        if self._recorder is None:
            return
        if not self._has_begun:
            self._recorder.discard()
            return
        report = None
        try:
            report = self._own_report()
        except Exception as error:
            self._failed(error)
        self._recorder.close(report)

    def _look_after(self, kind: type[BaseException] | None) -> None:
        """What is alive after the allocator gave up; the frames of an exception still hold it."""
        try:
            self._pressure.look_after(self._steps, kind)
        except Exception as error:
            self._failed(error)

    # ---- marking ----

    def _mark(self) -> bool:
        """The end of a step: True if the program has something to hear."""
        readings = self._readings
        if readings is None:
            return False
        if self._marking.give_way():
            readings = self._begin_anew(readings)
        engine = readings.engine
        self._end_lines(engine)
        self._steps = _core.mark()
        try:
            self._read_mark(readings)
            engine.native_lines.begin()
        except Exception as error:  # the loop that is watched goes on, whatever goes wrong in here
            self._failed(error)
        except BaseException as error:
            self._mishap.cut(self._steps, error)
            raise
        return self._callbacks.are_due()

    def _begin_anew(self, readings: Readings) -> Readings:
        """The steps so far were none of the program's own: they are warm-up."""
        readings.engine.let_go()
        self._warmup += self._steps
        self._following, self._phases = Following(self._warmup), Phases()
        self._begin_readings()
        return self._readings or readings

    def _end_lines(self, engine: Engine) -> None:
        try:
            engine.native_lines.end()
        except Exception as error:
            self._mishap.failed(self._steps + 1, error)

    def _read_mark(self, readings: Readings) -> None:
        news: bool | str = False
        if self._roles.is_ready() or self._is_to_follow():
            news = self._follow_mark(readings)
        elif readings.engine.is_scanning():  # who survives is known the better the sooner it ends
            looked = news = readings.engine.visit(self._steps)
            self._note_look(readings, looked, False)
        else:
            readings.engine.autograd_steps.mark(self._steps)
        if news:
            self._callbacks.choose(self._whole_report, at_once=news == "at once")

    def _is_to_follow(self) -> bool:
        always = self._recorder is not None
        return self._following.is_due(self._steps, always) or self._pressure.is_over_limit()

    def _follow_mark(self, readings: Readings) -> bool | str:
        """A mark but for the program's callbacks: True, or "at once", if these may have something to hear."""
        engine, timeline = readings.engine, readings.timeline
        _core.native_rescan()
        timeline.add(self._steps, self._epoch, engine.heap_bytes())
        timeline.add_to_last(self._roles.mark(self._steps))
        news = self._visit_workers(engine)
        reason = self._pressure.reason_at(timeline.memory_row(-1)["rss"])
        looked = engine.visit(self._steps, Moment.END if reason is not None else Moment.IN_LOOP)
        self._note_look(readings, looked, news or reason is not None)
        if reason is not None:  # nothing is put off while memory runs out
            self._add_memory(readings)
            self._pressure.tell(self._steps, *reason)
        if self._recorder is not None:
            to_record = self._news_to_record(looked and reason is None)
            self._recorder.mark(timeline.row(-1), timeline.memory_row(-1), to_record)
        return "at once" if reason is not None else looked or news

    def _failed(self, error: Exception) -> None:
        self._mishap.failed(self._steps, error)

    def _visit_workers(self, engine: Engine) -> bool:
        """True if there is news of workers."""
        if self._workers is None:
            return False
        engine.resources.flight.note(self._workers.in_flight())
        engine.resources.children.watched = self._workers.pids
        return self._workers.visit(self._steps)

    def _note_look(self, readings: Readings, looked: bool, news: bool) -> None:
        """What follows news is spread over the marks after it, so that no step waits for all of it."""
        self._owes_report |= looked or news
        if self._owes_memory and not looked:
            self._add_memory(readings)
        measured = self._steps - self._warmup
        if measured >= self._next_memory:
            self._next_memory = measured + max(bounds.MEMORY_STEPS, int(HALF * measured))
            self._owes_memory = True

    def _add_memory(self, readings: Readings) -> None:
        """The process's private and shared memory, in the row of the last mark."""
        self._owes_memory = False
        row = readings.engine.resources.memory_row() | self._devices.look(self._steps)
        readings.timeline.add_to_last(row)

    def _end_timeline(self, readings: Readings) -> None:
        """A row for the last mark too, if it was not followed."""
        if os.getpid() == self._pid and self._steps and readings.timeline.last_step() != self._steps:
            readings.timeline.add(self._steps, self._epoch, readings.engine.heap_bytes())

    def _settle(self, readings: Readings) -> None:
        """Between marks: what the last look still owes the row of the last mark, which may be in the
        recording already.
        """
        if not self._owes_memory or os.getpid() != self._pid:
            return
        self._add_memory(readings)
        if self._recorder is not None:
            self._recorder.mark(readings.timeline.row(-1), readings.timeline.memory_row(-1))

    def _news_to_record(self, looked: bool | str) -> Report | None:
        """The report, at the first mark without a look of its own after there was news; else None."""
        if looked or self._owes_memory or not self._owes_report:
            return None
        self._owes_report = False
        with _core.QuietCollector():
            return self._own_report()

    def _look_at_the_end(self) -> None:
        """The loop is over: what its last steps left is looked at while it is alive."""
        self._look_now(lambda engine: engine.visit(self._steps, Moment.END))

    def _look_at_an_epochs_end(self) -> None:
        """The iterable is exhausted; there may be another."""
        self._look_now(lambda engine: engine.look_at_an_epochs_end(self._steps))

    def _look_now(self, visit: Callable[[Engine], bool]) -> None:
        if self.is_active() and self._steps and self._in_turn(self._looks_now, visit):
            self._call_back()

    def _looks_now(self, visit: Callable[[Engine], bool]) -> bool:
        if not self.is_active() or self._readings is None:
            return False
        try:
            if visit(self._readings.engine):
                self._owes_memory = self._owes_report = True
                self._settle(self._readings)
                self._callbacks.choose(self._whole_report)
        except Exception as error:
            self._failed(error)
        return self._callbacks.are_due()

    def steps(self, iterable: Iterable[Item]) -> Steps[Item]:
        """The items of ``iterable``, with a step marked each time the next one is asked for; ``len()``, items
        by index and attributes are kept, and so is ``next()`` for an iterator.
        """
        return steps_over(self, iterable)

    def epoch(self) -> None:
        """Mark the beginning of an epoch."""
        self._epoch += 1
        if self._readings is not None:
            self._readings.engine.epoch(self._steps)

    def _step_of_torch(self, batches: int | None) -> None:
        """The step that ends is one of an optimizer (None), or so many batches of an evaluation."""
        self._phases.add(self._steps, batches)

    def progress(self) -> dict[str, Any] | None:
        """{"step", "rss", "media", "looked", "suspects", "bytes_per_step"} as of the last mark, or None
        before the first.

        media: live bytes by medium; looked: the step of the last check, or None; suspects: groups that grew
            then, by bytes_per_step in all.
        """
        return self._in_turn(self._progress)

    def _progress(self) -> dict[str, Any] | None:
        if self._readings is None or not self._readings.timeline:
            return None
        look, timeline = self._readings.engine.last_look, self._readings.timeline
        suspects = look.suspects if look else ()
        return {
            "step": self._steps,
            "rss": timeline.memory_row(-1)["rss"],
            "media": {name: m["live_bytes"] for name, m in timeline.last_media().items()},
            "looked": look.step if look else None,
            "suspects": len(suspects),
            "bytes_per_step": sum(s.rate for s in suspects),
        }

    def report(self, *, ranks: bool = False, timeout: float = bounds.RANKS_TIMEOUT_S) -> Report:
        """What was found, as of the last mark; works during the watch and after it.

        ranks: gather the reports of all ranks of a torch.distributed job through its store: each rank calls
            this, and one that does not within ``timeout`` seconds is named in a note.  No collective is used.
        """
        report = self._in_turn(self._report_as_of_now)
        if not ranks:
            return report
        from leakprobe.watch.gathering import gather  # it needs sqlite3, which few watches do

        return gather(report, timeout)

    def _report_as_of_now(self) -> Report:
        if self._readings is not None and self.is_active() and self._steps and os.getpid() == self._pid:
            try:
                self._readings.engine.look_at_the_end(self._steps)
            except Exception as error:
                self._failed(error)
        return self._whole_report()

    def _whole_report(self) -> Report:
        report = self._own_report()
        if self._readings is not None:
            self._settle(self._readings)
            report.timeline = self._readings.timeline.rows()
            report.memory = self._readings.timeline.memory()
        return report

    def _own_report(self) -> Report:
        """Without what each mark recorded."""
        status, readings = self._status, self._readings
        if status is None and readings is not None:
            status = conclusions.read_status()
        report = conclusions.conclude(
            engine=readings.engine if readings is not None else None,
            timeline=readings.timeline if readings is not None else None,
            status=status,
            warmup=self._warmup,
            steps=self._steps,
            limit=self._limit,
            workers=self._workers,
            phases=self._phases,
        )
        report.run, report.peaks = {**self._run, **library_versions()}, self._roles.peaks()
        noting = (self._pressure, self._mishap, self._callbacks, self._roles, self._marking)
        report.notes += [*self._devices.notes(), *(note for one in noting for note in one.notes)]
        if self._recorder is not None:
            report.notes += self._recorder.notes()
        report.notes += self._given.update(report)
        return report

    def _call_back(self) -> None:
        self._callbacks.call(self._steps)


def start(warmup: int = bounds.WARMUP, **options: Any) -> Probe:
    """Begin a watch without a ``with`` block; ``stop()`` ends it.  Options are those of watch().

    Errors: LeakprobeError "already_active" if a watch is on.
    """
    return _core.start_watch(watch(warmup, **options))


#: End the watch that is on, from any thread, and give its probe, or None if there was none.  It is a function
#: of C, so that no signal comes before its first instruction.
stop = _core.stop_watch


def is_active() -> bool:
    """True while a watch is on in this process."""
    return _core.active_watch() is not None
