"""What the pytest plugin does once it is used: repeat a body under a watch, judge it, fail with words.

After a failure nothing here holds a frame, a tensor or an exception: reports are text and numbers.
"""

import dataclasses
import functools
import inspect
import io
import os
import re
import time
import types
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, overload

import pytest

from leakprobe import switch
from leakprobe.errors import LeakprobeError
from leakprobe.pytest_filters import (
    WHOLE_STACK,
    NotWanted,
    OtherThread,
    checked_filter,
    checked_flag,
    own_beginning,
)
from leakprobe.pytest_kept import LogOfOneCall, kept_by_pytest
from leakprobe.pytest_names import (
    ADDED,
    ALWAYS,
    AUTO,
    CALLED,
    DISABLED,
    MARKERS,
    MEASURED,
    NEVER,
    STEPS_FORM,
    UNMEASURED,
)
from leakprobe.pytest_outcome import first_line, leave_outcome

if TYPE_CHECKING:
    from leakprobe.judge.suppressions import Allowance
    from leakprobe.model.finding import Finding
    from leakprobe.model.report import Report
    from leakprobe.probe import Probe

#: What is not conclusive, and what grows, is repeated with twice the measured steps, this many times at most.
RETRIES, CONFIRMATIONS = 2, 1
STEPS, LIMIT = "3:10", "256 B/step"
ENDED = (
    "the test ended the watch that measures it: mark it @pytest.mark.skip_growth(reason) if it calls "
    "leakprobe.stop()"
)
#: What a call makes instead of running anything => its name, whether a function makes such, what to give.
UNRUN: dict[type, tuple[str, Callable[[object], bool], str]] = {
    types.CoroutineType: (
        "a coroutine",
        inspect.iscoroutinefunction,
        "give a function that runs it, such as lambda: asyncio.run({}(...)), or mark a loop's own steps",
    ),
    types.AsyncGeneratorType: (
        "an async generator",
        inspect.isasyncgenfunction,
        "give a function that runs, with asyncio.run(), a coroutine which iterates it",
    ),
    types.GeneratorType: (
        "a generator",
        inspect.isgeneratorfunction,
        "give a function that iterates it, such as lambda: list({}(...))",
    ),
}


@dataclasses.dataclass(frozen=True)
class Gate:
    """How one test is measured.  ``rules``: what suppress() takes, the test's filter too."""

    warmup: int
    measured: int
    limit: str | float
    media: str | Iterable[str] | None
    rules: tuple["Allowance", ...]
    current_thread_only: bool = False

    def watch(self, warmup: int | None = None, *, is_marked: bool = True) -> "Probe":
        """A watch, of which the caller marks the steps or the body of a test does, if it likes."""
        from leakprobe.probe import watch

        options: dict[str, Any] = {} if self.media is None else {"media": self.media}
        if self.current_thread_only:
            options["stack_depth"] = WHOLE_STACK
        probe = watch(self.warmup if warmup is None else warmup, limit=self.limit, **options)
        if is_marked:
            probe._marking.leave_to_caller()
        return probe

    def of(self, item: pytest.Item) -> "Gate":
        """The same for this test, in which what pytest itself keeps does not count."""
        return dataclasses.replace(self, rules=(*self.rules, kept_by_pytest(item)))

    def judge(self, report: "Report") -> "Report":
        """In the thread that the test runs in."""
        from leakprobe.judge.suppressions import suppress

        others = (OtherThread(own_beginning()),) if self.current_thread_only else ()
        return suppress(report, (*self.rules, *others))


