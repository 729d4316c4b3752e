"""A function whose calls are watched: what ``@leakprobe.watch()`` makes."""

import functools
import inspect
import logging
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import aclosing, contextmanager
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, TypeVar

from leakprobe.model.report import Report
from leakprobe.model.units import format_rate
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


class Bound(functools.partial[Any]):
    """A watched method of an instance."""

    @property
    def report(self) -> Report | None:
        """That of the last call that has ended, of any instance, else None."""
        watched: Any = self.func
        report: Report | None = watched.report
        return report


class Watched(Generic[Arguments, Result]):
    """A function that is called under a watch.  report: of its last call that has ended, else None."""

    def __init__(self, function: Callable[Arguments, Result], make: Callable[[], AnyProbe]) -> None:
        functools.update_wrapper(self, function)
        self._function, self._make = function, make
        self._show_kind()
        self.report: Report | None = None
        self._is_on = False  # a call is watched now

    def __call__(self, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
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

    def _called(self, *args: Any, **kwargs: Any) -> Any:
        with self._watch():
            return self._function(*args, **kwargs)

    async def _awaited(self, *args: Any, **kwargs: Any) -> Any:
        with self._watch():
            function: Any = self._function
            return await function(*args, **kwargs)

    def _iterated(self, *args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        """A generator: watched from its first item to its end."""
        with self._watch():
            function: Any = self._function
            return (yield from function(*args, **kwargs))

    async def _iterated_later(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        with self._watch():
            function: Any = self._function
            async with aclosing(function(*args, **kwargs)) as items:
                async for item in items:
                    yield item

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """A method: bound to its instance, as a function is."""
        call: Any = self
        return self if instance is None else Bound(call, instance)

    @contextmanager
    def _watch(self) -> Iterator[None]:
        if self._is_on:  # a call from within: the outer one is watched
            yield
            return
        probe = marked_by_torch(self._make())
        try:
            with probe:
                self._is_on = True
                yield
        finally:
            self._is_on = False
            self.report = probe.report()
            tell(getattr(self._function, "__qualname__", "function"), self.report)


def tell(name: str, report: Report) -> None:
    """One line of the log for a call: a warning for growth."""
    level = logging.WARNING if report.verdict == "growing" else logging.INFO
    rate = sum(finding.bytes_per_step for finding in report.findings)
    causes = ", ".join(sorted({finding.cause.replace("_", "-") for finding in report.findings}))
    grows = f": {format_rate(rate)} ({causes})" if report.findings else ""
    _logger.log(level, "%s: %s in %d steps%s", name, report.verdict, report.steps["measured"], grows)


class Wrapping:
    """``async with`` and use as a decorator, for what is a context manager already."""

    #: What another one like this is made with.
    _options: dict[str, Any]

    async def __aenter__(self) -> "Self":
        """As ``with``: entering does not wait."""
        entered: Any = self
        entered.__enter__()
        return self

    async def __aexit__(self, *exception: Any) -> None:
        entered: Any = self
        entered.__exit__(*exception)

    def __call__(self, function: Callable[Arguments, Result]) -> Watched[Arguments, Result]:
        """The function, each call of it under a watch with these options: ``@leakprobe.watch()``."""
        kind: Any = type(self)
        return Watched(function, lambda: kind(**self._options))
