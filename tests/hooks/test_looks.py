"""Which looks are taken and what they go over: few and cheap ones while nothing grows, and none that sees itself."""

from fresh import run

COUNTED = """
import json, leakprobe
from leakprobe import _core
census, taken = _core.census, []
def counting(full, *rest):
    taken.append([step, bool(full)])
    return census(full, *rest)
_core.census = counting
"""

SLOW_TABLE = (
    COUNTED
    + """
table, kept = {}, []
with leakprobe.watch() as probe:
    for step in range(1, 2401):
        table[step + 1000] = None
        if step > 400: kept += [["%d of many" % step] for _ in range(4)]
        probe.step()
print(json.dumps([step for step, full in taken if full]))
"""
)


def test_a_rise_that_was_found_harmless_is_looked_into_ever_more_rarely_and_hides_nothing():
    full = run(SLOW_TABLE)
    assert len([step for step in full if step <= 400]) <= 6, full  # the table takes less than the limit
    assert any(400 < step <= 2300 for step in full), full


LATE = (
    COUNTED
    + """
kept = []
with leakprobe.watch() as probe:
    for step in range(1, 2401):
        if step > 400: kept += [["%d of many" % step] for _ in range(4)]
        probe.step()
print(json.dumps([step for step, full in taken if full]))
"""
)


def test_a_rise_after_a_long_rest_is_looked_into():
    full = run(LATE)
    assert any(400 < step <= 2300 for step in full), full


OWN_ROWS = """
import json, leakprobe
kept = []
lines = "\\n".join("    kept.append([i])" for _ in range(80))
exec("def grow(i):\\n" + lines)
with leakprobe.watch() as probe:
    for i in range(60):
        kept.append(str(i) + "x")
        if i > 30: grow(i)
        probe.step()
print(json.dumps([p[1] for p in probe._suspects._unexplained]))
"""


def test_the_rows_of_a_look_are_not_blocks_that_nothing_explains():
    rest = run(OWN_ROWS)
    assert len(rest) > 3 and max(rest) - min(rest) < 500, rest  # there are 80 groups, of 40 rows each