@dataclasses.dataclass(frozen=True)
class Defaults:
    """What the ini file and the option say; a marker or call has the last word."""

    steps: str
    limit: str
    media: tuple[str, ...] | None
    rules: tuple["Allowance", ...]

    @classmethod
    def of_config(cls, config: pytest.Config) -> "Defaults":
        """Errors: pytest.UsageError for what can't be read."""
        from leakprobe.judge.suppressions import load_rules
        from leakprobe.watch.arguments import checked_limit, checked_media

        option = config.getoption("leakprobe", None)
        steps, limit = (
            option or config.getini("leakprobe_steps") or STEPS,
            config.getini("leakprobe_limit") or LIMIT,
        )
        media, path = config.getini("leakprobe_media"), config.getini("leakprobe_suppressions")
        try:
            parse_steps(steps)
            checked_limit(limit)
            checked_annotations(config.getini("leakprobe_annotations") or AUTO)
            checked_most(config.getini("leakprobe_most"))
            if media:
                checked_media(media.split())
            rules = (
                load_rules(os.path.join(config.inipath.parent if config.inipath else config.rootpath, path))
                if path
                else []
            )
        except LeakprobeError as error:
            form = " (--leakprobe is written --leakprobe=STEPS, before or after the paths)" if option else ""
            raise pytest.UsageError(f"leakprobe: {error}{form}") from None
        return cls(steps, limit, tuple(media.split()) if media else None, tuple(rules))

    def gate(
        self,
        limit: str | float | None = None,
        *,
        steps: str | None = None,
        media: str | Iterable[str] | None = None,
        suppressions: str | Iterable[str] = (),
        filter: Callable[["Finding"], object] | None = None,
        current_thread_only: bool = False,
    ) -> Gate:
        """A Gate of what was given, and of the defaults for the rest.  Errors: LeakprobeError, TypeError."""
        from leakprobe.judge.suppressions import parse_rule
        from leakprobe.watch.arguments import checked_limit, checked_media

        warmup, measured = parse_steps(self.steps if steps is None else steps)
        limit = self.limit if limit is None else limit
        media = self.media if media is None else media
        checked_limit(limit)
        if media is not None:
            checked_media(media)
        texts = [suppressions] if isinstance(suppressions, str) else suppressions
        rules: list[Allowance] = [rule for rule in map(parse_rule, texts) if rule]
        if filter is not None:
            rules.append(NotWanted(checked_filter(filter)))
        only_own = checked_flag("current_thread_only", current_thread_only)
        return Gate(warmup, measured, limit, media, (*self.rules, *rules), only_own)


def check_switch() -> None:
    """Errors: pytest.UsageError for a value of LEAKPROBE that is not known."""
    try:
        switch.disabled_line()
    except LeakprobeError as error:
        raise pytest.UsageError(f"leakprobe: {error}") from None


def marker_error(item: pytest.Item) -> pytest.Collector.CollectError | None:
    """The CollectError of a marker with wrong arguments, which shows the right form, or None."""
    defaults = Defaults.of_config(item.config)
    checks: dict[str, Callable[..., object]] = {"limit_growth": defaults.gate, "skip_growth": skip_reason}
    for name, check in checks.items():
        for marker in item.iter_markers(name):
            try:
                check(*marker.args, **marker.kwargs)
            except (LeakprobeError, TypeError) as error:
                what = re.sub(r"^[\w.]+\(\)", name, str(error))
                form = MARKERS[name][0]
                text = f"{item.name}: wrong arguments for @pytest.mark.{name}: {what}\nthe right form: @pytest.mark.{form}"
                return pytest.Collector.CollectError(text)
    return None


def skip_reason(reason: object) -> str:
    if not isinstance(reason, str) or not reason:
        raise TypeError(f"the reason must be a text, not {type(reason).__name__}")
    return reason


def repeated(item: pytest.Function, body: Callable[..., object]) -> Callable[..., object]:
    """A function that runs the test's body under a watch, as often as the gate asks, and fails if it
    grows.
    """
    marker = item.get_closest_marker("limit_growth")
    defaults = Defaults.of_config(item.config)
    gate = (defaults.gate(*marker.args, **marker.kwargs) if marker else defaults.gate()).of(item)

    @functools.wraps(body)
    def run(**arguments: Any) -> None:
        measure(item, gate, functools.partial(body, **arguments))

    return run


def is_off(item: pytest.Item) -> bool:
    """True where leakprobe is switched off: the test runs once, as it is, and the summary says so.

    Errors: LeakprobeError for a value of the switch that is not known.
    """
    line = switch.disabled_line()
    if line is not None:
        item.user_properties.append((DISABLED, line))
    return line is not None


