"""Who keeps what grows: the trace on leaks of every shape, each in a fresh process."""

import fresh
import pytest
from trace_support import bytes_of, holders, path_of, run, texts, types_of, with_holder

numpy = pytest.importorskip("numpy")


def test_dicts_in_a_module_global():
    result = run(
        """
        history = []
        begin()
        def step(i):
            history.append({"loss": [1000.5 + i]})
        loop(step)
        done(trace())
        """
    )
    entry = with_holder(result, "history (list, 14 items)")
    assert entry["kind"] == "held" and entry["cycle"] is None and entry["holder_count"] == 1
    assert texts(entry)[:2] == ["__main__", "history (list, 14 items)"]
    assert {"dict", "list", "float"} <= types_of(entry)
    assert (
        entry["holder"]["type"] == "list"
        and entry["holder"]["length"] == 14
        and entry["holder"]["bound"] is None
    )
    for member in entry["members"]:
        assert member["count"] == 8 and [s for s, _, _ in member["series"]] == list(range(2, 10))
        assert sum(b for _, _, b in member["series"]) == member["bytes"] > 0


def test_holder_says_where_it_grew():
    result = run(
        """
        history = []
        begin()
        def step(i):
            history.append({"loss": 1000.5 + i})
        loop(step)
        out = trace()
        site = out["holders"][0]["holder"]["grown_at_site"]
        done(out, frames=_core.site_frames(site), grown=_core.hook_status()["grown_at"])
        """
    )
    if not result["grown"]:
        pytest.skip("no stamps on backing blocks here")
    assert result["frames"][0][2].endswith("step")


@pytest.mark.parametrize(
    "make, grow",
    [
        ("dict()", "holder[3 * i + k] = item"),
        ("collections.OrderedDict()", "holder[str(3 * i + k)] = item"),
        ("collections.defaultdict(list)", "holder[3 * i + k].append(item)"),
        ("list()", "holder.append(item)"),
        ("set()", "holder.add(tuple(item))"),
    ],
)
def test_a_holder_grows_where_it_is_enlarged_not_where_its_items_are_made(make, grow):
    """Whichever of CPython's allocators gives its table: a dict's comes from that of objects until 3.12."""
    result = run(
        f"""
        import collections
        holder = {make}
        begin()
        def put(item, i, k):
            {grow}
        def step(i):
            for k in range(3):
                put([1000.5 + i + k], i, k)
        loop(step)
        out = trace()
        holders = [h["holder"] for h in out["holders"] if h["holder"]]
        sites = [holder["grown_at_site"] for holder in holders if holder["length"]]
        done(out, lines=[_core.site_frames(site)[0][2] for site in sites if site],
             grown=_core.hook_status()["grown_at"])
        """
    )
    if not result["grown"]:
        pytest.skip("no stamps on backing blocks here")
    assert "put" in result["lines"]


def test_closure():
    result = run(
        """
        def make():
            buffer = []
            def keep(x):
                buffer.append(x)
            return keep
        keep = make()
        begin()
        loop(lambda i: keep([i]))
        done(trace())
        """
    )
    entry = with_holder(result, "buffer (list, 14 items)")
    assert path_of(entry).startswith(
        "__main__ -> keep function make.<locals>.keep -> buffer (list, 14 items) -> ["
    )
    assert "closure" in [p["edge"] for p in entry["path"]]


def test_instance_attribute_and_slot():
    result = run(
        """
        class Trainer:
            def __init__(self):
                self.records = []
                self.other = 1
        class Slotted:
            __slots__ = ("first", "rows")
        trainer = Trainer()
        slotted = Slotted()
        slotted.rows = []
        begin()
        def step(i):
            trainer.records.append([i])
            slotted.rows.append([i, i])
        loop(step)
        done(trace())
        """
    )
    entry = with_holder(result, ".records (list, 14 items)")
    assert texts(entry)[:3] == ["__main__", "trainer Trainer", ".records (list, 14 items)"]
    entry = with_holder(result, ".rows (list, 14 items)")
    assert texts(entry)[:3] == ["__main__", "slotted Slotted", ".rows (list, 14 items)"]
    assert entry["path"][2]["edge"] == "slot"


