"""why() and retained_size()."""

import contextlib
import sys
import weakref

import pytest

import leakprobe


class Node:
    pass


def texts(paths):
    return [str(path) for path in paths]


def test_paths_begin_at_roots_and_name_each_reference():
    node = Node()
    holder = {"key": [node]}
    found = texts(leakprobe.why(node))
    name = "test_paths_begin_at_roots_and_name_each_reference() in test_retention.py"
    assert f"{name} -> node Node" in found
    assert f"{name} -> holder (dict, 1 item) -> ['key'] (list, 1 item) -> [0] Node" in found


KEPT = Node()
KEPT.inner = Node()


def test_a_module_global():
    found = texts(leakprobe.why(KEPT.inner))
    assert any(text.endswith("test_retention -> KEPT Node -> .inner Node") for text in found), found


def test_at_most_so_many():
    node = Node()
    one, two, three = [node], [node], [node]
    assert len(leakprobe.why(node, 3)) == 3 and one == two == three and len(leakprobe.why(node)) == 4
    with pytest.raises(leakprobe.LeakprobeError, match="most"):
        leakprobe.why(node, 0)


@pytest.mark.parametrize("shared", [7, True, None, ..., int, "interned"])
def test_what_the_interpreter_shares(shared):
    with pytest.raises(leakprobe.LeakprobeError) as caught:
        leakprobe.why(shared)
    assert caught.value.code == "shared_object"


def test_what_only_the_call_keeps():
    with pytest.raises(leakprobe.LeakprobeError) as caught:
        leakprobe.why(Node())
    assert caught.value.code == "only_this_call"


def test_a_dead_proxy():
    proxy = weakref.proxy(Node())
    with pytest.raises(leakprobe.LeakprobeError) as caught:
        leakprobe.why(proxy)
    assert caught.value.code == "dead_object"


def test_a_suspended_generator():
    def generate():
        local = Node()
        yield local

    running = generate()
    reference = weakref.ref(next(running))
    assert any("local Node" in text for text in texts(leakprobe.why(reference())))


def test_through_a_graph_of_torch():
    torch = pytest.importorskip("torch")
    weight = torch.ones(100, requires_grad=True)
    reference = weakref.ref(weight)
    history = [(weight * weight).sum()]
    del weight
    found = texts(leakprobe.why(reference()))
    assert len(history) == 1
    assert any(
        "history (list, 1 item) -> [0] Tensor -> .grad_fn SumBackward0 -> .next_functions[0][0] MulBackward0"
        in t
        for t in found
    ), found


def test_retained_size_counts_what_would_go():
    shared = bytes(10_000)
    mine = [bytes(1000) for _ in range(100)] + [shared]
    size = leakprobe.retained_size(mine)
    assert sum(map(sys.getsizeof, mine[:-1])) < size < 105_000 + 3000


def test_retained_size_counts_buffers_once():
    torch = pytest.importorskip("torch")
    box = Node()
    box.t = torch.ones(10_000)
    box.view = box.t[10:]
    assert 40_000 < leakprobe.retained_size(box) < 42_000
    outside = box.t[20:]
    assert leakprobe.retained_size(box) < 2_000
    del outside
    numpy = pytest.importorskip("numpy")
    box.a = numpy.ones(5_000)
    box.b = box.a[3:]
    assert 80_000 < leakprobe.retained_size(box) < 83_000


@pytest.mark.parametrize("watched", [False, True])
def test_retained_size_of_storages_counts_their_bytes_once(watched):
    torch = pytest.importorskip("torch")
    with leakprobe.watch() if watched else contextlib.nullcontext():
        storage = torch.ones(10_000).untyped_storage()
        assert 40_000 < leakprobe.retained_size(storage) < 41_000
        both = [storage, torch.empty(0).set_(storage), torch.empty(0).set_(storage)[5:].detach()]
        assert leakprobe.retained_size(both) < 2_000  # a variable has the storage
        del storage
        assert 40_000 < leakprobe.retained_size(both) < 42_000
        del both[0]  # torch keeps the object for as long as the tensors live
        assert 40_000 < leakprobe.retained_size(both) < 42_000
        base = torch.ones(10_000)
        views = [base, base[5:], base.detach()]
        del base
        assert 40_000 < leakprobe.retained_size(views) < 42_000


@pytest.mark.parametrize("watched", [False, True])
def test_retained_size_counts_lent_memory_once(watched):
    torch, numpy = pytest.importorskip("torch"), pytest.importorskip("numpy")
    with leakprobe.watch() if watched else contextlib.nullcontext():
        tensor = torch.from_numpy(numpy.ones(5_000))
        assert 40_000 < leakprobe.retained_size(tensor) < 41_000
        storage = torch.from_numpy(numpy.ones(5_000)).untyped_storage()
        assert 40_000 < leakprobe.retained_size(storage) < 41_000
        both = [torch.empty(0).set_(storage), storage]
        del storage
        assert 40_000 < leakprobe.retained_size(both) < 42_000


def test_without_a_way_to_count_references_nothing_changes():
    node = Node()
    before = sys.getrefcount(node)
    for _ in range(20):
        leakprobe.why(node)
        leakprobe.retained_size(node)
    assert sys.getrefcount(node) == before


def test_the_table_of_interned_strings_keeps_none_of_them():
    """From 3.14 on the collector lists it, though it only borrows what it refers to."""
    kept = [sys.intern(f"interned {i} " * 20) for i in range(1000)]
    are_immortal = sys.getrefcount(kept[0]) > 2**30  # 3.12: nobody retains them
    assert (leakprobe.retained_size(kept) > 1000 * 200) != are_immortal
