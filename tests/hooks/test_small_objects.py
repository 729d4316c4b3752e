"""Objects of 16 bytes and their neighbours: each names its own line, under both mechanisms."""

import pytest
from fresh import run

CODE = """
import json
from leakprobe import _core

class Empty:
    __slots__ = ()

class Plain:
    pass

class Slotted:
    __slots__ = ("a",)

def make(i):
    return [
        object(),
        Empty(),
        i + 0.5,
        (i,),
        object(),
        Plain(),
        Slotted(),
        [i],
        Empty(),
        "%d" % (i + 1000),
    ]

_core.start(8, "/nowhere/")
kept = [make(i) for i in range(2000)]
del kept[::3]
kept += [make(i) for i in range(2000)]
first = make.__code__.co_firstlineno + 2
wrong = 0
for row in kept:
    for at, op in enumerate(row):
        stamp = _core.site_of(op)
        line = _core.site_frames(stamp[0])[0][1] if stamp else None
        wrong += line != first + at
print(json.dumps([len(kept), wrong]))
"""


@pytest.mark.parametrize("mechanism", ["", "allocator"])
@pytest.mark.parametrize("allocator", ["pymalloc", "malloc", "debug"])
def test_neighbours_of_any_size_name_their_own_line(mechanism, allocator):
    kept, wrong = run(CODE, env={"PYTHONMALLOC": allocator, "LEAKPROBE_MECHANISM": mechanism})
    assert kept == 3333 and wrong == 0
