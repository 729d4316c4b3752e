"""The front door: ``watch()`` and the Probe it gives, ``start()`` and ``stop()``."""

import os
import threading
import time

from leakprobe import _core, switch
from leakprobe.analysis import conclusions
from leakprobe.analysis.budget import quiet_collector
from leakprobe.analysis.devices import Devices
from leakprobe.analysis.pressure import Pressure
from leakprobe.analysis.suspects import Suspects
from leakprobe.analysis.timeline import Timeline
from leakprobe.errors import LeakprobeError
from leakprobe.model.finding import Note
from leakprobe.model.frames import PACKAGE_DIR
from leakprobe.model.units import parse_rate, parse_share
from leakprobe.record.facts import describe_run, library_versions
from leakprobe.torch.ranks import path_of_rank
from leakprobe.torch.workers import Workers
from leakprobe.watch.gathering import gather

#: Marks are followed one by one for twice so many measured steps, then ever fewer of them, but one in so many seconds at least:
#: what one reads costs half a millisecond in a loop whose steps push it out of the processor's caches.
FOLLOWED_MARKS, FOLLOW_S = 12, 0.2
#: Every medium that ``watch(media=...)`` knows.
ALL = frozenset(
    {"python", "numpy", "cpu", "shared", "pinned", "cuda", "native", "worker", "fd", "thread", "process"}
)

_lock = threading.Lock()
_active: "Probe | None" = None


def watch(
    warmup: int = 5,
    *,
    media=ALL,
    stack_depth: int = 16,
    record=None,
    workers: bool = True,
    limit: str | int = "256 B/step",
    on_growth=None,
    on_cycle=None,
    memory_limit=None,
) -> "Probe":
    """A context manager that watches the loop inside it for memory that grows.

    warmup: steps at the start that are not judged (0 or more).
    media: names of the media to watch, of ``leakprobe.ALL``.
    stack_depth: frames kept of an allocation's stack, 1 to 64.
    limit: what a finding must exceed, such as "256 B/step" or a number of bytes per step.
    on_growth: called once with the report, at the first mark where the verdict is "growing".
    on_cycle: called once with the report, at the first mark where a reference cycle is found.
    memory_limit: "90 %" of each CUDA device in use and of the host's memory, or a size such as "8 GiB".  At the first
        mark above it the report says who holds the memory and what a gc.collect() would free, and on_growth is called.
        The same is told, without any limit, when CUDA's allocator reports that it is out of memory.
    record: path of a recording, written as the loop goes; what was recorded survives the process, also SIGKILL.
        In a job of several ranks (torchrun) it is a folder, in which each rank has its file.
    workers: follow DataLoader workers too (where "worker" is among the media).

    With ``LEAKPROBE=0`` in the environment the probe does nothing and its report is inconclusive.
    Errors: LeakprobeError with code "bad_argument"; on entering, "already_active" inside another watch, and
    "unwritable_file", "recording_in_use" or "foreign_file" for a path that can't be recorded to.
    """
    return Probe(
        warmup=checked_int("warmup", warmup, 0, 10**9),
        media=checked_media(media),
        stack_depth=checked_int("stack_depth", stack_depth, 1, 64),
        limit=checked_limit(limit),
        record=checked_path("record", record),
        workers=workers,
        on_growth=on_growth,
        on_cycle=on_cycle,
        memory_limit=parse_share(memory_limit),
    )