def test_local_of_a_running_function():
    result = run(
        """
        def train():
            losses = []
            loop(lambda i: losses.append([i]))
            done(trace())
        def train_directly():
            losses = []
            for i in range(14):
                losses.append([i])
                _core.mark()
            done(trace())
        begin()
        train_directly()
        """
    )
    entry = with_holder(result, "losses (list, 14 items)")
    assert texts(entry)[:2] == ["train_directly() in <string>", "losses (list, 14 items)"]
    assert [p["edge"] for p in entry["path"]][:2] == ["frame", "local"]


def test_deque_and_lru_cache_have_bounds():
    result = run(
        """
        import collections, functools
        ring = collections.deque(maxlen=100)
        @functools.lru_cache(maxsize=300)
        def bounded(i):
            return [i]
        @functools.lru_cache(maxsize=None)
        def unbounded(i):
            return [i, i]
        class Model:
            @functools.lru_cache(maxsize=None)
            def embed(self, i):
                return [i, i, i]
        model = Model()
        begin()
        def step(i):
            ring.append([])
            bounded(i + 1000)
            unbounded(i + 1000)
            model.embed(i + 1000)
        loop(step)
        done(trace())
        """
    )
    ring = with_holder(result, "ring (deque")
    assert ring["holder"]["bound"] == 100 and ring["holder"]["length"] == 14
    bounded = with_holder(result, "bounded (")
    assert bounded["holder"]["bound"] == 300 and bounded["holder"]["length"] == 14
    unbounded = with_holder(result, "unbounded (")
    assert unbounded["holder"]["bound"] is None and unbounded["holder"]["length"] == 14
    assert unbounded["holder"]["type"] == "functools._lru_cache_wrapper"
    method = [h for h in holders(result) if "embed" in path_of(h)]
    assert len(method) == 1 and method[0]["path"][-1]["edge"] in ("cache", "index", "key", "item")


def test_dict_values_keys_and_sets():
    result = run(
        """
        by_name, by_key, seen = {}, {}, set()
        begin()
        def step(i):
            by_name[f"step {i} of the run"] = [i]
            by_key[(i, 1000.5 + i)] = None
            seen.add((i, "x", 2000.5 + i))
        loop(step)
        done(trace())
        """
    )
    entry = with_holder(result, "by_name (dict, 14 items)")
    assert {"list", "str"} <= types_of(entry)
    assert {"tuple", "float"} <= types_of(with_holder(result, "by_key (dict, 14 items)"))
    entry = with_holder(result, "seen (set, 14 items)")
    assert entry["path"][2]["edge"] == "set item"


def test_linked_list_ends_at_its_anchor():
    result = run(
        """
        class Node:
            pass
        head = None
        begin()
        def step(i):
            global head
            node = Node()
            node.previous = head
            node.payload = [i]
            head = node
        loop(step)
        done(trace())
        """
    )
    entry = with_holder(result, "head Node in __main__")
    assert len(holders(result)) == 1 and {"__main__.Node", "list"} <= types_of(entry)
    assert entry["holder"]["type"] == "module" and entry["members"][0]["count"] == 8


def test_many_holders_of_one_pattern_are_one_entry():
    result = run(
        """
        class Layer:
            def __init__(self):
                self.seen = []
        layers = [Layer() for _ in range(6)]
        begin()
        def step(i):
            for layer in layers:
                layer.seen.append([i])
        loop(step)
        done(trace())
        """
    )
    entry = with_holder(result, ".seen (list, 14 items)")
    assert entry["holder_count"] == 6 and sum(m["count"] for m in entry["members"]) == 6 * 8


WATCHED = """
        with leakprobe.watch() as probe:
            for i in range(360):
                step(i)
                probe.step()
        found = probe.report().to_dict()["findings"]
        done([[f["holder"]["text"], f["onset_step"], [n["text"] for n in f["path"]]] for f in found])
        """


