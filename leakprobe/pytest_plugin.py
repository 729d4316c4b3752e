"""pytest: tests that fail when a loop starts to leak.

    def test_epoch(no_growth):
        no_growth(train_one_epoch, model, loader, steps="3:10")      # warm-up:measured calls

    def test_loader(no_growth):
        with no_growth(limit="64 KiB/step") as probe:
            for batch in probe.steps(loader):
                consume(batch)

    @pytest.mark.limit_growth("1 KiB/step", steps="3:10", media=["cpu", "cuda"])
    def test_forward(model):                                         # the body is the step
        model(torch.ones(8, 3))

Every pytest session imports this module: it imports nothing but pytest and names.  What measures is in
pytest_gate.py.
"""

import collections
import contextlib
import inspect
import os
import sys
from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING, TypeGuard

import pytest

from leakprobe.pytest_names import (
    ADDED,
    ALWAYS,
    ATTRIBUTE,
    AUTO,
    DISABLED,
    MARKERS,
    MEASURED,
    MOST,
    OUTCOME,
    STEPS_FORM,
    UNMEASURED,
)

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter
    from pluggy import Result

    from leakprobe.pytest_gate import NoGrowth

INI = {
    "leakprobe_steps": 'steps of limit_growth and no_growth where they are not given, such as "3:10"',
    "leakprobe_limit": 'the limit where it is not given, such as "1 KiB/step"',
    "leakprobe_media": "the kinds of memory where they are not given, separated by spaces",
    "leakprobe_suppressions": "a file of rules for known growth, relative to the ini file",
    "leakprobe_recordings": "a folder of recordings, one for each measured test, below the root of the tests",
    "leakprobe_annotations": "GitHub's annotations of failures: auto (in its jobs), always or never",
    "leakprobe_most": f"how many of the tests that grow most are listed (default {MOST}, 0 for none)",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("leakprobe")
    group.addoption(
        "--leakprobe", nargs="?", const="", default=None, metavar="STEPS",
        help='apply limit_growth to every test; give steps as --leakprobe=3:10 (warm-up:measured)',
    )  # fmt: skip
    group.addoption(
        "--leakprobe-recordings", action="store_true", default=False,
        help="keep a recording of each measured test in .leakprobe: `leakprobe report ID` shows it",
    )  # fmt: skip
    group.addoption("--leakprobe-most", type=int, default=None, metavar="N", help=INI["leakprobe_most"])
    for name, help_text in INI.items():
        parser.addini(name, help_text, default=None)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> None:
    """A path after --leakprobe is one of those to run: argparse takes it for the option's value."""
    places = [at for at, argument in enumerate(args[:-1]) if argument == "--leakprobe"]
    for at in places:
        if is_path(args[at + 1], early_config.invocation_params.dir):
            args[at] = "--leakprobe="
    if places:
        known, anew = early_config.known_args_namespace, parser.parse_known_args(args)
        known.leakprobe, known.file_or_dir = anew.leakprobe, anew.file_or_dir


def is_path(argument: str, folder: os.PathLike[str]) -> bool:
    """True for an argument that names tests, not steps: one that exists, or has the form of a file's."""
    name, of_test, _ = argument.partition("::")
    if argument.startswith("-") or STEPS_FORM.fullmatch(argument):
        return False
    return bool(of_test) or name.endswith(".py") or os.path.exists(os.path.join(folder, name))


def pytest_configure(config: pytest.Config) -> None:
    for form, help_text in MARKERS.values():
        config.addinivalue_line("markers", f"{form}: {help_text}")
    if is_used(config):
        from leakprobe import pytest_gate

        pytest_gate.check_switch()
        pytest_gate.Defaults.of_config(config)


def is_used(config: pytest.Config) -> bool:
    return config.getoption("leakprobe", None) is not None or any(
        config.getini(name) is not None for name in INI
    )


@pytest.hookimpl(hookwrapper=True)
def pytest_pycollect_makeitem() -> Generator[None, "Result[object]", None]:
    """A marker with wrong arguments is an error of the collection, which shows the right form."""
    outcome = yield
    made = outcome.get_result()
    for item in made if isinstance(made, list) else [made]:
        if isinstance(item, pytest.Function) and (any(item.iter_markers("limit_growth")) or is_skipped(item)):
            from leakprobe import pytest_gate

            error = pytest_gate.marker_error(item)
            if error is not None:
                outcome.force_exception(error)
                return


def is_skipped(item: pytest.Item) -> bool:
    return isinstance(item, pytest.Function) and any(item.iter_markers("skip_growth"))


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[None]:
    with repeating(pyfuncitem):
        yield


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """unittest calls the methods of a TestCase itself, coroutines too; setUp() and tearDown() run once."""
    if not is_of_unittest(item):
        yield
        return
    with repeating(item):
        yield


@contextlib.contextmanager
def repeating(item: pytest.Function) -> Iterator[None]:
    """The repeated body in the place of the test's function, if it is to be measured."""
    wanted = (
        item.get_closest_marker("limit_growth") is not None
        or item.config.getoption("leakprobe", None) is not None
    )
    if not wanted or is_skipped(item):
        yield
        return
    from leakprobe import pytest_gate

    if pytest_gate.is_off(item):
        yield
        return
    body, measures_itself = item.obj, "no_growth" in item.fixturenames
    if inspect.iscoroutinefunction(body) or inspect.isasyncgenfunction(body):
        if not measures_itself:
            item.user_properties.append(
                (UNMEASURED, "a coroutine function that its plugin runs in a loop of its own")
            )
        yield
        return
    wrap = pytest_gate.measuring_itself if measures_itself else pytest_gate.repeated
    item.obj = wrap(item, body)
    try:
        yield
    finally:
        item.obj = body


def is_of_unittest(item: pytest.Item) -> TypeGuard[pytest.Function]:
    """True for a method of a unittest.TestCase."""
    case = getattr(sys.modules.get("unittest"), "TestCase", None)
    cls = getattr(item, "cls", None)
    return case is not None and isinstance(cls, type) and issubclass(cls, case)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[object]
) -> Generator[None, "Result[pytest.TestReport]", None]:
    """What measuring the test left goes with its report, also to the other side of xdist."""
    outcome = yield
    if call.when == "call":
        found = item.stash.get(OUTCOME, None)
        if found is not None:
            del item.stash[OUTCOME]
            setattr(outcome.get_result(), ATTRIBUTE, found)


