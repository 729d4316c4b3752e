"""A walk changes nothing and harms nothing: many in a row, in the middle of what other threads do, over odd
tensors.
"""

import sys

import pytest
from native_support import needs_torch, run_fresh

TURNS = """
import gc, os, sys, threading
import leakprobe
class Node: pass
def rss():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
"""


def test_a_thousand_in_a_row_leave_the_process_where_it_was():
    run_fresh(
        TURNS
        + """
kept = [Node() for _ in range(300)]
for i, node in enumerate(kept):
    node.other, node.rows = kept[i - 1], [i] * 3
gc.disable()
def tangle():
    loop = Node(); loop.me = loop
def turn():
    leakprobe.snapshot()
    leakprobe.find_cycles()
    leakprobe.why(kept[5])
    leakprobe.retained_size(kept[5])
def state():
    return [sys.getrefcount(n) for n in kept], [sys.getrefcount(n.rows) for n in kept], sys.getrefcount(Node)
tangle()
for _ in range(30):
    turn()
gc.collect(), gc.collect()  # empties the interpreter's free lists too, which grow by tuples that were shortened
before, objects, blocks, resident, nones = state(), len(gc.get_objects()), sys.getallocatedblocks(), rss(), sys.getrefcount(None)
tangle()
for _ in range(250):  # four calls each
    turn()
gc.collect()
assert state() == before and abs(sys.getrefcount(None) - nones) < 50
assert abs(len(gc.get_objects()) - objects) <= 2 and abs(sys.getallocatedblocks() - blocks) <= 20
assert rss() - resident < 1 << 20, rss() - resident
"""
    )


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="shared pages are told by Linux only")
def test_in_a_forked_child_all_pages_stay_shared():
    """A walk that raised reference counts would copy whatever was made before the fork, in each worker."""
    run_fresh(
        TURNS
        + """
from leakprobe import _core
rows = [[str(k), [k]] for k in range(100_000)]
reach = _core.reach_new(10**6)
region = reach.add(rows)
reach.finish()
done, go = os.pipe(), os.pipe()
pid = os.fork()
if pid == 0:
    gc.disable()
    leakprobe.start()
    for full in (False, True):
        _core.census(full, 0, 2**32 - 1, 0)
    leakprobe.snapshot(graph=True)
    os.write(done[1], b"1")
    os.read(go[0], 1)
    os._exit(0)
assert os.read(done[0], 1) == b"1"
found = reach.copied(region, pid)
os.write(go[1], b"1")
os.waitpid(pid, 0)
assert found["present"] > 1000 and found["private"] < 0.05 * found["present"], found
"""
    )


@pytest.mark.parametrize("walks", [20, pytest.param(60, marks=pytest.mark.slow)])
def test_while_other_threads_make_and_drop_objects(walks):
    run_fresh(
        TURNS
        + f"most = {walks}"
        + """
stop, made = threading.Event(), [0, 0, 0]
sys.setswitchinterval(1e-5)
def work(number):
    ring = [None] * 100
    while not stop.is_set():
        node = Node()
        node.me, node.table, node.g = node, {i: [i] for i in range(5)}, (x for x in [node])
        ring[made[number] % 100] = node
        made[number] += 1
threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
for t in threads: t.start()
walks = 0
alive = Node(); alive.me = alive
while walks < most or min(made) < 200:
    leakprobe.find_cycles()
    leakprobe.why(alive)
    leakprobe.snapshot()
    walks += 1
stop.set()
for t in threads: t.join()
assert alive.me is alive
"""
    )


TORCH = TURNS + "import torch\ntorch.set_num_threads(1)\n"


@needs_torch
def test_other_threads_wait_until_it_has_ended():
    """What they free a walk has met; torch's methods of sparse tensors would let them."""
    run_fresh(
        TORCH
        + """
import time, warnings
warnings.simplefilter("ignore")
turns, ended, eye, box = [0], [], torch.eye(4), Node()
def other():
    while not ended:
        turns[0] += 1
        time.sleep(0)  # gives the turn back, which nothing else would before 1000 s are over
def turns_of(make):
    box.kept, mark = [make() for _ in range(200)], Node()
    box.kept.append(mark)
    before = turns[0]
    leakprobe.why(mark)
    return turns[0] - before
sys.setswitchinterval(1000)  # another thread runs only where this one lets it
thread = threading.Thread(target=other)
thread.start()
turns_of(eye.clone)
time.sleep(0)
kinds = eye.clone, eye.to_sparse, eye.to_sparse_csr, lambda: eye.to_sparse_csr().requires_grad_()
found = [turns_of(make) for make in kinds]
ended.append(True)
thread.join()
assert found == [0] * 4 and turns[0] > 0, (found, turns)
"""
    )


def test_in_the_middle_of_backward_of_another_thread():
    pytest.importorskip("torch")
    run_fresh(
        TORCH
        + """
inside, go, grads = threading.Event(), threading.Event(), []
class Wait(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.me = ctx
        return x * 2
    @staticmethod
    def backward(ctx, g):
        inside.set()
        go.wait()
        return g * 2
def work():
    x = torch.ones(5, requires_grad=True)
    hidden = (x * 3).exp()
    hidden.register_hook(lambda g: grads.append(g))
    loss = Wait.apply(hidden).sin().sum()
    loss.backward()
    grads.append(x.grad)
def of_wait():
    return [str(c.path) for c in leakprobe.find_cycles() if "WaitBackward" in str(c.objects)]
def run(walk):
    inside.clear(), go.clear(), grads.clear()
    before = of_wait()  # what the first run left
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    inside.wait()
    for _ in range(5 if walk else 0):
        assert of_wait() == before, of_wait()
        leakprobe.snapshot()
    go.set()
    thread.join()
    return [g.tolist() for g in grads]
gc.disable()
assert run(False) == run(True)
assert len(of_wait()) == 2  # now they are garbage
"""
    )


