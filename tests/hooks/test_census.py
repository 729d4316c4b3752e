"""The census on real heaps: what it counts, where it says things were born, what it leaves alone."""

import collections
import ctypes
import gc
import subprocess
import sys
import textwrap

import pytest
from fresh import run

from leakprobe import _core
from leakprobe.errors import LeakprobeError

ALL_STEPS = (0, 2**32 - 1, 0)
HAS_HOOKS = hasattr(_core, "start")


@pytest.fixture
def quiet_gc():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def census(full=False):
    return _core.census(full, *ALL_STEPS)


class Kept:
    def __init__(self, value):
        self.value = value


class Falling:
    """Takes a census while it is being finalised."""

    def __init__(self, seen):
        self.me = self
        self.seen = seen

    def __del__(self):
        try:
            census()
        except LeakprobeError as error:
            self.seen.append(error.code)


# ---- what is counted ----


def test_each_tracked_object_once(quiet_gc):
    counted = census().object_count
    assert abs(counted - len(gc.get_objects()) - gc.get_freeze_count()) < 20


def test_new_tracked_objects_raise_the_count_by_their_number(quiet_gc):
    before = census()
    kept = [[i] for i in range(5000)]
    after = census()
    assert abs(after.object_count - before.object_count - len(kept)) < 20
    assert after.total_bytes - before.total_bytes >= sum(_core.size_of(op) for op in kept)


def test_frozen_objects_are_counted():
    code = """
        import gc
        from leakprobe import _core
        kept = [[i] for i in range(1000)]
        gc.collect()
        gc.freeze()
        assert gc.get_freeze_count() > 1000
        assert _core._is_enumerated(kept[7])
        assert _core.census(False, 0, 9, 0).object_count > 1000
        gc.unfreeze()
        assert _core._is_enumerated(kept[7])
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)


@pytest.mark.parametrize(
    "name, make",
    [
        ("str", lambda i: "text %d" % (i + 10**6)),
        ("bytes", lambda i: b"%d" % (i + 10**6)),
        ("float", lambda i: i + 0.25),
        ("int", lambda i: i + 10**9),
        ("tuple of numbers", lambda i: (i + 0.5,)),
        ("dict of numbers", lambda i: {1: i + 0.5}),
    ],
)
def test_full_census_finds_untracked_objects(quiet_gc, name, make):
    kept = [None] * 10_000
    before = census(full=True).object_count
    for i in range(10_000):
        kept[i] = make(i)
    gc.collect()  # untracks tuples, and dicts until 3.13
    after = census(full=True).object_count
    parts = 2 if name.endswith("numbers") else 1
    assert abs(after - before - parts * 10_000) < 50


def test_full_census_finds_str_keys(quiet_gc):
    table = {}
    before = census(full=True).object_count
    for i in range(10_000):
        table["key %d" % (i + 10**6)] = None
    assert abs(census(full=True).object_count - before - 10_000) < 50


def test_full_census_follows_nested_untracked_containers(quiet_gc):
    kept = [None]
    before = census(full=True).object_count
    nested = (1.5,)
    for _ in range(1000):
        nested = (nested, len(str(nested)) / 7 if _ < 3 else _ / 7)
    kept[0] = nested
    del nested
    gc.collect()
    assert abs(census(full=True).object_count - before - 2002) < 50


@pytest.mark.parametrize(
    "per_item, make",
    [
        pytest.param(
            3,
            lambda np, n: [np.frombuffer(bytes(40), dtype=np.uint8)[:3] for _ in range(n)],
            id="bytes below two views",
        ),
        pytest.param(
            2, lambda np, n: [np.array([i + 0.5], dtype=object) for i in range(n)], id="items of an array"
        ),
        pytest.param(
            2, lambda np, n: [np.zeros(2, dtype=[("a", "i8")])[0] for _ in range(n)], id="row of an array"
        ),
    ],
)
def test_full_census_follows_arrays(quiet_gc, per_item, make):
    np = pytest.importorskip("numpy")
    make(np, 3)
    before = census(full=True).object_count
    kept = make(np, 5000)
    after = census(full=True).object_count
    assert after - before >= per_item * len(kept) - 50


def test_full_census_sees_what_only_a_local_variable_holds(quiet_gc):
    """A dict of numbers is untracked until 3.13, and a running frame is nobody's referent."""
    history = {}
    before = census(full=True).object_count
    for i in range(10_000):
        history[i + 0.5] = None
    assert abs(census(full=True).object_count - before - 10_000) < 50


def test_a_shared_object_counts_once(quiet_gc):
    before = census(full=True)
    text = "x" * 1_000_000
    kept = [[text, text] for _ in range(1000)]
    after = census(full=True)
    assert after.total_bytes - before.total_bytes < 1_000_000 + sum(map(_core.size_of, kept)) + 50_000