def test_containers_that_come_one_after_another_belong_to_the_place_where_they_are_kept():
    found = run(
        """
        class Collector:
            def __init__(self):
                self.finished, self.running = [], [[], [], []]
            def turn(self, run):
                self.finished.append(self.running[run])
                self.running[run] = []
        collector = Collector()
        def step(i):
            for run, items in enumerate(collector.running):
                items.append([i] * 40)
                if (i + 11 * run) % 33 == 32:
                    collector.turn(run)
        """
        + WATCHED
    )["trace"]
    assert [holder for holder, _, _ in found] == [".finished (list, 32 items)"]
    _, onset, path = found[0]
    assert onset < 40 and ".finished (list, 32 items)" in path


@pytest.mark.parametrize("malloc", ["", "_core.malloc_why_not = lambda: 'another allocator'"])
def test_few_large_objects_are_found(malloc):
    """One list of 16 KiB in each 45th step: as many small ones would be less than is worth a scan."""
    found = run(
        f"""
        {malloc}
        kept = []
        def step(i):
            if i % 45 == 0:
                kept.append([i] * 2048)
        """
        + WATCHED
    )["trace"]
    assert [holder for holder, _, _ in found] == ["kept (list, 8 items)"]


def test_containers_that_all_grow_are_holders_themselves():
    found = run(
        """
        index = {}
        def step(i):
            if i in (10, 20, 30, 40, 50):
                index[i] = []
            for kept in index.values():
                kept.append([i] * 30)
        """
        + WATCHED
    )["trace"]
    assert len(found) == 1 and found[0][0].endswith(" items)") and found[0][0].startswith("[")


def test_buffer_of_a_chain_of_views_is_counted_once():
    result = run(
        """
        import numpy as np
        kept = []
        begin("numpy")
        def step(i):
            kept.append(np.zeros(1000)[::2][1:5])
        loop(step)
        done(trace())
        """
    )
    entry = with_holder(result, "kept (list, 14 items)")
    assert (
        bytes_of(entry, "numpy") == 8 * 8000
        and sum(bytes_of(h, "numpy") for h in holders(result)) == 8 * 8000
    )
    assert path_of(entry).endswith("ndarray -> .base ndarray -> buffer (numpy, 8000 bytes)")


def test_object_array():
    result = run(
        """
        import numpy as np
        table = np.empty(100, dtype=object)
        begin()
        def step(i):
            table[i] = [i]
        loop(step)
        done(trace())
        """
    )
    entry = with_holder(result, "table ndarray")
    assert entry["path"][2]["text"].startswith("[") and entry["path"][2]["edge"] == "index"


def test_object_array_that_holds_itself():
    result = run(
        """
        import numpy as np
        begin("numpy")
        def step(i):
            array = np.empty(3, dtype=object)
            array[0] = array
            array[1] = [i]
        loop(step)
        done(trace())
        """
    )
    assert holders(result) and {h["kind"] for h in holders(result)} <= {"outside", "garbage"}


def test_garbage_cycle():
    result = run(
        """
        class Node:
            pass
        begin()
        gc.disable()
        def step(i):
            a, b = Node(), Node()
            a.other, b.other = b, a
            b.payload = [i]
        loop(step)
        before = gc.get_count()
        done(trace(), enabled=gc.isenabled())
        """
    )
    entry = next(h for h in holders(result) if "__main__.Node" in types_of(h))
    assert entry["kind"] == "garbage" and entry["holder"] is None and entry["holder_count"] == 8
    assert [p["text"] for p in entry["cycle"]] == ["Node", ".other Node", ".other Node"]
    assert sum(m["count"] for m in entry["members"] if m["type"] == "__main__.Node") == 16
    assert result["enabled"] is False


