"""Names that nothing but CPython's cache of attribute lookups keeps, which die at any lookup of a walk."""

import pytest
from fresh import run

pytest.importorskip("torch", reason="its getters look names up")

TRACED = """
import ctypes, json, torch
from leakprobe import _core
from leakprobe.model.frames import PACKAGE_DIR
_core.start(16, PACKAGE_DIR)
_core.mark()
tensors = []
for step in range(30):
    lost = [torch.ones(8)]
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(lost))  # what keeps it is searched in other objects' memory
    tensors.append(torch.ones(8, requires_grad=True) * lost[0])
    del lost
    _core.mark()
sites = [(id(list), site) for site, live in _core.live_counts().items() if live >= 25]
assert sites and _core.follow_frees(True)
class Any:
    def __getattr__(self, name): return None
for again in range(3):
    for i in range(20_000):  # more than the cache has room for
        hasattr(Any, "looked up %d" % i)
    traced = _core.trace(sites, [], 0, 40, torch_budget=100_000, autograd_marks=[])
print(json.dumps(len(traced["entries"]) if "entries" in traced else traced["nodes"] > 0))
"""


def test_a_name_that_dies_during_a_walk_is_not_read():
    """What is freed is overwritten there, so that to read it crashes."""
    assert run(TRACED, env={"PYTHONMALLOC": "debug"})
