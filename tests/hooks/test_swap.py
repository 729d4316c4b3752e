"""Memory that the kernel has put into swap is there all the same."""

from fresh import run
from native_support import build, linux_only

pytestmark = linux_only

CODE = """
import json
from leakprobe import _core
class Node: __slots__ = ("x",)
kept = []
_core.start(16, "/nowhere")
for step in range(50):
    kept.append([Node() for _ in range(1000)])
    _core.mark()
site = _core.site_base(max((s for s in _core.live_counts() if s >= 16), key=_core.live_counts().get))
_core.scan_begin([site])
while not _core.scan_slice(10**9): pass
found = sum(row.count for row in _core.scan_result().rows)
_core.scan_end()
born = _core.site_of(kept[40][0])[1]
for _ in range(4060): _core.mark()  # epochs are merged, which rewrites them
print(json.dumps([_core.live_of([site])[site], found, born, _core.site_of(kept[40][0])[1]]))
"""


def test_a_scan_and_a_merge_of_epochs_meet_what_is_in_swap(tmp_path):
    """The kernel's answers are those of a library here: no page is in memory, some swap is in use."""
    library = build("swapped.c", tmp_path / "libswapped.so")
    plain = run(CODE)
    assert plain[0] == plain[1] >= 50_000
    assert run(CODE, env={"LD_PRELOAD": str(library)}) == plain
