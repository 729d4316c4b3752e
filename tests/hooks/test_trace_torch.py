"""Who keeps what grows, through tensors and autograd graphs; each in a fresh process."""

import pytest
from trace_support import bytes_of, holders, path_of, run, texts, types_of, with_holder

torch = pytest.importorskip("torch")
SETUP = """
import torch
torch.manual_seed(0)
torch.set_num_threads(1)
"""


def run_torch(body, **options):
    import textwrap

    return run(SETUP + textwrap.dedent(body), **options)


def total(result, medium="cpu"):
    return sum(bytes_of(h, medium) for h in holders(result)) + result["trace"]["rest"]["bytes"]


def test_a_kept_loss_keeps_its_graph():
    result = run_torch(
        """
        layer = torch.nn.Linear(32, 32)
        history = []
        begin("cpu")
        def step(i):
            history.append(layer(torch.randn(64, 32)).relu().mean())
        loop(step)
        done(trace())
        """
    )
    entry = with_holder(result, "history (list, 14 items)")
    # Per step: the input, the output of relu, the mean.
    assert bytes_of(entry, "cpu") == 8 * (8192 + 8192 + 4) == total(result)
    assert texts(entry)[2].startswith("[") and texts(entry)[2].endswith("] Tensor")
    assert texts(entry)[3] == ".grad_fn MeanBackward0" and entry["path"][3]["edge"] == "grad_fn"
    assert {"grad_fn", "next_functions", "saved", "buffer"} <= {p["edge"] for p in entry["path"]}
    assert "torch.Tensor" in types_of(entry)
    assert result["trace"]["wrappers"] > 0 and result["trace"]["complete"] is True


def test_a_second_trace_says_the_same():
    result = run_torch(
        """
        layer = torch.nn.Linear(32, 32)
        history = []
        begin("cpu")
        loop(lambda i: history.append({"loss": layer(torch.randn(64, 32)).relu().mean()}))
        first, second = trace(), trace()
        shape = lambda r: [(h["kind"], [p["text"] for p in h["path"]][:4], h["holder"] and h["holder"]["text"],
                            [(m["type"], m["count"], m["bytes"]) for m in h["members"] if m["medium"] == "cpu"]) for h in r["holders"]]
        done(second, same=shape(first) == shape(second), shapes=[shape(first), shape(second)])
        """
    )
    assert result["same"], result["shapes"]


def test_a_running_total_carries_a_chain():
    result = run_torch(
        """
        layer = torch.nn.Linear(32, 32)
        total = torch.zeros(())
        begin("cpu")
        def step(i):
            global total
            total = total + layer(torch.randn(64, 32)).relu().sum()
        loop(step)
        done(trace())
        """
    )
    entry = with_holder(result, "total Tensor in __main__")
    assert entry["holder"]["type"] == "module" and bytes_of(entry, "cpu") >= 8 * 2 * 8192
    assert total(result) == bytes_of(entry, "cpu")
    assert texts(entry)[1:3] == ["total Tensor", ".grad_fn AddBackward0"]