def test_full_is_tracked_and_more(quiet_gc):
    tracked, full = census(), census(full=True)
    assert full.full and not tracked.full
    assert full.object_count > tracked.object_count
    assert full.total_bytes > tracked.total_bytes
    assert full.bad_pointer_count == 0 and full.dropped_count == 0


def test_censuses_do_not_grow_what_they_count(quiet_gc):
    census(full=True)
    first = census(full=True).object_count
    for _ in range(20):
        last = census(full=True)
    assert abs(last.object_count - first) < 10


# ---- containers ----


def test_biggest_containers_come_with_length_and_bytes():
    big = {
        "list": [None] * 3_000_000,
        "dict": dict.fromkeys(range(300_000)),
        "set": set(range(300_000)),
        "bytearray": bytearray(9_000_000),
        "collections.deque": collections.deque([None] * 900_000),
    }
    rows = {row[0]: row for row in census(full=True).containers}
    for name, op in big.items():
        _, type_name, length, size, *_ = rows[id(op)]
        assert (type_name, length, size) == (name, len(op), _core.size_of(op))
    assert len(rows) == 64
    sizes = [row[3] for row in census().containers]
    assert sizes == sorted(sizes, reverse=True)


# ---- the heap walk below ----


def referent_ids(op):
    return collections.Counter(map(id, _core._referents(op)))


def test_dict_shows_its_str_keys():
    key, value = "".join(["some ", "key"]), [1]
    assert referent_ids({key: value}) == {id(key): 1, id(value): 1}
    assert referent_ids({key: value, 5.5: None})[id(key)] == 1


def test_dict_subclass_shows_its_str_keys_once():
    class Child(dict):
        pass

    key = "".join(["some ", "key"])
    for table in (
        Child({key: 1}),
        collections.OrderedDict({key: 1}),
        collections.defaultdict(list, {key: 1}),
    ):
        expected = (
            2 if isinstance(table, collections.OrderedDict) else 1
        )  # its nodes have their own reference
        assert referent_ids(table)[id(key)] == expected
        table[7.5] = 1  # a general table: tp_traverse shows the keys by itself
        assert referent_ids(table)[id(key)] == expected


def test_dict_with_deleted_entries_and_split_tables():
    table = {"k%d" % i: i for i in range(50)}
    for i in range(40):
        del table["k%d" % i]
    assert len(_core._referents(table)) == 20
    op = Kept([1])
    seen = referent_ids(op)
    op.__dict__
    assert referent_ids(op)[id(op.value)] + referent_ids(op.__dict__)[id(op.value)] == 1
    assert seen[id(op.value)] <= 1


def test_walking_makes_no_dict_for_instances():
    kept = [Kept(i) for i in range(1000)]
    before = sys.getallocatedblocks()
    census(full=True)
    assert sys.getallocatedblocks() - before < 100
    del kept


def test_static_types_and_atoms_have_no_referents():
    for op in (int, type, "text", 5, None, 1.5, b"x", len.__code__ if hasattr(len, "__code__") else object()):
        assert _core._referents(op) == []


def test_references_explain_the_reference_counts():
    """No reference is visited more often than it is counted."""
    referents = collections.Counter()
    ops = [op for op in gc.get_objects() if _core._is_enumerated is not op]
    gc.disable()
    try:
        referents.update(map(id, _core._referents(*ops)))
        surplus = [op for op in ops if referents[id(op)] > sys.getrefcount(op) and not is_immortal(op)]
    finally:
        gc.enable()
    assert surplus == []


def is_immortal(op):
    return sys.getrefcount(op) > 2**28


# ---- when it can't be taken ----


def test_refused_while_the_collector_runs():
    seen = []
    Falling(seen)
    gc.collect()
    assert seen == ["collecting"]

    def callback(phase, info):
        try:
            census(full=True)
        except LeakprobeError as error:
            seen.append((phase, error.code))

    gc.callbacks.append(callback)
    try:
        gc.collect()
    finally:
        gc.callbacks.remove(callback)
    assert ("start", "collecting") in seen
    assert census().object_count > 0


def test_bad_input():
    with pytest.raises(LeakprobeError):
        census().top(-1)
    with pytest.raises(TypeError):
        _core.census(True)
    with pytest.raises(TypeError):
        type(census())()


# ---- arenas and blocks ----


def test_allocated_blocks_and_bytes():
    assert abs(_core.allocated_blocks() - sys.getallocatedblocks()) < 1000
    assert _core.python_bytes() > 100_000


def test_arena_hook_counts_what_pymalloc_takes():
    _core._arena_hook(True)
    _core._arena_hook(True)
    before = _core.python_bytes()
    kept = [bytes(400) for _ in range(100_000)]
    grown = _core.python_bytes() - before
    _core._arena_hook(False)
    assert 30_000_000 < grown < 60_000_000
    del kept
    _core._arena_hook(True)
    assert _core.python_bytes() == 0
    _core._arena_hook(False)