def measuring_itself(item: pytest.Function, body: Callable[..., object]) -> Callable[..., object]:
    """For a test that has the fixture, by another fixture too: whoever calls it measures.  Where nobody does,
    a test with the marker fails, as it would pass with whatever it leaks, and the summary has any other.
    """
    marker = item.get_closest_marker("limit_growth")

    @functools.wraps(body)
    def run(*args: Any, **arguments: Any) -> object:
        result = body(*args, **arguments)
        if item.stash.get(CALLED, False):
            return result
        if marker is not None:
            raise LeakprobeError(
                "@pytest.mark.limit_growth leaves a test to no_growth that has this fixture, or one that "
                "uses it, and nothing called it here: call no_growth(), or take the fixture away",
                "bad_argument",
            )
        item.user_properties.append((UNMEASURED, "no_growth was there and nothing called it"))
        return result

    return run


class NoGrowth:
    """What the fixture gives; it keeps nothing but the test's item."""

    def __init__(self, item: pytest.Item) -> None:
        self._item = item

    @overload
    def __call__(self, function: None = None, /, **options: Any) -> "Watched": ...
    @overload
    def __call__(self, function: Callable[..., object], /, *args: Any, **options: Any) -> "Report": ...
    def __call__(
        self,
        function: Callable[..., object] | None = None,
        /,
        *args: Any,
        steps: str | None = None,
        warmup: int | None = None,
        limit: str | float | None = None,
        media: str | Iterable[str] | None = None,
        suppressions: Iterable[str] = (),
        filter: Callable[["Finding"], object] | None = None,
        current_thread_only: bool = False,
        **kwargs: Any,
    ) -> "Report | Watched":
        """The Report of a function's calls; without a function a context manager for a loop that marks its
        own steps.
        """
        self._item.stash[CALLED] = True
        gate = (
            Defaults.of_config(self._item.config)
            .gate(
                limit,
                steps=steps,
                media=media,
                suppressions=suppressions,
                filter=filter,
                current_thread_only=current_thread_only,
            )
            .of(self._item)
        )
        check_form(function, steps, warmup)
        if function is None:
            return Watched(self._item, gate, warmup)
        check_function(function)
        if is_off(self._item):
            check_result(function(*args, **kwargs), function)
            return gate.watch().report()
        return measure(self._item, gate, functools.partial(function, *args, **kwargs))


def check_form(function: object, steps: str | None, warmup: int | None) -> None:
    """Errors: LeakprobeError "bad_argument" for an argument of the other form."""
    if function is None and steps is not None:
        text = "steps is for calls of a function: in a `with` block the loop marks its own"
        raise LeakprobeError(text, "bad_argument")
    if function is not None and warmup is not None:
        text = 'warmup is for a `with` block: give steps="7:10", warm-up:measured'
        raise LeakprobeError(text, "bad_argument")


class Watched:
    """The context manager: checks the report unless the body raised."""

    def __init__(self, item: pytest.Item, gate: Gate, warmup: int | None) -> None:
        self._item, self._gate = item, gate
        self._probe: Probe | None = gate.watch(warmup, is_marked=False)

    def __enter__(self) -> "Probe":
        if self._probe is None:
            raise LeakprobeError(
                "this context was entered before: call no_growth() for each `with`", "used_probe"
            )
        return self._probe.__enter__()

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        probe, self._probe = self._probe, None
        assert probe is not None, "it is left once"
        probe.__exit__(None, None, None)
        if kind is None and not is_off(self._item):
            report = self._gate.judge(probe.report())
            note_measured(self._item, report, 0.0)
            check(self._item, report)