def test_module_attribute():
    result = run_torch(
        """
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(32, 32)
                self.maps = []
            def forward(self, x):
                y = self.layer(x)
                self.maps.append(y.detach())
                return y
        net = Net()
        begin("cpu")
        loop(lambda i: net(torch.randn(64, 32)))
        done(trace())
        """
    )
    entry = with_holder(result, ".maps (list, 14 items)")
    assert texts(entry)[:3] == ["__main__", "net Net", ".maps (list, 14 items)"]
    assert bytes_of(entry, "cpu") == 8 * 8192


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_csc"])
def test_a_sparse_tensor_keeps_the_storages_of_its_parts(layout):
    result = run_torch(
        f"""
        import warnings
        dense = (torch.arange(64 * 64).reshape(64, 64) % 3 == 0).float()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's own, of the first tensor of each layout
            dense.to_sparse(layout=torch.{layout})
        class Statistics: pass
        statistics = Statistics()
        statistics.kept = []
        begin("cpu")
        loop(lambda i: statistics.kept.append(dense.to_sparse(layout=torch.{layout})))
        warnings.simplefilter("error")
        done(trace())
        """
    )
    entry = with_holder(result, ".kept (list, 14 items)")
    nonzero = -(-64 * 64 // 3)
    least = nonzero * (4 + 16) if layout == "sparse_coo" else nonzero * (4 + 8) + 65 * 8
    most = nonzero * (4 + 16) + 65 * 8  # compressed indices may be views of all of them
    assert 8 * least <= bytes_of(entry, "cpu") <= 8 * most


def test_set_of_tensors_and_views():
    result = run_torch(
        """
        seen, rows, arrays = set(), [], []
        begin("cpu", "numpy")
        def step(i):
            seen.add(torch.randn(100))
            rows.append(torch.randn(64, 32)[0])
            arrays.append(torch.randn(16, 16).numpy()[0])
        loop(step)
        done(trace())
        """
    )
    assert bytes_of(with_holder(result, "seen (set, 14 items)"), "cpu") == 8 * 400
    rows = with_holder(result, "rows (list, 14 items)")
    assert (
        bytes_of(rows, "cpu") == 8 * 8192
        and "._base Tensor" in texts(rows)
        and "_base" in [p["edge"] for p in rows["path"]]
    )
    arrays = with_holder(result, "arrays (list, 14 items)")
    assert bytes_of(arrays, "cpu") == 8 * 1024 and "base" in [p["edge"] for p in arrays["path"]]


def test_what_a_custom_function_stashes():
    result = run_torch(
        """
        class Double(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x * 3)
                ctx.stash = torch.randn(500)
                return x * 2
            @staticmethod
            def backward(ctx, grad):
                return grad
        kept = []
        begin("cpu")
        loop(lambda i: kept.append(Double.apply(torch.randn(10, requires_grad=True))))
        done(trace())
        """
    )
    entry = with_holder(result, "kept (list, 14 items)")
    assert bytes_of(entry, "cpu") == total(result) == 8 * (2000 + 3 * 40)
    assert path_of(entry).endswith(".grad_fn DoubleBackward -> .stash Tensor -> buffer (cpu, 2000 bytes)")


@pytest.mark.parametrize(
    "name, step",
    [
        (
            "grad refers back",
            "p = torch.randn(1000, requires_grad=True); (p * p).sum().backward(); p.grad.back = p",
        ),
        (
            "create_graph",
            "p = torch.randn(1000, requires_grad=True); (p ** 3).sum().backward(create_graph=True)",
        ),
        (
            "hook of a non-leaf",
            "y = torch.randn(1000, requires_grad=True) * 2; y.register_hook(lambda g, y=y: y)",
        ),
        ("base keeps a view", "b = torch.randn(1000); b.view_kept = b[2:]"),
    ],
)
def test_cycles_that_the_collector_cannot_free(name, step):
    result = run_torch(
        f"""
        import warnings
        warnings.simplefilter("ignore")
        begin("cpu")
        def step(i):
            {step}
        loop(step)
        gc.collect()
        done(trace())
        """
    )
    found = [h for h in holders(result) if bytes_of(h, "cpu") >= 8 * 4000]
    assert found and {h["kind"] for h in found} == {"garbage"}, [
        (h["kind"], path_of(h)) for h in holders(result)
    ]
    cycle = [p["text"] for p in found[0]["cycle"]]
    assert cycle[-1].endswith(cycle[0]) and any(c.endswith("Tensor") for c in cycle) and len(cycle) > 2


def test_cycle_of_instances_with_tensors():
    result = run_torch(
        """
        class Node:
            pass
        begin("cpu")
        gc.disable()
        def step(i):
            a, b = Node(), Node()
            a.other, b.other = b, a
            b.data = torch.randn(1000)
        loop(step)
        done(trace())
        """
    )
    entry = next(h for h in holders(result) if bytes_of(h, "cpu"))
    assert entry["kind"] == "garbage" and bytes_of(entry, "cpu") == 8 * 4000 and entry["holder_count"] == 8
    assert entry["cycle"][0]["text"] == entry["cycle"][-1]["text"].replace(".other ", "") == "Node"


def test_no_user_code_runs():
    run_torch(
        """
        import warnings
        warnings.simplefilter("error")
        ran = []
        class Loud(torch.Tensor):
            @classmethod
            def __torch_function__(cls, *args, **kwargs):
                ran.append(args)
                return super().__torch_function__(*args, **kwargs)
            def __repr__(self):
                ran.append("repr"); return "Loud"
            def __eq__(self, other):
                ran.append("eq"); return True
            def __hash__(self):
                return 7
        def pack(x):
            ran.append("pack"); return x
        def unpack(x):
            ran.append("unpack"); return x
        history, table = [], {}
        w = torch.randn(10, requires_grad=True)
        begin("cpu")
        def step(i):
            loud = torch.randn(10).as_subclass(Loud)
            table[loud] = loud
            with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
                history.append((w * w).sin())
        loop(step)
        ran.clear()
        result = trace()
        assert not ran, ran
        assert result["holders"]
        done(result)
        """
    )


def test_odd_tensors_are_read_without_error():
    run_torch(
        """
        import warnings
        warnings.simplefilter("error")
        kept = [torch.eye(3).to_sparse(), torch.eye(3).to_sparse().requires_grad_(), torch.empty(3, device="meta"), torch.empty(0), torch.nn.Parameter(torch.ones(2)),
                torch.ones(3).to(torch.bfloat16)]
        from torch._subclasses.fake_tensor import FakeTensorMode
        with FakeTensorMode() as mode:
            kept.append(torch.ones(3))
        def batched(x):
            kept.append(x)
            result = trace()
            assert result["complete"]
            kept.pop()
            return x
        begin("cpu")
        loop(lambda i: None)
        torch.vmap(batched)(torch.ones(3, 2))
        with torch.overrides.TorchFunctionMode():
            trace()
        trace()
        done()
        """
    )


def test_the_budget_for_torch_is_kept_and_told():
    result = run_torch(
        """
        history = []
        w = torch.randn(10, requires_grad=True)
        begin("cpu")
        loop(lambda i: history.append((w * w).sin().exp().sum()))
        done(trace(torch_budget=5), off=trace(torch=False)["wrappers"])
        """
    )
    assert (
        result["trace"]["complete"] is False and "budget" in result["trace"]["why_not"] and result["off"] == 0
    )


def test_it_leaves_the_graph_as_it_was():
    run_torch(
        """
        w = torch.randn(10, requires_grad=True)
        losses = [(w * i).exp().sum() for i in range(20)]
        begin("cpu")
        loop(lambda i: None)
        trace()
        def state():
            gc.collect()
            return str((len(gc.get_objects()), [sys.getrefcount(l) for l in losses], [l._use_count() for l in losses],
                        w._use_count(), sys.getrefcount(w)))
        before = state()
        for _ in range(20):
            trace()
        assert state() == before, (state(), before)
        assert torch._C._is_torch_function_enabled()
        sum(losses).backward()
        assert w.grad is not None
        import weakref
        gone = [weakref.ref(l) for l in losses]
        del losses
        assert all(g() is None for g in gone)
        """
    )


@pytest.mark.parametrize(
    "make, shown",
    [
        ("torch.from_numpy(np.frombuffer(raw, dtype=np.uint8))", [".memory ndarray", ".base bytes"]),
        (
            "torch.frombuffer(bytearray(raw), dtype=torch.uint8)[:7]",
            ["._base Tensor", ".memory (bytearray, 50000 items)"],
        ),
        (
            "torch.frombuffer(memoryview(bytearray(raw))[9:], dtype=torch.uint8)",
            [
                ".memory memoryview",
                "reference 1 of memoryview managedbuffer",
                "reference 1 of managedbuffer (bytearray, 50000 items)",
            ],
        ),
        ("torch.frombuffer(array.array('b', raw), dtype=torch.int8)", [".memory (array, 50000 items)"]),
        (
            "torch.from_numpy(np.frombuffer(raw, dtype=np.uint8)[:5]).view(5, 1).detach()",
            [".memory ndarray", ".base ndarray", ".base bytes"],
        ),
        (
            "torch.from_dlpack(np.frombuffer(bytearray(raw), dtype=np.uint8))",
            [
                ".memory ndarray",
                ".base memoryview",
                "reference 1 of memoryview managedbuffer",
                "reference 1 of managedbuffer (bytearray, 50000 items)",
            ],
        ),
    ],
)
def test_memory_that_python_lent_is_held_by_the_tensor(make, shown):
    pytest.importorskip("numpy")
    result = run_torch(
        f"""
        import array, warnings
        import numpy as np
        warnings.simplefilter("ignore")
        kept = []
        begin("cpu")
        _core.follow_frees(True)
        def step(i):
            raw = bytes(50000)
            kept.append({make})
        loop(step)
        done(trace())
        """
    )
    entries = [h for h in holders(result) if any(m["bytes"] > 300_000 for m in h["members"])]
    assert len(entries) == 1 and entries[0]["kind"] == "held", [
        (h["kind"], texts(h)) for h in holders(result)
    ]
    assert texts(entries[0])[-len(shown) :] == shown and entries[0]["holder"]["text"].startswith(
        "kept (list"
    ), texts(entries[0])
    assert not [h for h in holders(result) if h["kind"] == "lost"]


@pytest.mark.parametrize(
    "make",
    [
        "torch.from_numpy(np.zeros(5000, np.float32))",
        "torch.from_numpy(np.zeros(5000, np.float32))[:3]",
        "torch.from_numpy(torch.zeros(5000).numpy())",  # memory of torch's own
        "torch.from_dlpack(np.zeros(5000, np.float32))",
    ],
)
def test_an_array_is_held_by_the_tensor_whose_block_is_known(make):
    pytest.importorskip("numpy")
    result = run_torch(
        f"""
        import numpy as np
        kept = []
        begin("cpu", "numpy")
        _core.follow_frees(True)
        loop(lambda i: kept.extend([{make} for _ in range(5)]))
        done(trace())
        """
    )
    (entry,) = holders(result)
    assert entry["kind"] == "held" and {"numpy.ndarray", "torch.Tensor"} <= set(types_of(entry))


@pytest.mark.parametrize(
    ("make", "last"),
    [
        ("torch.ones(3000).untyped_storage()", "UntypedStorage"),
        ("(torch.ones(3000).untyped_storage(), i)", "[0] UntypedStorage"),
        ("torch.ones(3000).storage()", "._untyped_storage UntypedStorage"),
        ("torch._lazy_clone(torch.ones(3000)).untyped_storage()", "UntypedStorage"),
        ("torch._lazy_clone(torch.ones(3000))", "Tensor"),
    ],
)
def test_a_storage_object_keeps_its_memory(make, last):
    """A lazy copy stays one: to ask it for its address would copy its data."""
    result = run_torch(
        f"""
        import warnings
        warnings.simplefilter("ignore")
        kept = []
        begin("cpu")
        loop(lambda i: kept.append({make}))
        found = trace()
        lazy = [torch._C._is_cow_tensor(k) for k in kept if isinstance(k, torch.Tensor)]
        done(found, lazy=all(lazy))
        """
    )
    entry = with_holder(result, "kept (list, 14 items)")
    assert bytes_of(entry, "cpu") == 8 * 12000 == total(result) and result["lazy"]
    path = texts(entry)
    assert path[-1] == "buffer (cpu, 12000 bytes)" and path[-2].endswith(last), path
    assert entry["path"][-1]["edge"] == "buffer" and {h["kind"] for h in holders(result)} == {"held"}


def test_a_storage_in_shared_memory_keeps_it():
    result = run_torch(
        """
        kept = []
        begin("cpu", "shared")
        loop(lambda i: kept.append(torch.UntypedStorage._new_shared(12000)))
        done(trace())
        """
    )
    assert bytes_of(with_holder(result, "kept (list, 14 items)"), "shared") >= 8 * 12000


@pytest.mark.parametrize("medium", [(), ("numpy",)])
@pytest.mark.parametrize(
    "make",
    [
        "torch.from_numpy(np.ones(5000)).untyped_storage()",
        "(torch.from_numpy(np.ones(5000)),)",
        "(lambda t: (t, t.untyped_storage()))(torch.from_numpy(np.ones(5000)))",
    ],
)
def test_memory_that_python_lent_is_held_by_the_storage_object_too(make, medium):
    """Tensors and the object of one storage have one reference to the array together."""
    pytest.importorskip("numpy")
    result = run_torch(
        f"""
        import numpy as np
        kept = []
        begin("cpu", *{medium!r})
        _core.follow_frees(True)
        loop(lambda i: kept.append({make}))
        done(trace())
        """
    )
    assert {h["kind"] for h in holders(result)} == {"held"}, [(h["kind"], texts(h)) for h in holders(result)]
    assert "numpy.ndarray" in types_of(with_holder(result, "kept (list, 14 items)"))


def test_storages_that_nothing_but_their_tensors_keep():
    """torch keeps the object of a storage that was asked for once; it is no lost reference."""
    result = run_torch(
        """
        kept, w = [], torch.ones(3000, requires_grad=True)
        begin("cpu")
        def step(i):
            t = w * 2
            t.untyped_storage()
            t.detach()[5:].untyped_storage()
            kept.append(t.sin().sum())
        loop(step)
        done(trace())
        """
    )
    assert {h["kind"] for h in holders(result)} == {"held"}, [(h["kind"], texts(h)) for h in holders(result)]
    entry = with_holder(result, "kept (list, 14 items)")
    assert {"torch.storage.UntypedStorage", "torch.Tensor"} <= set(types_of(entry))
    assert texts(entry)[-2] == "._saved_self Tensor" and bytes_of(entry, "cpu") == total(result)


@pytest.mark.parametrize(
    "step",
    [
        "x = [torch.ones(3000).untyped_storage()]; x.append(x)",
        "t = torch.ones(3000); x = [t, t.untyped_storage()]; x.append(x)",
        "t = torch.ones(3000); s = t.untyped_storage(); s.tensor = t",
    ],
)
def test_storages_in_cycles_are_garbage(step):
    result = run_torch(
        f"""
        gc.disable()
        begin("cpu")
        def step(i):
            {step}
        loop(step)
        done(trace())
        """
    )
    found = [h for h in holders(result) if bytes_of(h, "cpu")]
    assert sum(bytes_of(h, "cpu") for h in found) >= 8 * 12000 and {h["kind"] for h in found} == {"garbage"}


def test_a_lost_reference_to_a_storage_object_is_one():
    result = run_torch(
        """
        import ctypes
        begin("cpu")
        def step(i):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(torch.ones(3000).untyped_storage()))
        loop(step)
        done(trace())
        """
    )
    (entry,) = [h for h in holders(result) if bytes_of(h, "cpu")]
    assert entry["kind"] == "lost" and texts(entry)[-2:] == ["UntypedStorage", "buffer (cpu, 12000 bytes)"]


def test_odd_storages_are_read_without_error():
    """No attribute of a class is asked: only torch's own getter tells where the memory is."""
    run_torch(
        """
        class Odd(torch.UntypedStorage):
            def __getattribute__(self, name):
                raise SystemExit(name)
            _cdata = property(lambda self: 0xDEAD0008)
        named = type("torch._C.StorageBase", (), {"_cdata": 0xDEAD0008})
        resized = torch.ones(3000)
        resized.untyped_storage().resize_(0)
        from torch._subclasses.fake_tensor import FakeTensorMode
        with FakeTensorMode():
            fake = torch.ones(3000)
        lazy = torch._lazy_clone(torch.ones(3000))
        kept = [Odd(5000), named(), resized, resized.untyped_storage(), torch.UntypedStorage(0), fake,
                fake.untyped_storage(), torch.ones(3, device="meta").untyped_storage(), lazy,
                lazy.untyped_storage()]
        begin("cpu")
        loop(lambda i: kept.append(Odd(3000)))
        result = trace()
        assert result["complete"] and torch._C._is_cow_tensor(lazy)
        assert any("Odd" in str(h["path"][-2]) for h in result["holders"]), result
        done()
        """
    )


def test_where_the_budget_ends_a_chain_is_missing_its_oldest_links():
    """Its state is seen at each step, by a wrapper that the graph keeps alive."""
    result = run_torch(
        """
        cell = torch.nn.GRUCell(8, 32)
        class Channel: state = torch.zeros(1, 32)
        begin("cpu")
        def step(i):
            Channel.state = cell(torch.randn(1, 8), Channel.state)
        loop(step, 60)
        done(trace(2, 57, torch_budget=300))
        """
    )
    assert result["trace"]["complete"] is False
    (entry,) = [h for h in holders(result) if h["kind"] == "held" and bytes_of(h, "cpu")]
    assert "Channel" in texts(entry)[1] and "grad_fn" in {p["edge"] for p in entry["path"]}
    assert bytes_of(entry, "cpu") > total(result) / 4
    nodes = [m["count"] for h in holders(result) for m in h["members"] if m["medium"] == "native"]
    assert len(nodes) <= 2, "all that was read hangs together"
