"""Private memory of the process that caches fill: what is seen at a line explains it, leak or none."""

import random

import pytest

import leakprobe

KEYS, STEPS = 80, 100


def random_keys(steps, chance):
    """The later, the fewer keys are new."""
    tables = {}
    for _ in steps:
        tables.setdefault(chance.randrange(KEYS), dict.fromkeys(range(1000, 3100)))


@pytest.mark.parametrize("seed", range(3))
def test_a_cache_that_fills_explains_the_growth_of_the_process(seed):
    with leakprobe.watch() as probe:
        random_keys(probe.steps(range(STEPS)), random.Random(seed))
    causes = [(f.kind, f.medium) for f in probe.report().findings]
    assert ("unexplained_growth", "native") not in causes
