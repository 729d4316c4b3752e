"""Live counts of native blocks at each mark, by line: what the judge of blocks rests on."""

import collections
import contextlib
import random

import pytest

from leakprobe import _core
from leakprobe.model.frames import PACKAGE_DIR

np = pytest.importorskip("numpy", reason="needs numpy")


@contextlib.contextmanager
def hooks():
    _core.start(16, PACKAGE_DIR)
    _core.native_install(["numpy"])
    try:
        yield
    finally:
        _core.native_uninstall()
        _core.stop()


def make():
    return np.zeros(1000)


def series_of_this_file():
    """The series of the blocks that make() made."""
    rows = [row for row in _core.ledger_groups(0, 1 << 30, 0) if row.medium == "numpy"]
    rows = [
        row
        for row in rows
        if _core.site_frames(row.site)[0][:2] == (__file__, make.__code__.co_firstlineno + 1)
    ]
    assert len(rows) == 1
    return _core.line_series("numpy", rows[0].site)


@pytest.mark.parametrize("attempt", [1, 2])  # the second begins with tables that were used before
def test_each_mark_has_its_count(attempt):
    dice, kept, truth = random.Random(attempt), collections.deque(), []
    with hooks():
        for _ in range(50):
            for _ in range(dice.randrange(4)):
                kept.append(make())
            while len(kept) > 12:
                kept.popleft()
            _core.mark()
            truth.append(len(kept))
        series = series_of_this_file()
    assert series.live == truth[-1]
    settled = len(truth) // 2  # an instruction that the interpreter specialises joins a step late
    assert series.low[settled:] == series.high[settled:] == tuple(truth[settled:])


def test_a_line_without_a_second_birth_has_none():
    with hooks():
        kept = make()
        _core.mark()
        assert series_of_this_file() is None
        del kept
    with pytest.raises(Exception, match="unknown medium"):
        _core.line_series("paper", 17)
