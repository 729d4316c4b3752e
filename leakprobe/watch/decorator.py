"""A function whose calls are watched: what ``@leakprobe.watch()`` makes."""

import functools
import inspect
import logging
import threading
import types
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import aclosing, contextmanager
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, TypeVar

from leakprobe import _core
from leakprobe.checks import shown
from leakprobe.errors import LeakprobeError
from leakprobe.model.causes import printed
from leakprobe.model.report import Report
from leakprobe.model.units import format_rate
from leakprobe.watch.callbacks import Callbacks
from leakprobe.watch.marking import marked_by_torch

if TYPE_CHECKING:
    from typing_extensions import Self

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_logger = logging.getLogger("leakprobe")


class AnyProbe(Protocol):
    """A Probe."""

    def __enter__(self) -> Any: ...
    def __exit__(self, *exception: Any) -> None: ...
    def report(self) -> Report: ...


class Watched(Generic[Arguments, Result]):
    """A function that is called under a watch.

    report: of the last watched call that has ended, as a method of any instance, else None.
    """

    def __init__(self, function: Callable[Arguments, Result], make: Callable[[], AnyProbe]) -> None:
        functools.update_wrapper(self, function)
        self._function, self._make = function, make
        self._show_kind()
        self.report: Report | None = None
        self._on = threading.Lock()  # held while a call is watched; nobody waits for it

    def __call__(self, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        result: Result = self._start()(*args, **kwargs)
        return result

    def _start(self) -> Any:
        """What calls the function: of the same kind as it is."""
        kinds = (
            (inspect.iscoroutinefunction, self._awaited),
            (inspect.isgeneratorfunction, self._iterated),
            (inspect.isasyncgenfunction, self._iterated_later),
        )
        return next((start for is_kind, start in kinds if is_kind(self._function)), self._called)

    def _show_kind(self) -> None:
        """Frameworks ask inspect for the kind, and inspect the code of what has a function's attributes."""
        start = self._start()
        if start != self._called:
            self.__code__, self.__defaults__, self.__kwdefaults__ = start.__code__, None, None
            self.__dict__.setdefault("__name__", start.__name__)  # a partial has none

    def _called(self, /, *args: Any, **kwargs: Any) -> Any:
        with self._watch():
            return self._function(*args, **kwargs)

    async def _awaited(self, /, *args: Any, **kwargs: Any) -> Any:
        with self._watch():
            function: Any = self._function
            return await function(*args, **kwargs)

    def _iterated(self, /, *args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        """A generator: watched from its first item to its end."""
        with self._watch():
            function: Any = self._function
            return (yield from function(*args, **kwargs))

    async def _iterated_later(self, /, *args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        """As ``yield from``, which asynchronous generators lack: what is sent and thrown comes through."""
        with self._watch():
            function: Any = self._function
            async with aclosing(function(*args, **kwargs)) as items:
                following = items.asend(None)
                while True:
                    try:
                        got = [await following]
                    except StopAsyncIteration:
                        return
                    try:
                        sent = yield got.pop()  # an item is not kept here while the caller has it
                    except GeneratorExit:
                        raise
                    except BaseException as error:
                        following = items.athrow(error)
                    else:
                        following = items.asend(sent)

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """A method: bound to its instance, as a function is."""
        return self if instance is None else types.MethodType(self, instance)

    def __reduce__(self) -> str | tuple[Any, ...]:
        """By its name, as a function; what has none, such as a partial, by what it is made of."""
        name: str | None = getattr(self, "__qualname__", None)
        return name if name is not None else (type(self), (self._function, self._make))

    @contextmanager
    def _watch(self) -> Iterator[None]:
        """A call inside of a watch, that of another call or any other, is part of it."""
        if is_inside() or not self._on.acquire(blocking=False):
            yield
            return
        probe, has_entered = None, False
        try:
            probe = marked_by_torch(self._make())
            with probe:
                has_entered = True
                yield
        except LeakprobeError as error:
            if has_entered or error.code != "already_active":
                raise
        finally:
            self._on.release()
            if probe is not None and has_entered:
                self.report = probe.report()
                tell(getattr(self._function, "__qualname__", "function"), self.report)
        if not has_entered:
            yield


def is_inside() -> bool:
    """True in a watch, but for one that ends where another is entered, as that of ``leakprobe run`` does."""
    active = _core.active_watch()
    return active is not None and active.is_active() and not hasattr(active, "_gave_way_to")


def tell(name: str, report: Report) -> None:
    """One line of the log for a call: a warning for growth."""
    level = logging.WARNING if report.verdict == "growing" else logging.INFO
    rate = sum(finding.bytes_per_step for finding in report.findings)
    causes = ", ".join(sorted({printed(finding.cause) for finding in report.findings}))
    grows = f": {format_rate(rate)} ({causes})" if report.findings else ""
    _logger.log(level, "%s: %s in %d steps%s", name, report.verdict, report.steps["measured"], grows)


class Wrapping:
    """``async with`` and use as a decorator, for what is a context manager already."""

    #: What another one like this is made with, until it ends.
    _options: dict[str, Any] | None
    _callbacks: Callbacks

    async def __aenter__(self) -> "Self":
        """As ``with``: entering does not wait."""
        entered: Any = self
        entered.__enter__()
        return self

    async def __aexit__(self, *exception: Any) -> None:
        entered: Any = self
        entered.__exit__(*exception)

    def __call__(self, function: Callable[Arguments, Result]) -> Watched[Arguments, Result]:
        """The function, each call of it under a watch with these options: ``@leakprobe.watch()``.

        Errors: LeakprobeError "bad_argument" for a class and for what can't be called; "used_probe" once this
        watch has ended.
        """
        given: Any = function
        if isinstance(given, (staticmethod, classmethod)):
            around: Any = type(given)
            method: Watched[Arguments, Result] = around(self(given.__func__))
            return method
        if isinstance(given, type) or not callable(given):
            raise LeakprobeError(
                f"@leakprobe.watch() takes a function or a method, not {shown(given)}", "bad_argument"
            )
        if self._options is None:
            raise LeakprobeError(
                "this probe has been used: decorate with a new leakprobe.watch()", "used_probe"
            )
        kind: Any = type(self)
        return Watched(function, functools.partial(kind, **self._options))

    def _forget(self) -> None:
        """The callbacks of the program, and what they keep, do not live on in a watch that has ended."""
        self._options = None
        self._callbacks.forget()