class Probe:
    """A watch over a loop: mark its steps, then ask for the report."""

    def __init__(
        self,
        *,
        warmup,
        media,
        stack_depth,
        limit,
        record=None,
        workers=True,
        on_growth=None,
        on_cycle=None,
        memory_limit=None,
    ):
        self._record, self._recorder = record, None
        self._run: dict = {}
        self._warmup, self._media, self._stack_depth, self._limit = warmup, media, stack_depth, limit
        self._on_growth, self._on_cycle = on_growth, on_cycle
        self._enabled = switch.disabled_line() is None
        self._running = False
        self._finished = False
        self._steps = 0
        self._epoch = 0
        self._suspects = self._timeline = None
        self._pressure, self._devices = Pressure(memory_limit), Devices(warmup, limit)
        self._workers = self._worker_options(workers)
        self._status: dict = {}
        self._next_followed, self._followed_at = 0, 0.0
        self._owes_memory = self._owes_report = False  # since the last look, or news of workers
        self._mishap: Note | None = None  # the first failure of the probe itself

    def _worker_options(self, wanted: bool):
        if not wanted or "worker" not in self._media:
            return None
        return Workers(
            warmup=self._warmup, media=self._media, stack_depth=self._stack_depth, limit=self._limit
        )

    def __enter__(self) -> "Probe":
        global _active
        if self._finished:
            raise LeakprobeError(
                "this probe has been used: call leakprobe.watch() for a new one", "used_probe"
            )
        if not self._enabled:
            return self
        with _lock:
            if _active is not None:
                raise LeakprobeError(
                    "a watch is active already: one process can have one at a time; leave the first `with` block, "
                    "or call leakprobe.stop()",
                    "already_active",
                )
            heap_bytes = _core.python_bytes()
            _core.start(self._stack_depth, PACKAGE_DIR)
            _active = self
        self._pid = os.getpid()
        self._running = True
        try:
            self._run = describe_run()
            self._recorder = self._begin_recording()
            self._timeline = Timeline()
            self._suspects = Suspects(self._warmup, self._media, self._limit, heap_bytes)
            self._suspects.resources.other_columns = self._columns
            _core.native_install(sorted(self._media & {"numpy", "cpu", "shared", "pinned", "cuda"}))
            if self._workers is not None:
                if self._recorder is not None:
                    self._workers.record_beside(self._recorder.path, self._run)
                self._workers.install()
        except BaseException:
            self._stop()
            raise
        return self

    def _columns(self) -> list:
        """The arrays in which marks are kept."""
        return [*self._timeline.columns(), *self._suspects.autograd_steps.columns()]

    def _begin_recording(self):
        if self._record is None:
            return None
        try:
            from leakprobe.recording import Recorder
        except ImportError as error:
            raise LeakprobeError(
                f"recordings are not available in this Python: {error}", "not_available"
            ) from error
        settings = {"warmup": self._warmup, "limit": self._limit, "media": sorted(self._media)}
        return Recorder(path_of_rank(self._record), self._run, settings)

    def __exit__(self, kind=None, error=None, traceback=None) -> None:
        try:
            if self._running and kind is not None and os.getpid() == self._pid:
                self._look_after(kind)
        finally:  # the watch ends, whatever a look met when there is no memory
            self._stop()

    def _look_after(self, kind) -> None:
        """What was alive when the allocator gave up, while the frames of the error still hold it."""
        reason = self._pressure.out_of_memory()
        if reason is None and kind.__name__ == "OutOfMemoryError":
            reason = "", "out of memory, by the exception that left the watch"
        if reason is not None:
            if self._steps:
                self._suspects.visit(self._steps, end=True)
            with quiet_collector():
                self._pressure.tell(self._steps, *reason)

    def _stop(self) -> None:
        global _active
        if not self._running:
            self._finished = True
            return
        self._running = False
        try:
            self._leave()
        except Exception as error:
            self._note_mishap(error)
        finally:
            _core.native_uninstall()
            _core.stop()
            with _lock:
                _active = None
            self._finished = True
        if self._recorder is not None:
            self._recorder.close(self.report())

    def _leave(self) -> None:
        """All that the end of a watch does before the hooks go."""
        try:
            if self._suspects is not None:
                self._suspects.native_lines.end()
                self._end_timeline()
                self._settle()
            if self._workers is not None:
                self._workers.remove()
        finally:
            self._status = conclusions.read_status()

    def is_active(self) -> bool:
        """True between entering and leaving the watch."""
        return self._running

    def step(self) -> None:
        """Mark the end of a step.

        Errors: LeakprobeError "not_active" outside of a watch.
        """
        if not self._running:
            if not self._enabled:
                return
            raise LeakprobeError(
                "step() outside of a watch: call it inside `with leakprobe.watch() as probe:`", "not_active"
            )
        self._mark()

    def _mark(self) -> None:
        if os.getpid() != self._pid:
            return
        if self._suspects is not None:
            self._suspects.native_lines.end()
        self._steps = _core.mark()
        news = False
        try:
            if self._is_to_follow():
                news = self._follow_mark()
            else:
                self._suspects.autograd_steps.mark(self._steps)
        except Exception as error:  # the loop that is watched goes on, whatever goes wrong in here
            self._note_mishap(error)
        if news:
            self._tell(at_once=news == "at once")
        self._suspects.native_lines.begin()

    def _is_to_follow(self) -> bool:
        """False at most marks of a long loop of short steps: what a mark reads costs more there than it tells."""
        now = time.monotonic()
        if (
            self._steps < self._next_followed
            and now < self._followed_at + FOLLOW_S
            and self._recorder is None
            and not self._pressure.has_limit()
        ):
            return False
        self._next_followed, self._followed_at = (
            self._steps + max(1, (self._steps - self._warmup) // FOLLOWED_MARKS),
            now,
        )
        return True

    def _follow_mark(self) -> bool | str:
        """All that a mark does beside the callbacks of the program: True, or "at once", if these may have something to hear."""
        _core.native_rescan()
        self._timeline.add(self._steps, self._epoch, self._suspects.heap_bytes())
        news = self._visit_workers()
        reason = self._pressure.reason_at(self._timeline.memory_row(-1)["rss"])
        looked = self._suspects.visit(self._steps, end=reason is not None)
        self._note_look(looked, news or reason is not None)
        if reason is not None:  # nothing is put off while memory runs out
            self._add_memory()
            with quiet_collector():
                self._pressure.tell(self._steps, *reason)
        if self._recorder is not None:
            self._recorder.mark(
                self._timeline.row(-1),
                self._timeline.memory_row(-1),
                self._news_to_record(looked and reason is None),
            )
        return "at once" if reason is not None else looked or news

    def _note_mishap(self, error: Exception) -> None:
        """Remember the first failure of the probe itself: its report says so."""
        if self._mishap is None:
            what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            self._mishap = Note(
                kind="gap",
                text=f"leakprobe failed at the mark of step {self._steps} ({what}): some of what it tells may lack that step",
                medium=None,
            )

    def _visit_workers(self) -> bool:
        """True if there is news of workers."""
        if self._workers is None:
            return False
        self._suspects.resources.in_flight = max(
            self._suspects.resources.in_flight, self._workers.in_flight()
        )
        return self._workers.visit(self._steps)

    def _note_look(self, looked: bool, news: bool) -> None:
        """What follows a look is spread over the marks after it, so that no step waits for all of it."""
        self._owes_report |= looked or news
        if self._owes_memory and not looked:
            self._add_memory()
        self._owes_memory |= looked

    def _add_memory(self) -> None:
        """The process's private and shared memory, in the row of the last mark."""
        self._owes_memory = False
        self._timeline.add_to_last(self._suspects.resources.memory_row() | self._devices.look(self._steps))

    def _end_timeline(self) -> None:
        """A row for the last mark too, if it was not followed."""
        if os.getpid() == self._pid and self._steps and self._timeline.last_step() != self._steps:
            self._timeline.add(self._steps, self._epoch, self._suspects.heap_bytes())

    def _settle(self) -> None:
        """Between marks: what the last look still owes the row of the last mark, which may be in the recording already."""
        if not self._owes_memory or os.getpid() != self._pid:
            return
        self._add_memory()
        if self._recorder is not None:
            self._recorder.mark(self._timeline.row(-1), self._timeline.memory_row(-1))

    def _news_to_record(self, looked: bool):
        """The report, at the first mark without a look of its own after there was news; else None."""
        if looked or self._owes_memory or not self._owes_report:
            return None
        self._owes_report = False
        with quiet_collector():
            return self._own_report()

    def _look_at_the_end(self) -> None:
        """The iterable is exhausted: what its last steps left is looked at while it is alive."""
        if not (self._running and self._steps and os.getpid() == self._pid):
            return
        looked = False
        try:
            looked = self._suspects.visit(self._steps, end=True)
            if looked:
                self._owes_memory = self._owes_report = True
                self._settle()
        except Exception as error:
            self._note_mishap(error)
        if looked:
            self._tell()

    def steps(self, iterable):
        """The items of ``iterable``, with a step marked each time the next one is asked for; ``len()`` is kept."""
        return _Steps(self, iterable)

    def epoch(self) -> None:
        """Mark the beginning of an epoch."""
        self._epoch += 1

    def progress(self) -> dict | None:
        """{"step", "rss", "media", "looked", "suspects", "bytes_per_step"} as of the last mark, or None before the first.

        media: live bytes by medium; looked: the step of the last look, or None; suspects: groups that grew then, by bytes_per_step in all.
        """
        if not self._timeline:
            return None
        look = self._suspects.last_look
        groups = look.groups if look else []
        return {
            "step": self._steps,
            "rss": self._timeline.memory_row(-1)["rss"],
            "media": {name: m["live_bytes"] for name, m in self._timeline.last_media().items()},
            "looked": look.step if look else None,
            "suspects": len(groups),
            "bytes_per_step": sum(g.growth.bytes_per_step for g in groups),
        }

    def report(self, *, ranks: bool = False, timeout: float = 30.0):
        """What was found, as of the last mark; works during the watch and after it.

        ranks: gather the reports of all ranks of a torch.distributed job through its store: each rank calls this,
        and one that does not within ``timeout`` seconds is named in a note.  No collective is used.
        """
        report = self._own_report()
        if self._timeline is not None:
            self._settle()
            report.timeline, report.memory = self._timeline.rows(), self._timeline.memory()
        return gather(report, timeout) if ranks else report

    def _own_report(self):
        """Without what each mark recorded."""
        status = conclusions.read_status() if self._running else self._status
        report = conclusions.conclude(
            suspects=self._suspects,
            timeline=self._timeline,
            status=status,
            warmup=self._warmup,
            steps=self._steps,
            limit=self._limit,
            workers=self._workers,
        )
        report.run = {**self._run, **library_versions()}
        report.notes += (
            self._pressure.notes
            + self._devices.notes()
            + ([self._mishap] if self._mishap is not None else [])
        )
        if self._recorder is not None:
            report.notes += self._recorder.notes()
        return report

    def _tell(self, at_once: bool = False) -> None:
        """Call on_growth and on_cycle, once each, when there is something to tell; on_growth ``at_once`` in any case."""
        if self._on_growth is None and self._on_cycle is None:
            return
        try:
            report = self.report()
        except Exception as error:
            self._note_mishap(error)
            return
        if self._on_growth is not None and (at_once or report.verdict == "growing"):
            callback, self._on_growth = self._on_growth, None
            callback(report)
        if self._on_cycle is not None and any(
            f.kind == "reference_cycle" for f in [*report.findings, *report.notes]
        ):
            callback, self._on_cycle = self._on_cycle, None
            callback(report)


class _Steps:
    """An iterable that marks a step whenever its next item is asked for, except for the first."""

    def __init__(self, probe: Probe, iterable):
        self._probe, self._iterable = probe, iterable

    def __len__(self) -> int:
        return len(self._iterable)

    def __length_hint__(self) -> int:
        import operator

        return operator.length_hint(self._iterable)

    def __getattr__(self, name):
        return getattr(self._iterable, name)

    def __iter__(self):
        probe = self._probe
        if probe.is_active():
            probe.epoch()
        iterator = iter(self._iterable)
        first = True
        while True:
            if not first and probe.is_active():
                probe._mark()
            first = False
            try:
                item = next(iterator)
            except StopIteration:
                if probe.is_active():
                    probe._look_at_the_end()
                return
            yield item
            del item


def start(warmup: int = 5, **options) -> Probe:
    """Begin a watch without a ``with`` block; ``stop()`` ends it.  Options are those of watch().

    Errors: LeakprobeError "already_active" if a watch is on.
    """
    return watch(warmup, **options).__enter__()


def stop() -> "Probe | None":
    """End the watch that is on, and give its probe, or None if there was none."""
    probe = _active
    if probe is not None:
        probe._stop()
    return probe


def is_active() -> bool:
    """True while a watch is on in this process."""
    return _active is not None


def checked_int(name: str, value, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise LeakprobeError(
            f"{name} must be a whole number from {low} to {high}, not {value!r:.60}", "bad_argument"
        )
    return value


def checked_path(name: str, path):
    """The path as text, or None."""
    if path is None:
        return None
    try:
        return os.fsdecode(path)
    except TypeError:
        raise LeakprobeError(
            f"{name} must be the path of a file, not {type(path).__name__}", "bad_argument"
        ) from None


def checked_media(media) -> frozenset:
    names = frozenset([media] if isinstance(media, str) else media)
    unknown = sorted(str(n) for n in names if n not in ALL and not str(n).startswith("cuda:"))
    if unknown or not names:
        what = f"unknown medium {', '.join(unknown)}" if unknown else "no medium given"
        raise LeakprobeError(f"media: {what}; the media are {', '.join(sorted(ALL))}", "bad_argument")
    return frozenset("cuda" if str(n).startswith("cuda:") else n for n in names)


def checked_limit(limit) -> float:
    if isinstance(limit, (int, float)) and not isinstance(limit, bool):
        if limit < 0:
            raise LeakprobeError(
                f'limit must not be negative, not {limit!r}; try "256 B/step"', "bad_argument"
            )
        return float(limit)
    return parse_rate(limit)
