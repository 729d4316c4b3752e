"""Storages on devices that have no medium: a CPU tensor's stands for one, with the device of another written
over its own.
"""

import pytest

pytest.importorskip("torch")

from native_support import run_fresh

CODE = """
import ctypes, gc, sys
import torch, leakprobe
from leakprobe import find_cycles
gc.collect()
gc.disable()
class Node: pass
node = Node()
node.me, node.data = node, torch.empty(8 << 20, dtype=torch.uint8)
address = node.data.untyped_storage()._cdata
words = (ctypes.c_uint16 * 64).from_address(address)
assert 0xFF00 in words, "the device of a StorageImpl: CPU, without an index"
at = list(words).index(0xFF00)
del node
def bytes_of_cycle():
    (cycle,) = [c for c in find_cycles() if "Node" in str(c.path)]
    return {name: size for name, size in cycle.bytes.items() if size >= 8 << 20}
assert list(bytes_of_cycle()) == ["cpu"], bytes_of_cycle()
words[at] = int(sys.argv[1])
found = bytes_of_cycle()
words[at] = 0xFF00
assert not found, found
"""


@pytest.mark.parametrize("word", [12, 13, 16 << 8 | 1], ids=["xpu", "mps", "cuda:16"])
def test_they_are_no_memory_of_the_host(word):
    run_fresh(CODE, word)
