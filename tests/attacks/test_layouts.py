"""What only looks like a type whose layout is known, and references to what is no object: nothing is read by
a layout that is not there."""

import pytest
from fresh import run

NAMES = [
    "numpy.ndarray",
    "numpy.void",
    "numpy.dtype",
    "array.array",
    "collections.deque",
    "torch._C.TensorBase",
    "torch._C.StorageBase",
    "_ctypes._CData",
    "functools._lru_cache_wrapper",
]

NAMED = """
import json
from leakprobe import _core

class Plain: pass

Named = type(NAME, (), {})
_core.start(16, "/nowhere/")
alike = [[cls() for _ in range(2000)] for cls in (Plain, Named)]
_core.mark()
census = _core.census(True, 0, 2**32 - 1, 0)
_core.graph_take(torch=False)
reach = _core.reach_new(0)
reached = [reach.region(reach.add(objects)) for objects in alike]
sizes = [_core.size_of(objects[0]) for objects in alike]
print(json.dumps([census.bad_pointer_count, sizes, [[r["count"], r["bytes"]] for r in reached]]))
"""


@pytest.mark.parametrize("name", NAMES)
def test_a_class_named_like_a_type_of_c_is_read_as_a_class(name):
    bad, sizes, reached = run(NAMED.replace("NAME", repr(name), 1))
    assert bad == 0 and sizes[0] == sizes[1] and reached[0] == reached[1]


MADE_UP = """
import ctypes, gc, json
from leakprobe import _core
_core.start(16, "/nowhere/")
numbers = tuple(float(i) + 0.5 for i in range(50))
for _ in range(5):
    gc.collect()  # so that it is tracked no more: its header says nothing
assert not gc.is_tracked(numbers)
one, kept = [None], []
for step in range(3):
    kept.append([object() for _ in range(10)])
    _core.mark()
_core.follow_frees(True)
items = ctypes.c_void_p.from_address(id(one) + list.__basicsize__ - 16).value
item = ctypes.c_void_p.from_address(items)
there, item.value = item.value, id(numbers) - 16
try:
    counts = [_core.census(True, 0, 2**32 - 1, 0).bad_pointer_count for _ in range(2)]
finally:
    item.value = there
print(json.dumps(counts))
"""


def test_a_reference_to_a_header_is_left_alone_beside_stamps():
    assert run(MADE_UP) == [1, 1]


REUSED = """
import gc, json
import numpy as np
from leakprobe import _core
reach = _core.reach_new(0)

def add_one_of_a_class_that_dies():
    cls = type("Dies", (np.ndarray,), {})
    reach.add(np.zeros(3).view(cls))
    return id(cls)

dead = add_one_of_a_class_that_dies()
gc.collect()
kept, counted = [], None
while counted is None and len(kept) < 20_000:
    kept.append(type("Other", (bytes,), {}))
    if id(kept[-1]) == dead:
        counted = reach.region(reach.add(kept[-1](b"A" * 200)))["count"]
print(json.dumps(counted))
"""


def test_a_class_at_the_address_of_another_is_read_as_it_is():
    pytest.importorskip("numpy")
    counted = run(REUSED)
    if counted is None:
        pytest.skip("no class got the address of the one that died")
    assert counted >= 1


LOCKED = """
import ctypes, json, sys
libc = ctypes.CDLL(None, use_errno=True)
refused = libc.mlockall(1 | 2)
import leakprobe
from leakprobe import _core
kept, born = [], []
for lists in (300, 100):
    with leakprobe.watch() as probe:
        for step in range(30):
            kept.append([[step] for _ in range(lists)])
            probe.step()
        census = _core.census(True, 0, 2**32 - 1, 0)
        born.append(census.object_count - census.old_count)
print(json.dumps([refused, probe.report().verdict, born]))
"""


def test_pages_that_are_locked_in_memory_are_emptied_all_the_same():
    refused, verdict, (first, second) = run(LOCKED)
    if refused:
        pytest.skip("mlockall() is refused here")
    # What the first run kept is older than the second: no stamp of it is left.
    assert verdict == "growing" and first >= 30 * 300 > second >= 30 * 100
