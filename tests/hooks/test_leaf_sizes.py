"""What numbers and texts take is known from a scan, without a walk of the heap."""

import pytest
from fresh import run

SIZES = """
import collections, json, sys
from leakprobe import _core
from leakprobe.model.frames import PACKAGE_DIR
class Instance: pass
class Owner(tuple): pass
Point = collections.namedtuple("Point", "x y")
kept = []
def kept_of(make):
    for step in range(40):
        kept.append(make(step))
        _core.mark()
_core.start(16, PACKAGE_DIR)
_core.mark()
kept_of(lambda step: MAKE)
sites = [s for s, live in _core.live_counts().items() if live >= 30 and s >= _core.SITE_FIRST]
_core.scan_begin(sites)
while not _core.scan_slice(1 << 40): pass
found = _core.scan_leaf_bytes(0)
_core.scan_end()
fresh = [sys.getsizeof(part) for row in kept for part in FRESH]
means = sum(fresh) / len(fresh)
print(json.dumps([list(found.values()), means, len(sites)]))
"""


def sizes(make, fresh="[row]"):
    """[what the scan says of each line, mean of what is made, lines]; ``fresh``: of a ``row`` what is new."""
    return run(SIZES.replace("MAKE", make).replace("FRESH", fresh))


@pytest.mark.parametrize(
    "make",
    [
        "step + 0.5",
        "step + 10**6",
        "3 ** (200 + 10 * step)",
        "'%06d' % step",
        "'\\u0416' * (step + 2)",
        "b'ab' * (step + 2)",
        "bytes(1000 + step)",
    ],
)
def test_the_size_of_a_leaf_is_its_own(make):
    found, mean, sites = sizes(make)
    assert sites == 1 and found == [pytest.approx(mean, rel=0.1)]


@pytest.mark.parametrize(
    "make, fresh",
    [
        ("(step, 2.5)", "[row]"),
        ("Point(step, 2.5)", "[row]"),
        ("(step, 'loss', None)", "[row]"),
        ("(step + 10**6, step + 0.5)", "[row, *row]"),
        ("((step, 1.5), (float,))", "[row, *row]"),
    ],
)
def test_so_is_that_of_a_tuple_of_leaves(make, fresh):
    found, mean, _ = sizes(make, fresh)
    assert found == [pytest.approx(mean, rel=0.1)]


@pytest.mark.parametrize(
    "make",
    [
        "[step]",
        "{step: 1}",
        "object()",
        "Instance()",
        "bytearray(9)",
        "(step, [1.5])",
        "(step, Instance())",
        "(step, bytearray(9))",
        "Owner((step, 2.5))",
        "((((step,),),),)",
        "tuple(range(step, step + 40))",
    ],
)
def test_what_has_more_than_its_own_block_is_left_to_a_walk(make):
    found, *_ = sizes(make)
    assert found == [None]


UNMAPPED = """
import ctypes, json, os
from leakprobe import _core
from leakprobe.model.frames import PACKAGE_DIR
munmap, kept = ctypes.CDLL(None).munmap, []
_core.start(16, PACKAGE_DIR)
_core.mark()
for step in range(40):
    kept.append(bytes(300_000))
    _core.mark()
sites = [s for s, live in _core.live_counts().items() if live >= 30 and s >= _core.SITE_FIRST]
for address in list(map(id, kept[::2])):
    assert munmap(ctypes.c_void_p(address & -4096), ctypes.c_size_t(4096)) == 0
_core.scan_begin(sites)
while not _core.scan_slice(1 << 40): pass
print(json.dumps([len(sites), *_core.scan_leaf_bytes(0).values()]), flush=True)
os._exit(0)
"""


def test_a_stamp_whose_block_has_gone_unseen_is_not_read():
    """A tool that was put between may free without the hook."""
    assert run(UNMAPPED) == [1, None]


def test_no_scan_is_an_error():
    code = """
import json
from leakprobe import _core
from leakprobe.errors import LeakprobeError
try:
    _core.scan_leaf_bytes(0)
except LeakprobeError as error:
    print(json.dumps(error.code))
"""
    assert run(code) == "no_scan"


ITERATED = """
def kept_of(make):
    older = [[] for _ in range(9)]
    _core.mark()
    for step in range(10**6, 10**6 + 40): kept.append(step); _core.mark()
"""


def test_one_iterator_of_the_line_and_what_is_older_do_not_count():
    """The iterator that a for statement keeps, and what was made before the loop was measured."""
    code = (
        SIZES.replace("_core.start(", f"{ITERATED}_core.start(")
        .replace("MAKE", "step")
        .replace("FRESH", "[row]")
    )
    found, mean, _ = run(code.replace("scan_leaf_bytes(0)", "scan_leaf_bytes(2)"))
    assert pytest.approx(mean, rel=0.1) in found
