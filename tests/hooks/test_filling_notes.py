"""What a line keeps more and more slowly is no growth, but what it has is said, with its line: it may be a
cache that fills, and it may be a history whose entries get rarer.
"""

import pytest
from clocked import FREE
from fresh import run

pytest.importorskip("numpy")

LOOP = """
import json, math, random
import leakprobe, numpy

def make():
    return numpy.zeros(65536, numpy.uint8)

def train(probe, kept):
    for i in range(320):
        if i in DUE:
            kept.append(make())
        probe.step()

draws = random.Random(5)
DUE = {i for i in range(320) if draws.random() < FIRST * math.exp(-i / 80)}
ALL = []
probe = leakprobe.watch(warmup=5)
with probe:
    train(probe, KEPT)
report = probe.report().to_dict()
print(json.dumps([report["verdict"], report["notes"]]))
"""


def looked(kept, first):
    """``first``: the chance that the first step keeps something; it falls to half within 55 steps."""
    verdict, notes = run(FREE + LOOP.replace("KEPT", kept).replace("FIRST", str(first)))
    return verdict, [n for n in notes if n["kind"] == "bounded"]


@pytest.mark.parametrize(
    ("kept", "words"),
    [("[]", "fewer and fewer"), ("ALL", "in ALL (list")],
    ids=["released at the end", "still there"],
)
def test_what_slows_down_is_said_with_its_line(kept, words):
    verdict, notes = looked(kept, 1)
    line = (FREE + LOOP).lstrip("\n").split("\n").index("    return numpy.zeros(65536, numpy.uint8)") + 1
    assert verdict == "steady"
    assert [(n["medium"], n["allocation"]["lineno"]) for n in notes] == [("numpy", line)]
    assert 60 * 65536 <= notes[0]["live_bytes"] <= 95 * 65536
    assert words in notes[0]["text"]


def test_of_what_keeps_nothing_no_note_is_made():
    assert looked("[]", 0) == ("steady", [])
