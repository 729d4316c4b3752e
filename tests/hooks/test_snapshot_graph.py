"""snapshot(graph=True): types, dominators, cycles, holders; files; limits."""

import contextlib
import copy
import gc
import json
import pickle
import subprocess
import sys
import textwrap
import weakref

import fresh
import pytest

import leakprobe
from leakprobe import _core

LIMITED = [
    leakprobe.find_cycles,
    lambda max_bytes: leakprobe.snapshot(graph=True, max_bytes=max_bytes),
    lambda max_bytes: leakprobe.why(KEPT, max_bytes=max_bytes),
    lambda max_bytes: leakprobe.retained_size(KEPT, max_bytes=max_bytes),
]


class Node:
    pass


class Leaf:
    def __init__(self):
        self.data = bytes(1000)


KEPT = Node()
KEPT.leaves = [Leaf() for _ in range(300)]


@pytest.fixture(scope="module")
def taken():
    return leakprobe.snapshot(graph=True)


def row_of(snapshot, type_name):
    return next(r for r in snapshot.by_type() if r.type == type_name)


def test_by_type(taken):
    row = row_of(taken, f"{__name__}.Leaf")
    assert row.count == 300 and row.medium == "python"
    assert row.size == sum(_core.size_of(leaf) for leaf in KEPT.leaves)
    assert row.retained >= row.size + sum(_core.size_of(leaf.data) for leaf in KEPT.leaves) > 300 * 1000
    # The first instances of a class have room for more attributes than later ones.
    assert abs(row.retained - 300 * leakprobe.retained_size(KEPT.leaves[200])) < 10_000


def test_types_nested_in_each_other_are_counted_once():
    before = leakprobe.snapshot(graph=True)
    nested = []
    for _ in range(50):
        nested = [nested, bytes(20_000)]
    found = leakprobe.snapshot(graph=True)
    grown = row_of(found, "list").retained - row_of(before, "list").retained
    assert 50 * 20_000 < grown < 100 * 20_000 and nested


def test_retained_sizes_are_those_of_retained_size():
    made = Node()
    made.own = [Leaf() for _ in range(200)]
    made.shared = KEPT.leaves[:100]
    graph = leakprobe.snapshot(graph=True).graph
    node = next(
        n
        for n in graph.core.largest(2000)
        if graph.core.node(n)[0] == f"{__name__}.Node" and "made" in str(graph.elements(n, graph.names()))
    )
    assert (
        abs(graph.core.node(node)[4] - leakprobe.retained_size(made)) <= 64
        and graph.core.node(node)[4] > 200_000
    )


def test_dominators_come_with_paths(taken):
    rows = taken.dominators(300)
    assert [r.retained for r in rows] == sorted((r.retained for r in rows), reverse=True)
    texts = {str(r.path): r for r in rows}
    path = next(p for p in texts if p.endswith("KEPT Node -> .leaves (list, 300 items)"))
    row = texts[path]
    above = next(r for r in rows if r.node == row.above)
    assert (
        row.type == "list"
        and row.retained > 300_000
        and above.type in (f"{__name__}.Node", "dict")
        and above.retained > row.retained
    )
    for bad in (0, True, "3"):
        with pytest.raises(leakprobe.LeakprobeError, match="most"):
            taken.dominators(bad)


def test_paths_tell_who_holds_the_objects_of_a_type(taken):
    (path, count, size), *rest = taken.paths(f"{__name__}.Leaf")
    assert (
        str(path).endswith("KEPT Node -> .leaves (list, 300 items)")
        and count == 300
        and size > 0
        and not rest
    )
    with pytest.raises(leakprobe.LeakprobeError, match="by_type"):
        taken.paths("no.such.Type")