def measure(item: pytest.Item, gate: Gate, body: Callable[[], object]) -> "Report":
    """The Report of the body's calls; repeated with more steps while it is not conclusive, or to confirm
    growth.  The test fails if it is not steady; what a subtest failed in is not judged.
    """
    began = time.perf_counter()
    first: float | None = None
    log = LogOfOneCall()
    measured, confirmed, retried = gate.measured, 0, 0
    before = item.session.testsfailed

    def has_failed() -> bool:
        return item.session.testsfailed > before

    while True:
        report, took = one_run(gate, body, measured, log, has_failed)
        first = took if first is None else first
        if has_failed():
            return report
        if report.verdict == "growing" and confirmed < CONFIRMATIONS:
            confirmed += 1
        elif report.verdict == "inconclusive" and retried < RETRIES:
            retried += 1
        else:
            break
        measured *= 2
    note_measured(item, report, time.perf_counter() - began - first)
    check(item, report)
    return report


def one_run(
    gate: Gate, body: Callable[[], object], measured: int, log: LogOfOneCall, has_failed: Callable[[], bool]
) -> tuple["Report", float]:
    """(Report, seconds of the first call) of one watch over warm-up + measured calls; a failed one is the
    last.
    """
    first: float | None = None
    with gate.watch() as probe:
        for _ in range(gate.warmup + measured):
            log.begin()
            began = time.perf_counter()
            check_result(body(), body)
            first = time.perf_counter() - began if first is None else first
            if has_failed():
                break
            if not probe.is_active():
                raise LeakprobeError(ENDED, "not_active")
            probe.step()
        probe._look_at_the_end()
    return gate.judge(probe.report()), first or 0.0


def check_function(function: Callable[..., object]) -> None:
    """Errors: LeakprobeError "bad_argument" for a function whose calls run nothing of it."""
    __tracebackhide__ = True
    for result, (_, is_such, _) in UNRUN.items():
        if is_such(function):
            raise unrun_error(result, function)


def check_result(result: object, function: Callable[..., object]) -> None:
    """Errors: LeakprobeError "bad_argument" for a call that left something to be run; it is closed."""
    __tracebackhide__ = True
    if type(result) in UNRUN:
        if isinstance(result, (types.CoroutineType, types.GeneratorType)):
            result.close()  # else Python warns that it was never awaited
        raise unrun_error(type(result), function)


def unrun_error(result: type, function: object) -> LeakprobeError:
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", type(function).__name__)
    what, _, instead = UNRUN[result]
    example = instead.format(name if name.isidentifier() else "f")
    return LeakprobeError(f"a call of {name} makes {what} and runs nothing of it: {example}", "bad_argument")


def note_measured(item: pytest.Item, report: "Report", added_s: float) -> None:
    """For the summary; user properties also reach the other side of xdist and the JUnit file."""
    item.user_properties += [(MEASURED, report.verdict), (ADDED, round(max(0.0, added_s), 3))]
    leave_outcome(item, report)


def check(item: pytest.Item, report: "Report") -> None:
    """Fail the test if the report is not steady: the first line says what grows, a section has the
    finding.
    """
    if report.verdict == "steady":
        return
    text = io.StringIO()
    report.print(file=text)
    item.add_report_section("call", "leakprobe", text.getvalue())
    pytest.fail(first_line(report), pytrace=False)


def checked_most(given: str | None) -> None:
    """Errors: LeakprobeError "bad_argument"."""
    if given and not given.isdigit():
        raise LeakprobeError(f"leakprobe_most must be a number of tests, not {given!r:.60}", "bad_argument")


def checked_annotations(when: str) -> str:
    """Errors: LeakprobeError "bad_argument"."""
    if when not in (AUTO, ALWAYS, NEVER):
        raise LeakprobeError(
            f"leakprobe_annotations must be {AUTO}, {ALWAYS} or {NEVER}, not {when!r:.60}", "bad_argument"
        )
    return when


def parse_steps(text: object) -> tuple[int, int]:
    """(3, 10) of "3:10".  Errors: LeakprobeError "bad_argument"."""
    match = STEPS_FORM.fullmatch(text) if isinstance(text, str) else None
    if match is None or int(match.group(2)) < 1:
        raise LeakprobeError(
            f'steps must be "warm-up:measured" such as "3:10", not {text!r:.60}', "bad_argument"
        )
    return int(match.group(1)), int(match.group(2))
