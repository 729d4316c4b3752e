"""Private memory of the process that caches fill: what is seen at a line explains it, leak or none."""

import json

import forked
import pytest

SCRIPT = """
import json, random
import leakprobe

tables, chance = {}, random.Random(SEED)
with leakprobe.watch() as probe:
    for _ in probe.steps(range(100)):  # the later, the fewer keys are new
        tables.setdefault(chance.randrange(80), dict.fromkeys(range(1000, 3100)))
print(json.dumps([finding.kind for finding in probe.report().findings]))
"""


@pytest.mark.parametrize("seed", range(3))
def test_a_cache_that_fills_explains_the_growth_of_the_process(seed, tmp_path):
    script = tmp_path / "cache.py"
    script.write_text(SCRIPT.replace("SEED", str(seed)))
    done = forked.run([script])
    assert done.returncode == 0, done.stderr
    assert "unexplained_growth" not in json.loads(done.stdout)