def test_long_paths_begin_at_their_roots():
    paths = fresh.run(
        """
        import json
        import leakprobe
        class Node: pass
        chain = None
        for _ in range(1500):
            link = Node()
            link.items, link.next = [object() for _ in range(8)], chain
            chain = link
        del link
        names = leakprobe.snapshot(graph=True).graph.names().values()
        print(json.dumps([[element["text"] for element in path] for path in names]))
        """
    )
    long = [path for path in paths if any(text.startswith(".next Node") for text in path)]
    assert {tuple(path[:2]) for path in long} == {("__main__", "chain Node")}
    more = [int(text.split()[1]) for path in long for text in path if text.startswith("... ")]
    assert max(more) > 1000


def test_no_object_is_kept_alive():
    node = Node()
    reference = weakref.ref(node)
    before = sys.getrefcount(node)
    taken = leakprobe.snapshot(graph=True)
    assert sys.getrefcount(node) == before
    del node
    assert reference() is None and len(taken) > 0


def test_cycles_are_those_of_find_cycles():
    gc.collect()
    gc.disable()
    try:
        node = Node()
        node.me, node.data = node, bytes(5000)
        del node
        taken, found = leakprobe.snapshot(graph=True), leakprobe.find_cycles()
    finally:
        gc.enable()
    mine = [c for c in taken.cycles if f"{__name__}.Node" in str(c.objects)]
    assert len(mine) == 1 and mine[0].to_dict() in [c.to_dict() for c in found]
    assert mine[0].collectable and mine[0].total_bytes > 5000
    gc.collect()


def test_diff_names_the_holder_of_what_is_new():
    history = []
    older = leakprobe.snapshot(graph=True)
    history += [Leaf() for _ in range(123)]
    diff = leakprobe.snapshot(graph=True).diff(older)
    row = next(r for r in diff if r.type == f"{__name__}.Leaf")
    assert (
        row.count_diff == 123
        and row.holder["text"] == "history (list, 123 items)"
        and row.holder["count"] == 123
    )
    assert [e["text"] for e in row.path][-2:] == ["history (list, 123 items)", "123 x Leaf"]
    assert all(r.path is None for r in diff if r.count_diff < 0 and r.size_diff < 0)
    assert json.loads(json.dumps(diff.to_dict()))["rows"]


def test_a_snapshot_does_not_see_the_one_before():
    leakprobe.snapshot(graph=True).diff(leakprobe.snapshot(graph=True))
    older = leakprobe.snapshot(graph=True)
    newer = leakprobe.snapshot(graph=True)
    assert sum(abs(r.count_diff) for r in newer.diff(older)) < 60, [r for r in newer.diff(older)]