def test_suspended_generator_is_no_garbage():
    result = run(
        """
        def numbers(kept):
            for i in range(100):
                kept.append([i])
                yield i
        generator = numbers([])
        begin()
        loop(lambda i: next(generator))
        done(trace())
        """
    )
    entry = with_holder(result, "kept (list, 14 items)")
    assert entry["kind"] == "held" and entry["path"][2]["edge"] == "local"


def test_held_outside_python():
    result = run(
        """
        import ctypes
        begin()
        def step(i):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object([i, i]))
        loop(step)
        done(trace())
        """
    )
    entry = next(h for h in holders(result) if h["kind"] == "lost")
    assert texts(entry)[0] == "held outside Python (1 reference of 1 unexplained)"
    assert entry["path"][0]["edge"] == "outside" and sum(m["count"] for m in entry["members"]) == 8


def test_what_a_running_frame_uses_is_held():
    result = run(
        """
        begin()
        class Source:
            def __init__(self):
                self.kept = []
            def __iter__(self):
                return self
            def __next__(self):
                if len(self.kept) == 14:
                    raise StopIteration
                self.kept.append([])
                return 1
        def train():
            for _ in Source():
                _core.mark()
                if _core.step() == 14:
                    return trace()
        done(train())
        """
    )
    entry = with_holder(result, ".kept (list, 14 items)")
    assert entry["kind"] == "held" and texts(entry)[0] == "train() in <string>"


def test_node_budget_is_an_error_that_names_it():
    run(
        """
        begin()
        from leakprobe.errors import LeakprobeError
        for _ in range(3):
            try:
                _core.trace([], [], 0, 5, node_budget=1000)
            except LeakprobeError as error:
                assert error.code == "graph_limit" and "1000" in str(error), error
            else:
                raise SystemExit("no error")
        assert _core.trace([], [], 0, 5)["nodes"] > 1000
        """
    )


def test_refused_while_the_collector_runs():
    run(
        """
        from leakprobe.errors import LeakprobeError
        seen = []
        class Falling:
            def __init__(self):
                self.me = self
            def __del__(self):
                try:
                    _core.trace([], [], 0, 5)
                except LeakprobeError as error:
                    seen.append(error.code)
        Falling()
        gc.collect()
        assert seen == ["gc_running"], seen
        """
    )


@pytest.mark.parametrize(
    "call", ["_core.trace()", "_core.trace([1], [], 0, 5)", "_core.trace([], [('nonsense', 1)], 0, 5)"]
)
def test_bad_arguments_are_errors(call):
    run(
        f"""
        try:
            {call}
        except Exception as error:
            pass
        else:
            raise SystemExit("no error")
        """
    )


def test_dead_and_wild_type_ids_are_harmless():
    run(
        """
        begin()
        loop(lambda i: None)
        result = _core.trace([(12345, 17), (id(dict), 99999), (0, 3)], [], 0, 20)
        assert result["holders"] == [] and result["rest"] == {"count": 0, "bytes": 0}
        """
    )


def test_it_changes_nothing():
    run(
        """
        class Thing:
            pass
        things = [Thing() for _ in range(100)]
        history = []
        begin()
        loop(lambda i: history.append({"x": [i]}))
        def state():
            gc.collect()
            return str((len(gc.get_objects()), [sys.getrefcount(t) for t in things], sys.getrefcount(Thing)))
        trace()
        state()
        trace()
        before = state()
        trace()
        assert state() == before, (state(), before)
        """
    )


def test_a_thousand_leave_memory_flat():
    run(
        """
        history = []
        begin()
        loop(lambda i: history.append({"x": [i]}))
        def rss():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * 4096
        for _ in range(50):
            trace()
        used, blocks = rss(), sys.getallocatedblocks()
        for _ in range(1000):
            _core.trace([(id(dict), 17)], [], 2, 9)
        assert rss() - used < 3_000_000, rss() - used
        assert abs(sys.getallocatedblocks() - blocks) < 300
        """
    )


