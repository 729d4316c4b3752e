"""Several blocks that give way to larger ones are growth; a pool of blocks of random sizes is none."""

import pytest
from clocked import FREE
from fresh import run
from native_support import needs_torch

LOOP = """
import json, random, leakprobe
import numpy as np

chance = random.Random(3)

class Store:
    def __init__(self):
        self.parts, self.text, self.levels = {}, {}, [[] for _ in range(20)]
        self.pool = [np.zeros(100) for _ in range(12)]

    def join(self, key, rows):
        old = self.parts.get(key)
        self.parts[key] = rows if old is None else np.concatenate([old, rows])

    def write(self, key, line):
        self.text[key] = self.text.get(key, "") + line

    def merge(self, rows):
        self.levels[0].append(rows)
        for below, level in zip(self.levels, self.levels[1:]):
            if len(below) == 4:
                level.append(np.concatenate(below))
                below.clear()

    def replace(self, place, rows):
        self.pool[place] = rows

store = Store()
with leakprobe.watch() as probe:
    for step in range(200):
        BODY
        probe.step()
report = probe.report().to_dict()
print(json.dumps([report["verdict"], report["findings"]]))
"""


def report_of(body, folder):
    """Whether content is carried over is read from the source, so it is a file."""
    path = folder / "store.py"
    path.write_text(FREE + LOOP.replace("BODY", body))
    return run(f"import runpy; runpy.run_path({str(path)!r}, run_name='__main__')")


@pytest.mark.parametrize(
    ("body", "function"),
    [
        ("store.join(chance.randrange(5), np.ones(chance.randrange(300, 900)))", "join"),
        ("store.write(chance.randrange(5), 'x' * chance.randrange(2400, 7200))", "write"),
        ("store.merge(np.ones(chance.randrange(300, 900)))", "merge"),
    ],
    ids=["arrays by key", "texts by key", "segments"],
)
def test_several_that_give_way_to_larger_ones(body, function, tmp_path):
    verdict, (finding,) = report_of(body, tmp_path)
    assert verdict == "growing" and finding["cause"] == "growing_buffer"
    assert finding["allocation"]["function"].endswith(function)
    assert finding["bytes_per_step"] == pytest.approx(8 * 600, rel=0.2)
    assert finding["holder"]["grown_at"]["function"].endswith(function)


@pytest.mark.parametrize("seed", range(4))
def test_a_pool_of_random_sizes_is_steady(seed, tmp_path):
    size = "int(800 * chance.paretovariate(1.5))"
    body = f"chance.seed({seed}) if step == 0 else None; store.replace(chance.randrange(12), np.ones({size}))"
    assert report_of(body, tmp_path) == ["steady", []]


RESTS = """
import json, leakprobe
import numpy as np, torch

def fill(probe):
    rows, text = torch.ones(8, 100), ""
    for step in range(300):
        if step < 150:
            rows = torch.cat([rows, torch.ones(8, 100)])
            text += "x" * 4000
        probe.step()
        reports.append(probe.report().to_dict()) if step == 140 else None

reports = []
with leakprobe.watch() as probe:
    fill(probe)
    report = probe.report().to_dict()
print(json.dumps([[f["cause"] for f in reports[0]["findings"]], report["verdict"], report["findings"]]))
"""


@needs_torch
def test_what_has_stopped_is_no_finding_though_it_is_let_go_with_the_loop(tmp_path):
    path = tmp_path / "fill.py"
    path.write_text(FREE + RESTS)
    before, verdict, findings = run(
        f"import runpy, torch; runpy.run_path({str(path)!r}, run_name='__main__')"
    )
    assert before == ["growing_buffer"] * 2
    assert (verdict, findings) == ("steady", [])
