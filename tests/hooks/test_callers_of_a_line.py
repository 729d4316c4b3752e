"""A line that several callers reach, in turn or one after the other, leaks as a whole, though each caller has
few births; and what many lines keep, each of few births, is said.
"""

import pytest
from clocked import FREE
from fresh import run

START = """
import json
import leakprobe

KEPT = []
def put(): KEPT.append(bytearray(5000))
"""
END = """
report = probe.report().to_dict()
findings = [f for f in report["findings"] if f["medium"] in ("python", "cpu")]
print(json.dumps([report["verdict"], findings, report["notes"]]))
"""
IN_TURN = "\n".join(f"def task{i}(): put()" for i in range(12))
TASKS = f"TASKS = [{', '.join(f'task{i}' for i in range(12))}]\n"
LOOP = """
with leakprobe.watch(warmup=5) as probe:
    for i in probe.steps(range(60)):
        TASKS[i % 12]()
"""
STAGES = """
def train(steps):
    for _ in range(steps):
        put()
        probe.step()

with leakprobe.watch(warmup=5) as probe:
    train(FIRST)
    train(SECOND)
"""


def looked(program):
    return run(FREE + START + program + END)


def test_callers_in_turn_are_one_leak():
    verdict, (finding,), _ = looked(IN_TURN + "\n" + TASKS + LOOP)
    assert verdict == "growing"
    assert finding["bytes_per_step"] == pytest.approx(5057 + 8, rel=0.05)
    assert finding["count_per_step"] == pytest.approx(1, rel=0.05)
    assert "53 kept since step 5, from 53 steps" in finding["evidence"]
    assert finding["holder"]["text"].startswith("KEPT (list")


@pytest.mark.parametrize(("first", "second"), [(20, 20), (30, 90), (90, 30)])
def test_callers_one_after_the_other_are_one_leak(first, second):
    program = STAGES.replace("FIRST", str(first)).replace("SECOND", str(second))
    _, (finding,), _ = looked(program)
    steps = first + second
    assert finding["bytes_per_step"] == pytest.approx(5057 + 8, rel=0.05)
    assert f"{steps - 7} kept since step 5, from {steps - 7} steps" in finding["evidence"]
    assert finding["live_bytes"] == pytest.approx(5057 * (steps - 7), rel=0.05)
    assert finding["live_count"] == steps - 7


def test_tensors_of_callers_in_turn_are_one_leak():
    pytest.importorskip("torch")
    program = "import torch\ndef put(): KEPT.append(torch.zeros(20_000))\n"
    _, findings, _ = looked(program + IN_TURN + "\n" + TASKS + LOOP)
    assert sum(f["bytes_per_step"] for f in findings) == pytest.approx(80_000, rel=0.05)
    assert len(findings) == 1


def test_a_ring_that_callers_fill_in_turn_is_none():
    program = "import collections\nKEPT = collections.deque(maxlen=20)\n"
    verdict, findings, notes = looked(program + IN_TURN + "\n" + TASKS + LOOP.replace("60", "300"))
    assert (verdict, findings) == ("steady", []) and not [n for n in notes if n["kind"] == "warm_up"]


def test_many_lines_of_few_births_are_inconclusive():
    lines = "\n".join(f"def task{i}(): KEPT.append(bytearray(5000))" for i in range(12))
    verdict, findings, notes = looked(lines + "\n" + TASKS + LOOP)
    assert (verdict, findings) == ("inconclusive", [])
    (note,) = (n for n in notes if n["kind"] == "warm_up")
    assert "and 11 other lines are kept, each line of too few births for itself" in note["text"]
    assert note["live_bytes"] == pytest.approx(5057 * 55, rel=0.02)


def test_a_scan_that_the_end_finds_unfinished_is_begun_anew():
    """Slices of no time: the scan of the first look goes on over all of its marks."""
    program = """
from leakprobe.watch import objects
objects.SLICE_NS = 0
leaves = [[] for _ in range(200_000)]  # stamps that a slice does not come to the end of
with leakprobe.watch(warmup=5) as probe:
    more = [[] for _ in range(200_000)]
    for _ in range(15):
        put()
        probe.step()
"""
    verdict, (finding,), _ = looked(program)
    assert verdict == "growing" and "8 kept since step 5" in finding["evidence"]
