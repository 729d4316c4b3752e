"""Which rises of private memory are sure enough for unexplained growth."""

import pytest

from leakprobe.judge.rises import Rise
from leakprobe.watch.process_account import is_sure

KIB = 1024


@pytest.mark.parametrize(
    ("steps", "rate", "rises", "sure"),
    [
        (64, 16 * KIB, 20, True),  # 1 MiB, however it comes
        (60, 600 * KIB, 40, True),
        (60, 600 * KIB, 20, False),  # in half of the readings
        (60, 16 * KIB, 40, False),  # less than 1 MiB
        (7, 150 * KIB, 40, False),  # 1 MiB over a few epochs: an arena, tables of a library
        (7, 2 * KIB * KIB, 40, True),
    ],
)
def test_fewer_steps_need_more_of_it_in_nearly_every_reading(steps, rate, rises, sure):
    rise = Rise(rate, (10, 0), (10 + steps, rate * steps), rises, 40, 0.0, rate)
    assert is_sure(rise, True) is sure
    assert is_sure(rise, False) is (sure and steps >= 64)


def test_what_comes_in_a_jump_does_not_count():
    """Pages that the kernel took back and gave again, beside a rise that is known."""
    rise = Rise(54 * KIB, (17, 0), (50, 54 * KIB * 33), 20, 20, 0.0, 9 * KIB)
    assert not is_sure(rise, True)