@pytest.mark.parametrize(
    "make, grow, churn",
    [
        ("{}", "holder[i] = bytearray(5000)", "{0: [1]}"),
        ("{}", "holder[str(i)] = bytearray(5000)", "{str(i): [1]}"),
        ("[]", "holder.append(bytearray(5000))", "[[1], 2]"),
        ("set()", "holder.update(Kept() for _ in range(4))", "set(map(str, range(20)))"),
        (
            "collections.deque([0] * 60)",
            "holder.extend(bytearray(3000) for _ in range(20))",
            "collections.deque([[1]] * 700)",
        ),
    ],
)
def test_the_line_that_grew_a_holder_is_never_that_of_another_of_its_type(make, grow, churn):
    """Tables of small dicts, and blocks of deques on 3.10, are recycled."""
    out = run(
        f"""
        import collections
        class Kept: pass
        holders = []
        def make():
            holders.append({make})
        def grow(holder, i):
            {grow}
        def churn(i):
            x = []
            for _ in range(200):
                x.append({churn})
        def step(i):
            churn(i)
            if i == 2: make()
            if 3 <= i <= 7: grow(holders[0], i)
            churn(i)
        begin()
        loop(step)
        out = trace()
        sites = [h["holder"]["grown_at_site"] for h in out["holders"] if h["holder"]]
        done(out, lines=[_core.site_frames(site)[0][2] for site in sites if site])
        """
    )
    assert out["trace"]["holders"] and "churn" not in out["lines"]
    if "deque" not in make and "{}" not in make:
        assert "grow" in out["lines"]


@pytest.mark.parametrize("stream", ["io.BytesIO(bytes(3000))", "io.StringIO('x' * 3000)", "written()"])
def test_what_a_stream_has_collected_is_garbage_with_it(stream):
    """Its type may visit it, or not, and no reference counts twice."""
    result = run(
        f"""
        import io
        gc.disable()
        class Node: pass
        def written():
            stream = io.StringIO()
            stream.write("x" * 3000)
            return stream
        def step(i):
            node = Node()
            node.me, node.stream = node, {stream}
        begin()
        _core.follow_frees(True)
        loop(step)
        done(trace())
        """
    )
    assert {h["kind"] for h in holders(result)} == {"garbage"}
    members = [m for h in holders(result) for m in h["members"]]
    assert any(m["type"] in ("bytes", "str", "_io.StringIO") for m in members)


CHAINS = """
import gc, json
from leakprobe import _core

class Node: __slots__ = ("next", "value")
class Kept: __slots__ = ("x",)

def chain(count):
    head, nodes = None, []
    for _ in range(count):
        node = Node()
        node.next, node.value, head = head, None, node
        nodes.append(node)
    return head, nodes

HEAD, held = chain(HELD)
lost, garbage = chain(GARBAGE)
garbage[0].next = lost  # a circle
_core.start(16, "/nowhere/")
for step in range(4):
    for node in (*held[step::4], *garbage[step::4]):
        node.value = Kept()
    _core.mark()
base = _core.site_base(_core.site_of(held[0].value)[0])
gc.disable()
del node, held, garbage, lost
found = _core.trace([(id(Kept), base)], [], 0, _core.step(), torch=False)
counts = {}
for entry in found["holders"]:
    counts[entry["kind"]] = counts.get(entry["kind"], 0) + sum(m["count"] for m in entry["members"])
print(json.dumps([counts, found["rest"]["count"]]))
"""


def test_each_member_of_a_chain_is_of_its_own_root():
    counts, rest = fresh.run(CHAINS.replace("HELD", "20", 1).replace("GARBAGE", "3000", 1))
    assert 0 < counts["held"] <= 20 and sum(counts.values()) + rest == 3020
    assert set(counts) == {"held", "garbage"}


def test_a_long_chain_that_grows_everywhere_takes_no_square_of_its_length():
    code = CHAINS.replace("HELD", "400_000", 1).replace("GARBAGE", "1", 1)
    counts, rest = fresh.run(
        code, timeout=300
    )  # some 3 s; by ways up to the root, five minutes on a fast machine
    assert sum(counts.values()) + rest == 400_001
