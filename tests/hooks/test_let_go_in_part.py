"""Two leaks, of which one goes with the loop: what a function had kept is gone when it returns, and what a
module keeps is there still.  Both are reported.
"""

import pytest
from clocked import FREE
from fresh import run

LOOP = """
import json
import leakprobe

class Row:
    __slots__ = ("number",)

STAYS = []

def train(probe):
    goes = []
    for _ in range(200):
        goes.append(bytearray(5000))
        STAYS.extend(Row() for _ in range(ROWS))
        probe.step()

probe = leakprobe.watch(warmup=5)
with probe:
    train(probe)
# a sanitizer keeps memory of its own
found = [f for f in probe.report().to_dict()["findings"] if f["medium"] == "python"]
print(json.dumps([[f["allocation"]["lineno"], f["bytes_per_step"], f["path"]] for f in found]))
"""


@pytest.mark.parametrize("rows", [20, 400])
def test_each_is_reported_with_its_line_rate_and_owner(rows):
    lines = (FREE + LOOP).lstrip("\n").split("\n")
    goes, stays = (
        next(n for n, line in enumerate(lines, 1) if word in line) for word in ("goes.append", "STAYS.extend")
    )
    found = {line: (rate, path) for line, rate, path in run(FREE + LOOP.replace("ROWS", str(rows)))}
    assert found.keys() == {goes, stays}
    assert found[goes][0] == pytest.approx(5057 + 8, rel=0.05)
    assert found[stays][0] == pytest.approx(48 * rows, rel=0.1)
    assert any("goes (list" in step["text"] for step in found[goes][1])
    assert any("STAYS (list" in step["text"] for step in found[stays][1])
