from collections.abc import Iterable

import pytest

from leakprobe.pytest_gate import NoGrowth

history: list[list[int]] = []


def train_step(batch: Iterable[int]) -> None:
    history.append([x * 2 for x in batch])  # the leak


def test_step(no_growth: NoGrowth) -> None:
    no_growth(train_step, range(1000), steps="3:10")


@pytest.mark.limit_growth("1 KiB/step")
def test_sorting() -> None:  # the body is the step
    sorted(range(1000), reverse=True)
