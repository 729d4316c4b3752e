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


def test_a_long_path_keeps_both_ends():
    end = Node()
    chain = end.inner = Node()
    for _ in range(2000):
        chain = [chain]
    path = next(p for p in leakprobe.why(end.inner) if "chain" in str(p))
    elements = [element["text"] for element in path.elements]
    assert elements[1].startswith("chain (list") and elements[-1] == "[0] Node"
    more = [text for text in elements if text.startswith("... ")]
    assert len(more) == 1 and int(more[0].split()[1]) + len(elements) - 1 == 2002, elements


def filled(numpy, kind):
    """An array that owns objects, and the items that lead to them."""
    inner = numpy.dtype([("id", "i2"), ("o", "O")])
    kinds = {
        "fields": [("id", "i8"), ("o", "O")],
        "packed": [("id", "i1"), ("o", "O")],
        "titles": [(("a title", "o"), "O")],
        "nested": [("id", "i1"), ("o", inner)],
        "repeated": [("o", "O", (2, 2))],
        "repeated records": [("id", "i1"), ("o", inner, (3,))],
    }
    if kind in kinds:
        array = numpy.zeros(4, dtype=kinds[kind])
        array["o"][2] = (1, Node()) if kind in ("nested", "repeated records") else Node()
        return array
    array = numpy.empty((2, 3, 4), dtype=object)
    array[1, 2, 3] = Node()
    return numpy.copy(array.transpose(1, 0, 2) if kind == "in another order" else array)


ARRAYS = {
    "fields": 2,
    "packed": 2,
    "titles": 2,
    "nested": 2,
    "repeated": 2,
    "repeated records": 2,
    "in another order": 23,
    "in order": 23,
}


def node_of(value):
    """The first Node in an array, or in what its tolist() gives."""
    if isinstance(value, Node):
        return value
    value = value.tolist() if hasattr(value, "tolist") else value  # of a field that is repeated
    found = (node_of(item) for item in value) if isinstance(value, (list, tuple)) else ()
    return next((node for node in found if node is not None), None)


@pytest.mark.parametrize("kind", ARRAYS)
def test_objects_in_arrays_that_own_them(kind):
    numpy = pytest.importorskip("numpy")
    array = filled(numpy, kind)
    node = node_of(array)
    found = texts(leakprobe.why(node))
    assert any(f"array ndarray -> [{ARRAYS[kind]}] Node" in text for text in found), found
    before = leakprobe.retained_size(array)
    node.data = bytes(10_000)
    assert leakprobe.retained_size(array) < before + 10_000
    del node
    assert leakprobe.retained_size(array) > before + 10_000


def test_each_object_of_an_array_is_held_once():
    numpy = pytest.importorskip("numpy")
    array = filled(numpy, "titles")
    assert not [path for path in leakprobe.why(node_of(array)) if "outside" in str(path)]


def test_a_row_with_data_of_its_own():
    numpy = pytest.importorskip("numpy")
    row = filled(numpy, "fields")[2].copy()
    found = texts(leakprobe.why(row["o"]))
    assert any("row void -> " in text and text.endswith(" Node") for text in found), found


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