def test_arena_hook_counts_again_after_another_tool_has_put_back_what_was_before_it():
    class Arena(ctypes.Structure):
        _fields_ = [(name, ctypes.c_void_p) for name in ("ctx", "alloc", "free")]

    before = Arena()
    ctypes.pythonapi.PyObject_GetArenaAllocator(ctypes.byref(before))
    _core._arena_hook(True)
    ctypes.pythonapi.PyObject_SetArenaAllocator(ctypes.byref(before))
    _core._arena_hook(False)
    _core._arena_hook(True)
    kept = [bytes(400) for _ in range(100_000)]
    grown = _core.python_bytes()
    _core._arena_hook(False)
    assert kept and 30_000_000 < grown < 60_000_000


def test_a_census_ends_where_no_memory_is_left_for_its_tables():
    """A table that can't grow is filled, or the census fails; it does not look for room for ever."""
    said = run(
        """
        import gc, json, resource
        from leakprobe import LeakprobeError, _core
        from leakprobe.model.frames import PACKAGE_DIR
        _core.start(16, PACKAGE_DIR)
        types = [type(f"T{i}", (), {"__slots__": ("x",)}) for i in range(8000)]
        kept = []
        def keep():
            kept.extend(T() for T in types)
            for one in kept: one.x = kept
        keep()
        first = _core.census(False, 0, 2**32 - 1, 3).object_count
        for _ in range(2): _core.mark(), keep()
        now = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + (1 << 20), resource.RLIM_INFINITY))
        try: said = _core.census(False, 0, 2**32 - 1, 3).object_count
        except (LeakprobeError, MemoryError) as error: said = "out of memory"
        print(json.dumps([first, said]))
        """,
        timeout=120,
    )
    assert said[0] >= 8000 and (said[1] == "out of memory" or said[1] >= 24_000)


# ---- sites and steps ----

PLANT = """
    import gc, sys
    from leakprobe import _core

    kept, table = [], {{}}
    MAKERS = {makers}

    _core.start(8, "/nowhere")
    for step in range({steps}):
        for make in MAKERS:
            for i in range({per_step}):
                kept.append(make(step * 1000 + i))
        _core.mark()
    gc.collect()
    found = _core.census(True, 0, 2**32 - 1, 0)
    kept_by = {{}}
    for group in found.groups:
        name, type_id, site, count = group[:4]
        series = found.series(type_id, site)
        frames = _core.site_frames(site)
        kept_by.setdefault(name, []).append((count, series, frames))
"""

MAKERS = {
    "dict of numbers": ("dict", "lambda i: {1: i + 0.5}"),
    "str": ("str", "lambda i: 'text %d' % (i + 10**6)"),
    "bytes": ("bytes", "lambda i: b'%d' % (i + 10**6)"),
    "float": ("float", "lambda i: i + 0.25"),
    "dict key": ("str", "lambda i: table.setdefault('key %d' % (i + 10**6))"),
    "tuple of numbers": ("tuple", "lambda i: (i + 0.5, i + 0.75)"),
    "list": ("list", "lambda i: [i]"),
}


@pytest.mark.skipif(not HAS_HOOKS, reason="needs the object hooks")
@pytest.mark.parametrize("kind", MAKERS)
def test_ten_thousand_kept_objects_have_site_and_step(kind):
    name, maker = MAKERS[kind]
    code = textwrap.dedent(PLANT).format(makers="[%s]" % maker, steps=20, per_step=500)
    code += textwrap.dedent(f"""
        count, series, frames = max(kept_by[{name!r}], key=lambda row: row[0])
        assert count >= 9900, (count, kept_by[{name!r}])
        by_step = {{step: n for step, n, size in series}}
        assert all(495 <= by_step.get(step, 0) <= 520 for step in range(19)), by_step
        assert all(size > 0 for step, n, size in series)
        assert frames[0][2].endswith("<lambda>") and frames[0][1] == 6, frames
        _core.stop()
    """)
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.skipif(not HAS_HOOKS, reason="needs the object hooks")
def test_groups_keep_to_the_window():
    code = textwrap.dedent(PLANT).format(makers="[lambda i: [i]]", steps=20, per_step=500) + textwrap.dedent("""
        group = max((g for g in _core.census(False, 5, 9, 5).groups if g[0] == "list"), key=lambda g: g[3])
        name, type_id, site, count, size, window_count, window_size, window_steps, first, last = group
        assert count >= 9900 and 2475 <= window_count <= 2600 and window_steps == 5
        assert first <= 1 and last >= 18 and 0 < window_size < size
        assert not [g for g in _core.census(False, 100, 200, 1).groups]
        top = _core.census(False, 100, 200, 1).top(3)
        assert len(top) == 3 and top[0][4] >= top[1][4] >= top[2][4]
    """)
    subprocess.run([sys.executable, "-c", code], check=True)
