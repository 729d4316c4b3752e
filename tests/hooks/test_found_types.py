"""What a scan found by site and type, without a walk; and the sites of a clean loop, which are read so."""

import pytest
from fresh import run

FOUND = """
import collections, datetime, json
from leakprobe import _core
from leakprobe.model.frames import PACKAGE_DIR
class Instance:
    def __init__(self): self.name = "of it"
class Slotted: __slots__ = ("name",)
kept = []
def keep(step):
    kept.append(MAKE)
_core.start(16, PACKAGE_DIR)
_core.mark()
for step in range(COUNT):
    keep(step)
_core.mark()
sites = [s for s, live in _core.live_counts().items() if live >= COUNT // 2 and s >= _core.SITE_FIRST]
_core.scan_begin(sites)
while not _core.scan_slice(1 << 40): pass
found = {row.type: (row.count, row.bytes / row.count) for row in _core.scan_types() if row.type}
_core.scan_end()
census = _core.census(True, 1, 100, 1)  # kept was born before: it counts at the line that enlarges it
wanted = {g.type: (g.count, g.bytes / g.count) for g in census.groups if g.site in sites and g.window_count}
print(json.dumps([found, wanted]))
"""


@pytest.mark.parametrize("count", [500, 9000])
@pytest.mark.parametrize(
    "make",
    [
        "[step, 2, 3]",
        "(float(step), 1)",
        "{step: 1}",
        "{step}",
        "Instance()",
        "Slotted()",
        "object()",
        "lambda: step",
        "collections.deque([step])",
        "datetime.datetime(2000, 1, 1)",
        "bytearray(300)",
        "bytes(600 + step % 7)",
        "complex(step, 1)",
        "'%06d' % step",
    ],
)
def test_types_and_sizes_are_those_of_a_census(make, count):
    found, wanted = run(FOUND.replace("MAKE", make).replace("COUNT", str(count)))
    assert found.keys() >= wanted.keys() and wanted
    for kind, (number, size) in wanted.items():
        assert found[kind] == [pytest.approx(number, rel=0.1), pytest.approx(size, rel=0.1)], kind


def test_a_clean_loop_tells_what_is_alive_of_it():
    """Without a walk."""
    report = run("""
        import json, leakprobe
        from leakprobe import _core
        def refused(*arguments):
            raise AssertionError("a walk")
        _core.confirm = refused
        class Part: pass
        ring = []
        with leakprobe.watch() as probe:
            for step in range(200):
                ring.append([Part() for i in range(300)])
                del ring[:-3]
                probe.step()
        print(json.dumps(probe.report().to_dict()))
    """)
    (parts,) = [row for row in report["sites"] if row["type"] == "__main__.Part"]
    assert report["verdict"] == "steady" and not report["notes"]
    assert parts["live_count"] == pytest.approx(900, rel=0.1)
    assert sum(count for first, _, count, _ in parts["survivors"] if first >= 195) == parts["live_count"]