@pytest.fixture
def no_growth(request: pytest.FixtureRequest) -> "NoGrowth":
    """Assert that memory does not grow: call it with a function, or use it as a context manager.

    no_growth(function, *args, steps="3:10", limit="256 B/step", media=..., suppressions=[...], filter=...,
    current_thread_only=False, **kwargs) calls the function 13 times, each call a step, the first 3 not
    judged, and gives the Report.  What is not conclusive, and what seems to grow, is repeated with twice the
    measured steps before the test fails.
    filter: a function that is called with each finding; those that it gives false for do not count.
    current_thread_only: growth that another Python thread allocates does not count.
    with no_growth(warmup=3, limit=..., media=..., suppressions=...) as probe: watches a loop that marks its
    own steps.
    """
    from leakprobe import pytest_gate

    return pytest_gate.NoGrowth(request.node)


def pytest_terminal_summary(terminalreporter: "TerminalReporter", config: pytest.Config) -> None:
    """How many tests were measured and how much time that added, those that grow most, annotations; one line
    if leakprobe was switched off.
    """
    reports = [
        r
        for name in ("passed", "failed", "xfailed", "xpassed")
        for r in terminalreporter.stats.get(name, [])
        if getattr(r, "when", None) == "call"
    ]
    found = [dict(r.user_properties) for r in reports]
    for line in sorted({f[DISABLED] for f in found if DISABLED in f}):
        terminalreporter.write_line(line)
    for reason, count in collections.Counter(f[UNMEASURED] for f in found if UNMEASURED in f).items():
        terminalreporter.write_line(f"leakprobe: {count} not measured: {reason}")
    measured = [f for f in found if MEASURED in f]
    if measured:
        growing = sum(f[MEASURED] == "growing" for f in measured)
        added = sum(f.get(ADDED, 0.0) for f in measured)
        terminalreporter.write_line(
            f"leakprobe: {len(measured)} measured, {growing} growing; {added:.1f} s added by repeats and checks"
        )
    for line in [*lines_of_most(reports, number_of_most(config)), *annotations(reports, config)]:
        terminalreporter.write_line(line)


def lines_of_most(reports: Sequence[pytest.TestReport], most: int) -> list[str]:
    """The tests that grow most, the fastest first, and how to see what keeps what grows."""
    grown = [(r.nodeid, getattr(r, ATTRIBUTE, None)) for r in reports]
    grown = sorted(
        ((name, o) for name, o in grown if o and o["grows"]), key=lambda pair: (-pair[1]["rate"], pair[0])
    )[:most]
    lines = ["leakprobe: tests that grow most"] if grown else []
    for name, outcome in grown:
        opens = f"  (leakprobe report {outcome['recording']})" if outcome["recording"] else ""
        lines.append(f"  {name}: {outcome['grows']}{opens}")
    return lines


def number_of_most(config: pytest.Config) -> int:
    given = config.getoption("leakprobe_most", None)
    return max(0, int(config.getini("leakprobe_most") or MOST) if given is None else given)


def annotations(reports: Sequence[pytest.TestReport], config: pytest.Config) -> list[str]:
    """Lines for GitHub about the tests that failed, where they are wanted."""
    when = config.getini("leakprobe_annotations") or AUTO
    in_github = os.environ.get("GITHUB_ACTIONS", "").lower() == "true"
    if when != ALWAYS and not (when == AUTO and in_github):
        return []
    outcomes = [getattr(r, ATTRIBUTE, None) for r in reports if r.outcome == "failed"]
    return [line for outcome in outcomes if outcome for line in outcome["annotation"].splitlines()]
