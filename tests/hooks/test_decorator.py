"""@leakprobe.watch(): functions, methods and coroutine functions under a watch; ``async with``."""

import asyncio
import concurrent.futures
import copy
import functools
import inspect
import logging
import pickle
import threading
import weakref

import pytest

import leakprobe
from leakprobe.errors import LeakprobeError


def training(kept):
    """Forty optimizer steps, of which each leaves a tensor in ``kept`` if that is a list."""
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(40):
        optimizer.zero_grad()
        model(torch.ones(4, 8)).sum().backward()
        optimizer.step()
        if kept is not None:
            kept.append(torch.zeros(1000))


def test_a_function_is_watched_by_its_optimizer_steps(caplog):
    @leakprobe.watch(warmup=2)
    def train(kept):
        """Trains."""
        training(kept)
        return len(kept)

    kept = []
    assert (train.__name__, train.__doc__, train.report) == ("train", "Trains.", None)
    with caplog.at_level(logging.INFO, "leakprobe"):
        assert train(kept) == 40
    assert train.report.verdict == "growing" and train.report.steps["measured"] == 38
    (record,) = caplog.records
    assert record.name == "leakprobe" and record.levelno == logging.WARNING
    assert "train: growing in 38 steps: +" in record.getMessage()
    assert not leakprobe.is_active()


def test_each_call_is_a_watch_of_its_own():
    @leakprobe.watch(warmup=2)
    def train(kept):
        training(kept)

    train([])
    first = train.report
    train(None)
    assert (first.verdict, train.report.verdict) == ("growing", "steady")


def test_an_exception_comes_through_and_the_report_is_there():
    @leakprobe.watch()
    def fails():
        raise KeyError("data")

    with pytest.raises(KeyError, match="data"):
        fails()
    assert fails.report.verdict == "inconclusive" and not leakprobe.is_active()


def test_a_method_is_bound():
    class Trainer:
        rate = 3

        @leakprobe.watch()
        def fit(self, epochs):
            assert leakprobe.is_active()
            return self.rate * epochs

    assert Trainer().fit(2) == 6 and Trainer.fit.report is not None


def test_a_coroutine_function_is_watched_until_it_ends():
    @leakprobe.watch()
    async def serve(value):
        await asyncio.sleep(0)
        assert leakprobe.is_active()
        return value

    async def main():
        waiting = serve(5)
        assert not leakprobe.is_active()
        return await waiting

    assert asyncio.run(main()) == 5 and serve.report.verdict == "inconclusive"


def test_async_with_is_a_watch():
    async def main():
        async with leakprobe.watch(warmup=1) as probe:
            for _ in range(3):
                await asyncio.sleep(0)
                probe.step()
        return probe.report()

    assert asyncio.run(main()).steps == {"warmup": 1, "measured": 2}


def test_without_parentheses_it_is_said():
    with pytest.raises(LeakprobeError, match=r"write @leakprobe\.watch\(\)"):
        leakprobe.watch(functools.partial(print))


def test_what_is_echoed_is_short():
    with leakprobe.watch() as probe:
        probe.step()
        assert repr(probe) == "<leakprobe watch: on, step 1>"


def test_a_generator_is_watched_until_it_ends():
    @leakprobe.watch(warmup=2)
    def train(kept):
        training(kept)
        yield 1
        assert leakprobe.is_active()
        yield 2
        return 3

    results = []

    def outer():
        results.append((yield from train([])))

    assert list(outer()) == [1, 2] and results == [3] and not leakprobe.is_active()
    assert train.report.verdict == "growing"


def test_an_asynchronous_generator_is_watched_until_it_ends():
    @leakprobe.watch()
    async def serve():
        for i in range(3):
            assert leakprobe.is_active()
            yield i

    async def main():
        return [i async for i in serve()]

    assert asyncio.run(main()) == [0, 1, 2] and serve.report is not None and not leakprobe.is_active()


def test_a_call_from_within_is_part_of_the_first():
    @leakprobe.watch()
    def factorial(n):
        return 1 if n == 0 else n * factorial(n - 1)

    assert factorial(5) == 120 and factorial.report is not None and not leakprobe.is_active()


def test_a_bound_method_has_its_report():
    class Trainer:
        @leakprobe.watch()
        def fit(self):
            return self

    trainer = Trainer()
    assert trainer.fit.report is None
    assert trainer.fit() is trainer and trainer.fit.report.verdict == "inconclusive"


async def coroutine(a, b=2):
    return a + b


def generator(a, b=2):
    got = yield a
    return got


async def asynchronous_generator(a, b=2):
    yield a


ASKED = (
    inspect.iscoroutinefunction,
    asyncio.iscoroutinefunction,
    inspect.isgeneratorfunction,
    inspect.isasyncgenfunction,
)


def kinds_of(function):
    return [ask(function) for ask in ASKED]


@pytest.mark.filterwarnings("ignore:'asyncio.iscoroutinefunction' is deprecated:DeprecationWarning")
@pytest.mark.parametrize("function", [coroutine, generator, asynchronous_generator, training])
def test_a_function_stays_of_its_kind(function):
    """Frameworks ask whether to await what it gives."""

    class Served:
        method = leakprobe.watch()(function)
        static = staticmethod(leakprobe.watch()(function))
        of_class = classmethod(leakprobe.watch()(function))

    watched = leakprobe.watch()(function)
    assert kinds_of(function).count(True) in (0, 1, 2)
    for made in (
        watched,
        Served().method,
        Served.static,
        Served().static,
        Served.of_class,
        functools.partial(watched, 1),
        leakprobe.watch()(functools.partial(function, 1)),
        leakprobe.watch()(watched),
    ):
        assert kinds_of(made) == kinds_of(function)
    assert inspect.signature(watched) == inspect.signature(function)
    assert (watched.__name__, watched.__wrapped__) == (function.__name__, function)