def test_during_the_iteration_of_a_loader():
    pytest.importorskip("torch")
    run_fresh(
        TORCH
        + """
data = torch.utils.data.TensorDataset(torch.arange(400.).reshape(100, 4))
for workers in (0, 2):
    seen = []
    for (batch,) in torch.utils.data.DataLoader(data, batch_size=10, num_workers=workers):
        seen.append(batch.clone())
        assert not any("Loader" in c.text() for c in leakprobe.find_cycles())
        assert leakprobe.why(batch)
    assert torch.cat(seen).equal(data.tensors[0])
"""
    )


def test_odd_tensors_are_never_dispatched_and_have_no_bytes_that_are_not_there():
    pytest.importorskip("torch")
    run_fresh(
        TORCH
        + """
import warnings
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
warnings.simplefilter("ignore")
ran = []
class Raises(torch.Tensor):
    @classmethod
    def __torch_function__(cls, *args, **kwargs):
        ran.append("function"); raise RuntimeError("asked")
class Wrapper(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, dispatch_sizes_strides_policy="sizes",
                                                   dispatch_device=True, dispatch_layout=True)
    def __init__(self, inner):
        self.inner = inner
    @classmethod
    def __torch_dispatch__(cls, *args, **kwargs):
        ran.append("dispatch"); raise RuntimeError("asked")
class Mode(TorchDispatchMode):
    def __torch_dispatch__(self, *args, **kwargs):
        ran.append("mode"); raise RuntimeError("asked")
class Functions(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, *args, **kwargs):
        ran.append("function mode"); raise RuntimeError("asked")
box = Node()
with FakeTensorMode():
    box.fake = torch.ones(1000, 1000)
box.meta = torch.empty(1000, 1000, device="meta")
box.sparse = torch.eye(4).to_sparse()
box.csr = torch.eye(4).to_sparse_csr()
box.nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
box.jagged = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
box.raises = torch.ones(10).as_subclass(Raises)
box.wrapper = Wrapper(torch.ones(1000))
box.quantized = torch.quantize_per_tensor(torch.ones(8), 0.1, 0, torch.quint8)
box.empty = torch.empty(0)
def walk():
    ran.clear()
    leakprobe.find_cycles(), leakprobe.why(box), leakprobe.snapshot()
    size = leakprobe.retained_size(box)
    assert ran == [], ran
    return size
size = walk()
assert 4000 < size < 100_000, size  # the wrapper's inner tensor is there; a million fake elements are not
with Mode():
    assert abs(walk() - size) < 2000
with Functions():
    assert abs(walk() - size) < 2000
def batched(x):
    box.batched = x
    walk()
    return x.sum()
torch.vmap(batched)(torch.ones(3, 2))
torch.func.grad(batched)(torch.ones(3))
torch.func.functionalize(batched)(torch.ones(3))
del box.batched
# Lost in a cycle, each of them is found as garbage without being asked anything.
box.me = box
del box
ran.clear()
gc.disable()
found = [c for c in leakprobe.find_cycles() if "Node" in c.path[0]["type"]]
assert len(found) == 1 and ran == [] and 4000 < sum(found[0].bytes.values()) < 100_000, (found[0].bytes, ran)
"""
    )


def test_a_distributed_tensor_on_one_process(tmp_path):
    torch = pytest.importorskip("torch")
    if not torch.distributed.is_available():
        pytest.skip("this torch has no distributed package")
    run_fresh(
        TORCH
        + """
import torch.distributed as dist
from torch.distributed.tensor import DTensor, init_device_mesh, distribute_tensor, Shard
dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=0, world_size=1)
mesh = init_device_mesh("cpu", (1,))
box = Node()
box.tensor = distribute_tensor(torch.ones(50, 100), mesh, [Shard(0)])
assert type(box.tensor) is DTensor
assert 20_000 <= leakprobe.retained_size(box) < 40_000
assert any("DTensor" in str(p) for p in leakprobe.why(box.tensor._local_tensor))
leakprobe.find_cycles()
dist.destroy_process_group()
""",
        tmp_path / "store",
    )


@needs_torch
def test_a_view_whose_base_was_written_keeps_its_function():
    """torch replaces the function of such a view by AsStridedBackward0 where somebody asks for it."""
    run_fresh(
        TURNS
        + """
import torch
weight = torch.nn.Parameter(torch.ones(4, 4))
kept = []
for step in range(3):
    view = weight.t()
    made = type(view.grad_fn).__name__  # its wrapper stays as long as it does
    kept.append(view)
    kept.append((torch.ones(2, 4) @ view).sum())  # saves the view
    with torch.no_grad():
        weight.add_(1)
    leakprobe.snapshot()
    leakprobe.why(kept[0])
    leakprobe.retained_size(kept[1])
names = [type(one).__name__ for one in gc.get_objects()]
assert made == "TBackward0" and "AsStridedBackward0" not in names, [n for n in names if "Backward" in n]
assert kept[0].grad_fn.name() == "AsStridedBackward0"  # what this test would have met
"""
    )