def test_save_and_load(taken, tmp_path):
    path = tmp_path / "snapshot.json"
    taken.save(path)
    loaded = leakprobe.Snapshot.load(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert loaded.to_dict() == taken.to_dict() and loaded.dominators(50) == taken.dominators(50)
    assert loaded.paths(f"{__name__}.Leaf") == taken.paths(f"{__name__}.Leaf") and loaded.to_dot(
        20
    ) == taken.to_dot(20)
    again = tmp_path / "again.json"
    loaded.save(again)
    assert leakprobe.Snapshot.load(again).to_dict() == taken.to_dict()
    assert len(leakprobe.snapshot(graph=True).diff(loaded)) > 0


def test_pickled_as_saved_and_copied_as_itself(taken):
    loaded = pickle.loads(pickle.dumps(taken))
    assert loaded.to_dict() == taken.to_dict() and loaded.dominators(50) == taken.dominators(50)
    assert len(leakprobe.diff(taken, loaded)) == 0
    assert copy.copy(taken) is taken is copy.deepcopy(taken)


def test_damaged_files(taken, tmp_path):
    path = tmp_path / "snapshot.json"
    taken.save(path)
    good = json.loads(path.read_text())
    graph = good["graph"]
    damage = [
        {"row": graph["edge"]},
        {"edge": graph["row"]},
        {"group": graph["edge"]},
        {"root": graph["address"]},
        {"row": "AAAA"},
        {"flag": 7},
        {"named": -1},
        {"alive": 2**40},
        {"types": []},
        {"groups": [[1, 2]]},
        {"names": "{"},
        {"cycles": "[{}]"},
        {"stacks": 3},
    ]
    for change in damage:
        path.write_text(json.dumps({**good, "graph": {**graph, **change}}))
        with pytest.raises(leakprobe.LeakprobeError) as caught:
            leakprobe.Snapshot.load(path)
        assert caught.value.code in ("bad_graph", "unreadable_file"), change
    for change in ({"rows": 3}, {"rows": [{}]}, {"graph": []}):
        path.write_text(json.dumps({**good, **change}))
        with pytest.raises(leakprobe.LeakprobeError):
            leakprobe.Snapshot.load(path)


def test_without_a_graph():
    plain = leakprobe.snapshot()
    for ask in (
        plain.by_type,
        plain.dominators,
        plain.to_dot,
        lambda: plain.cycles,
        lambda: plain.paths("dict"),
    ):
        with pytest.raises(leakprobe.LeakprobeError) as caught:
            ask()
        assert caught.value.code == "no_graph"


@pytest.mark.parametrize("call", LIMITED)
def test_a_memory_limit(call):
    for limit in (1, "100 KiB", "1 MB"):
        with pytest.raises(
            leakprobe.LeakprobeError, match="limit of .* bytes: give a larger max_bytes"
        ) as caught:
            call(max_bytes=limit)
        assert caught.value.code == "graph_limit"
    call(max_bytes="8 GiB")
    with pytest.raises(leakprobe.LeakprobeError) as caught:
        call(max_bytes="lots")
    assert caught.value.code == "bad_size"


@pytest.mark.parametrize("limits", [16, pytest.param(40, marks=pytest.mark.slow)])
def test_a_limit_holds_in_every_stage(limits):
    """Whatever the limit, the answer is an error or the whole truth, and nothing is left."""
    most = 1000 * _core.graph_take(True, 0)[0].info()["nodes"]
    before, codes = _core.overhead_bytes(), set()
    for limit in range(most // 200, most, most // limits):
        try:
            assert _core.graph_take(True, limit)[0].info()["nodes"] > 1000
            codes.add("")
        except leakprobe.LeakprobeError as error:
            codes.add(error.code)
    assert codes == {"", "graph_limit"} and _core.overhead_bytes() < before + (32 << 20)


def test_printed(taken, capsys):
    taken.print(limit=5)
    text = capsys.readouterr().out
    assert "graph: " in text and "largest dominators" in text and "retained" in text


def test_text_trees_and_dot():
    evil = type('Evil\x1b[31m"]; x', (), {})()
    KEPT.evil = {"key\n\x1b": evil}
    path = next(p for p in leakprobe.why(evil) if "KEPT" in str(p))
    text, dot = path.text(), path.to_dot()
    del KEPT.evil
    assert "\x1b" not in text + dot and text.count("\n") == dot.count(" -> ")
    assert text.startswith("┬─ ") and "\n├─ .evil (dict, 1 item)\n╰→ ['key" in text
    assert dot.startswith('digraph "retention path" {') and dot.rstrip().endswith("}")
    assert all(line.count('"') % 2 == line.count('\\"') % 2 for line in dot.splitlines())


def test_cycle_to_dot():
    pytest.importorskip("numpy")
    code = """
        import gc, numpy, leakprobe
        gc.disable(); gc.collect()  # what importing numpy left
        a = numpy.empty(3, object); rows = [a]; a[0] = rows
        del a, rows
        (cycle,) = leakprobe.find_cycles()
        dot, text = cycle.to_dot(), cycle.text()
        assert dot.count("->") == 2 and dot.count("dashed") == 1, dot
        assert "the first again" in text and "does not see numpy.ndarray -> [0] (list, 1 item)" in text, text
    """
    setup = f"import sys; sys.path[:0] = {sys.path!r}; import leakprobe; leakprobe.find_cycles(); import gc; gc.collect()\n"
    done = subprocess.run(
        [sys.executable, "-c", setup + textwrap.dedent(code)], capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_buffers_are_counted_once_and_by_medium():
    torch = pytest.importorskip("torch")
    numpy = pytest.importorskip("numpy")
    box = Node()
    box.tensor = torch.ones(50_000)
    box.views = [box.tensor[i:] for i in range(10)] + [box.tensor.numpy()]
    box.array = numpy.ones(40_000)
    taken = leakprobe.snapshot(graph=True)
    graph = taken.graph
    rows = [r for r in taken.dominators(400) if r.type == f"{__name__}.Node" and "box" in str(r.path)]
    assert len(rows) == 1 and 520_000 <= rows[0].retained < 535_000
    media = {r.medium: r.size for r in taken.by_type() if r.type is None}
    assert media["cpu"] >= 200_000 and media["numpy"] >= 320_000 and graph.info["garbage_roots"] >= 0


@pytest.mark.parametrize("watched", [False, True])
def test_storages_are_counted_once_with_their_tensors_and_objects(watched):
    torch, numpy = pytest.importorskip("torch"), pytest.importorskip("numpy")
    with leakprobe.watch() if watched else contextlib.nullcontext():
        box = Node()
        tensor = torch.ones(50_000)
        box.both = [tensor, tensor[5:], tensor.untyped_storage()]
        box.storage = torch.ones(60_000).untyped_storage()
        box.lent = torch.from_numpy(numpy.ones(40_000)).untyped_storage()
        del tensor
        taken = leakprobe.snapshot(graph=True)
    (row,) = [r for r in taken.dominators(400) if r.type == f"{__name__}.Node" and "box" in str(r.path)]
    assert 760_000 <= row.retained < 770_000


def test_blocks_of_a_watch_that_has_ended_are_nobody_s():
    """Their deaths are not seen any more: what they were may be freed, or somebody else's."""
    numpy = pytest.importorskip("numpy")
    with leakprobe.watch():
        array = numpy.ones(1_000_000)
        assert leakprobe.retained_size(array) >= 8_000_000
    assert leakprobe.retained_size(array) >= 8_000_000
    del array
    media = {r.medium: r.size for r in leakprobe.snapshot(graph=True).by_type() if r.type is None}
    assert media.get("numpy", 0) < 8_000_000


def test_sites_are_known_while_a_watch_runs():
    code = """
        import leakprobe
        class Leaf: pass
        leakprobe.start()
        kept = []
        def step():
            kept.append(Leaf())
        older = leakprobe.snapshot(graph=True)
        for _ in range(40): step()
        newer = leakprobe.snapshot(graph=True)
        newer.save("SAVED")
        for snapshot in (newer, leakprobe.Snapshot.load("SAVED")):
            row = [r for r in snapshot.diff(older) if r.type == "__main__.Leaf"][0]
            assert row.stack[0][2] == "step" and row.count_diff == 40, row
            assert row.path[-2]["text"] == "kept (list, 40 items)" and row.holder["count"] == 40, row
        leakprobe.stop()
    """
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        setup = f"import sys; sys.path[:0] = {sys.path!r}\n"
        body = textwrap.dedent(code).replace("SAVED", folder + "/saved.json")
        done = subprocess.run(
            [sys.executable, "-c", setup + body], capture_output=True, text=True, timeout=900
        )
    assert done.returncode == 0, done.stderr[-2000:]


def test_without_a_watch_a_difference_says_that_none_saw_its_objects(capsys):
    older = leakprobe.snapshot()
    made = {i: {"v": i} for i in range(500)}
    newer = leakprobe.snapshot()
    assert len(made) == 500
    difference = leakprobe.diff(older, newer)
    assert {row.where for row in difference} == {"unknown (no watch saw it made)"}
    difference.print(limit=1)
    assert "older than the watch" not in capsys.readouterr().out