def test_a_coroutine_function_that_is_marked_as_one():
    if not hasattr(inspect, "markcoroutinefunction"):
        pytest.skip("new in Python 3.12")

    @leakprobe.watch()
    @inspect.markcoroutinefunction
    def gives():
        return coroutine(1)

    assert inspect.iscoroutinefunction(gives) and asyncio.run(gives()) == 3


def test_what_is_sent_and_thrown_comes_through():
    watched = leakprobe.watch()(generator)
    running = watched(1)
    assert next(running) == 1
    with pytest.raises(StopIteration) as ended:
        running.send(7)
    assert ended.value.value == 7 and not leakprobe.is_active()
    running = watched(1)
    next(running)
    with pytest.raises(KeyError):
        running.throw(KeyError("x"))
    running = watched(1)
    next(running)
    assert leakprobe.is_active()
    running.close()
    assert not leakprobe.is_active()


def test_of_calls_in_several_threads_one_is_watched():
    barrier = threading.Barrier(4)
    inside = threading.Barrier(4)

    @leakprobe.watch()
    def handle(number):
        inside.wait(60)
        return number

    def call(number):
        barrier.wait(60)
        return handle(number)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            assert list(pool.map(call, range(4))) == [0, 1, 2, 3]
    assert not leakprobe.is_active() and handle.report is not None


def test_a_call_inside_of_any_watch_is_part_of_that():
    @leakprobe.watch()
    def inner():
        return leakprobe.is_active()

    @leakprobe.watch()
    def outer():
        return inner()

    assert outer() and outer.report is not None and inner.report is None
    with leakprobe.watch():
        assert inner() and leakprobe.is_active()
    assert inner.report is None
    assert inner() and inner.report is not None and not leakprobe.is_active()


def test_a_watch_that_the_function_enters_itself_is_refused_as_ever():
    @leakprobe.watch()
    def trains():
        with leakprobe.watch():
            pass

    with pytest.raises(LeakprobeError) as error:
        trains()
    assert error.value.code == "already_active" and not leakprobe.is_active()


@leakprobe.watch()
def pickled(number):
    return number + 1


class Pickled:
    @leakprobe.watch()
    def method(self):
        """A method."""
        return self


PARTIAL = leakprobe.watch()(functools.partial(max, 5))


def test_pickled_by_name_as_functions_are():
    assert pickle.loads(pickle.dumps(pickled)) is pickled is copy.deepcopy(pickled)
    method = pickle.loads(pickle.dumps(Pickled().method))
    assert type(method()) is Pickled
    assert pickle.loads(pickle.dumps(PARTIAL))(7) == 7 == copy.deepcopy(PARTIAL)(7)


def test_a_method_is_a_bound_method():
    one = Pickled()
    assert inspect.ismethod(one.method) and one.method.__self__ is one and one.method == one.method
    assert (one.method.__name__, one.method.__doc__) == ("method", "A method.")
    assert str(inspect.signature(one.method)) == "()"


def test_an_asynchronous_generator_gets_what_is_sent_and_thrown():
    async def answers():
        try:
            got = yield 1
        except ValueError:
            got = "caught"
        yield got

    watched = leakprobe.watch()(answers)

    async def use():
        first = watched()
        await first.__anext__()
        sent = await first.asend("sent")
        await first.aclose()
        second = watched()
        await second.__anext__()
        thrown = await second.athrow(ValueError("x"))
        with pytest.raises(StopAsyncIteration):
            await second.__anext__()
        third = watched()
        await third.__anext__()
        with pytest.raises(KeyError):
            await third.athrow(KeyError("x"))
        return sent, thrown

    assert asyncio.run(use()) == ("sent", "caught") and not leakprobe.is_active()


def test_an_asynchronous_generator_does_not_keep_its_items():
    class Item:
        pass

    @leakprobe.watch()
    async def items():
        yield Item()

    async def use():
        running = items()
        seen = weakref.ref(await running.__anext__())
        is_gone = seen() is None
        await running.aclose()
        return is_gone

    assert asyncio.run(use())


def test_static_and_class_methods_are_wrapped_again():
    class Served:
        @leakprobe.watch()
        @staticmethod
        def static(value):
            return value, leakprobe.is_active()

        @leakprobe.watch()
        @classmethod
        def of_class(cls, value):
            return cls, value, leakprobe.is_active()

    assert Served.static(1) == Served().static(1) == (1, True)
    assert Served.of_class(2) == Served().of_class(2) == (Served, 2, True)
    assert Served.static.report is not None and Served.of_class.report is not None


def test_names_of_arguments_are_the_function_s_own():
    watched = leakprobe.watch()(lambda self, function: (self, function))
    assert watched(self=1, function=2) == (1, 2)


@pytest.mark.parametrize("given", [Pickled, 5, None, property(len)])
def test_what_is_no_function_can_not_be_decorated(given):
    with pytest.raises(LeakprobeError, match="takes a function or a method, not ") as error:
        leakprobe.watch()(given)
    assert error.value.code == "bad_argument"


def test_a_watch_that_has_ended_decorates_nothing():
    probe = leakprobe.watch()
    with probe:
        pass
    with pytest.raises(LeakprobeError) as error:
        probe(len)
    assert error.value.code == "used_probe"
