"""The pytest fixture ``no_growth``: a test that fails when a loop starts to leak.

    def test_epoch(no_growth):
        no_growth(train_one_epoch, model, loader, steps="3:10")      # warm-up:measured calls

    def test_loader(no_growth):
        with no_growth(limit="64 KiB/step") as probe:
            for batch in probe.steps(loader):
                consume(batch)
"""

import io
import re

import pytest

#: Inconclusive calls are repeated with twice the measured steps, this many times at most.
RETRIES = 2


@pytest.fixture
def no_growth():
    """Assert that memory does not grow: call it with a function, or use it as a context manager.

    no_growth(function, *args, steps="3:10", limit="256 B/step", media=..., **kwargs) calls the function
    13 times, each call a step, the first 3 not judged, and gives the Report.
    with no_growth(warmup=3, limit=..., media=...) as probe: watches a loop that marks its own steps.
    """
    return NoGrowth()


class NoGrowth:
    """What the fixture gives; it keeps nothing between tests."""

    def __call__(self, function=None, *args, steps="3:10", warmup=3, limit="256 B/step", media=None, **kwargs):
        options = {"limit": limit} if media is None else {"limit": limit, "media": media}
        if function is None:
            return Watched(warmup, options)
        warmup, measured = parse_steps(steps)
        for attempt in range(RETRIES + 1):
            report = repeat(function, args, kwargs, warmup, measured * 2**attempt, options)
            if report.verdict != "inconclusive":
                break
        check(report)
        return report


class Watched:
    """The context manager: checks the report unless the body raised."""

    def __init__(self, warmup, options):
        from leakprobe.probe import watch

        self._probe = watch(warmup, **options)

    def __enter__(self):
        return self._probe.__enter__()

    def __exit__(self, kind, error, traceback):
        probe, self._probe = self._probe, None
        probe.__exit__(None, None, None)
        if kind is None:
            check(probe.report())


def repeat(function, args, kwargs, warmup, measured, options):
    """The report of warmup + measured calls."""
    from leakprobe.probe import watch

    with watch(warmup, **options) as probe:
        for _ in range(warmup + measured):
            function(*args, **kwargs)
            probe.step()
    return probe.report()


def parse_steps(text) -> tuple[int, int]:
    """(3, 10) of "3:10".  Errors: LeakprobeError "bad_argument"."""
    from leakprobe.errors import LeakprobeError

    match = re.fullmatch(r"\s*(\d+)\s*:\s*(\d+)\s*", text) if isinstance(text, str) else None
    if match is None or int(match.group(2)) < 1:
        raise LeakprobeError(f'steps must be "warm-up:measured" such as "3:10", not {text!r:.60}', "bad_argument")
    return int(match.group(1)), int(match.group(2))


def check(report) -> None:
    """Fail the test if the report is not steady; the first line says what grows and by how much."""
    if report.verdict == "steady":
        return
    if report.verdict == "inconclusive":
        pytest.fail("not enough evidence: " + str(report.steps["measured"]) + " steps measured, at least 5 are needed", pytrace=False)
    from leakprobe.units import format_rate

    first = report.findings[0]
    where = f" from {first.allocation.filename}:{first.allocation.lineno}" if first.allocation else ""
    text = io.StringIO()
    report.print(file=text)
    pytest.fail(f"memory grows: {format_rate(first.bytes_per_step)} of {first.type or first.medium}{where}\n\n{text.getvalue()}", pytrace=False)
