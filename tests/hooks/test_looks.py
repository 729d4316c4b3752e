"""When the heap is looked at, and how much of it: rarely and cheaply while nothing grows, and none that sees
itself.
"""

from clocked import Looked

LEAK = "        if step > 400: kept += [['%d of many' % step] for _ in range(4)]\n"
TABLE = "        table[step + 1000] = None\n"
LOOP = """
table, kept = {}, []
with leakprobe.watch() as probe:
    for step in range(1, 2401):
        pass
        mark(probe)
"""


def looked(body: str) -> Looked:
    return Looked(LOOP.replace("        pass\n", body))


def test_a_rise_that_was_found_harmless_is_looked_into_ever_more_rarely_and_hides_nothing():
    found = looked(TABLE + LEAK)
    assert found.full_between(1, 400) <= 6, found.full  # the table takes less than the limit
    assert found.full_between(401, 1000) >= 2, found.full


def test_while_only_the_table_grows_one_full_look_follows_in_two_thousand_steps():
    found = looked(TABLE)
    assert 1 <= found.full_between(26, 2400) <= 3, found.full
    assert found.verdict == "steady", found.findings


def test_a_rise_after_a_long_rest_is_looked_into():
    found = looked(LEAK)
    assert found.full_between(26, 400) == 0, found.full
    assert found.full_between(401, 1000) >= 2, found.full


OWN_ROWS = """
kept = []
lines = "\\n".join("    kept.append([i])" for _ in range(80))
exec("def grow(i):\\n" + lines)
with leakprobe.watch() as probe:
    for step in range(60):
        kept.append(str(step) + "x")
        if step > 30: grow(step)
        mark(probe)
"""


def test_the_rows_of_a_look_are_not_blocks_that_nothing_explains():
    found = Looked(OWN_ROWS)
    assert len(found.full) > 3, found.full
    assert True not in found.followed  # frees are followed where blocks are added that nothing explains
