"""start, stop, mark and the stamps; alone and beside tracemalloc in any order."""

import pathlib
import sys

import pytest
from fresh import run

EVENTS = sys.version_info >= (3, 13)


def test_births_name_line_and_step():
    result = run(
        """
        import json
        from leakprobe import _core
        old = object()
        _core.start(8, "/nowhere/")
        kept = []
        for step in range(5):
            kept.append(bytearray(10))
            assert _core.step() == step
            assert _core.mark() == step + 1
        stamps = [_core.site_of(op) for op in kept]
        frames = {tuple(map(tuple, _core.site_frames(stamp[0]))) for stamp in stamps}
        before = _core.site_of(old)
        _core.stop()
        print(json.dumps([[s[1:] for s in stamps], sorted(frames), before, _core.site_of(kept[0])]))
        """
    )
    assert result == [[[i, i] for i in range(5)], [[["<string>", 7, "<module>"]]], None, None]


@pytest.mark.parametrize(
    "call, code",
    [
        ("_core.start(0, '')", "bad_argument"),
        ("_core.start(100000, '')", "bad_argument"),
        ("(_core.start(8, ''), _core.start(8, ''))", "already_active"),
        ("_core.mark()", "not_active"),
        ("_core.site_frames(-1)", "bad_argument"),
        ("_core.site_frames(10**30)", "bad_argument"),
        ("_core.site_base(1 << 20)", "bad_argument"),
        ("_core.set_deep('x')", "bad_argument"),
    ],
)
def test_bad_input_has_a_code(call, code):
    assert (
        run(
            f"""
            import json
            from leakprobe import _core, LeakprobeError
            try:
                {call}
            except LeakprobeError as error:
                print(json.dumps(error.code))
            """
        )
        == code
    )


def test_stop_without_start_and_twice():
    assert run(
        """
        import json
        from leakprobe import _core
        _core.stop()
        _core.start(8, "")
        _core.stop()
        _core.stop()
        print(json.dumps([_core.is_active(), _core.hook_status()["mechanism"]]))
        """
    ) == [False, "none"]


RANDOM_ORDER = """
    import json, random, tracemalloc
    from leakprobe import _core, LeakprobeError
    rng = random.Random({seed})
    refused = gaps = wrong = 0
    kept = []
    def move():
        global refused, gaps
        choice = rng.randrange(4)
        if choice == 0 and _core.is_active():
            gaps += len(_core.hook_status()["gaps"])
            _core.stop()
        elif choice == 0:
            try:
                _core.start(8, "/nowhere/")
            except LeakprobeError as error:
                assert error.code == "tracemalloc_active"
                refused += 1
        elif choice == 1:
            tracemalloc.stop() if tracemalloc.is_tracing() else tracemalloc.start(rng.choice([1, 3]))
        elif choice == 2 and tracemalloc.is_tracing():
            tracemalloc.take_snapshot()
        if _core.is_active():
            _core.mark()
    for step in range(2000):
        move()
        kept = [[i, {{i: (i,)}}, str(i), i * 0.5] for i in range(10)]
        stamp = _core.site_of(kept)
        if _core.is_active() and _core.hook_status()["mechanism"] != "none":
            wrong += stamp is None or _core.site_frames(stamp[0])[0][1] != 26
            wrong += stamp is not None and stamp[1] != _core.step()
        assert _core.is_active() or stamp is None
    print(json.dumps([refused, gaps, wrong]))
"""


@pytest.mark.parametrize("seed", range(3))
def test_any_order_beside_tracemalloc_crashes_nothing_and_lies_never(seed):
    refused, gaps, wrong = run(RANDOM_ORDER.format(seed=seed))
    assert wrong == 0
    assert (gaps if EVENTS else refused) > 0


@pytest.mark.skipif(not EVENTS, reason="PyRefTracer came with 3.13")
def test_the_allocator_hook_serves_on_versions_with_events_too():
    refused, _gaps, wrong = run(RANDOM_ORDER.format(seed=9), env={"LEAKPROBE_MECHANISM": "allocator"})
    assert wrong == 0 and refused > 0


def test_tracemalloc_started_later_sees_its_traces_and_we_ours():
    ours, theirs = run(
        """
        import json, tracemalloc
        from leakprobe import _core
        _core.start(8, "/nowhere/")
        tracemalloc.start(1)
        _core.mark()
        kept = [bytearray(100) for _ in range(10)]
        ours = [_core.site_frames(_core.site_of(op)[0])[0][1] for op in kept]
        theirs = [tracemalloc.get_object_traceback(op)[0].lineno for op in kept]
        _core.stop()
        more = bytearray(100)
        theirs.append(tracemalloc.get_object_traceback(more)[0].lineno)
        tracemalloc.stop()
        print(json.dumps([ours, theirs]))
        """
    )
    assert ours == [6] * 10 and theirs == [6] * 10 + [10]


def test_an_allocator_that_someone_puts_back_over_us_is_a_gap():
    result = run(
        """
        import json, tracemalloc
        from leakprobe import _core
        _core.start(8, "/nowhere/")
        _core.mark()
        tracemalloc.start()
        tracemalloc.stop()
        kept = bytearray(5)
        _core.mark()
        later = bytearray(5)
        print(json.dumps([_core.hook_status()["gaps"], _core.site_of(kept) is None, _core.site_of(later)[1]]))
        """
    )
    gaps, is_unknown, step = result
    if EVENTS:
        assert [gap[:2] for gap in gaps] == [[1, 1]] and is_unknown and step == 2
    else:
        assert gaps == [] and not is_unknown and step == 2


def test_a_layer_above_that_asks_for_more_does_not_make_a_hook_call_itself(tmp_path):
    """The probe stops below it, and starts again: its hook is still in the chain, and not to be seen."""
    why_not = run(
        f"""
        import json, sys
        sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})
        from leakprobe import LeakprobeError, _core
        from orders import load_layer
        layer, why_not = load_layer({str(tmp_path)!r}), None
        _core.start(8, "/nowhere/")
        layer.widen()
        layer.push()
        _core.stop()
        try:
            _core.start(8, "/nowhere/")
        except LeakprobeError as error:
            why_not = error.code
        kept = [[i] * 1000 for i in range(10_000)]
        print(json.dumps(why_not))
        """
    )
    assert why_not == (None if EVENTS else "debug_hooks")


@pytest.mark.skipif(not EVENTS, reason="PyRefTracer came with 3.13")
@pytest.mark.parametrize(
    "look",
    ["_core.site_of(x)", "_core.census(True, 0, 9, 1)", "_core.find_cycles()", "_core.trace([], [], 0, 9)"],
)
def test_a_lost_slot_is_noticed_before_stamps_are_read(look):
    gaps, unknown = run(
        f"""
        import json, tracemalloc
        from leakprobe import _core
        x = []
        _core.start(8, "/nowhere/")
        _core.mark()
        old = [[i] for i in range(1000)]
        del old
        tracemalloc.start()
        kept = [[i] for i in range(1000)]
        {look}
        gaps = _core.hook_status()["gaps"]
        print(json.dumps([[gap[:2] for gap in gaps], {{_core.site_of(op) for op in kept}} == {{None}}]))
        """
    )
    assert gaps == [[1, 1]] and unknown


def test_start_and_stop_1000_times_leave_memory_flat():
    grown, objects = run(
        """
        import gc, json, os
        from leakprobe import _core
        def rss():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        def once():
            _core.start(16, "/nowhere/")
            kept = [{i: [i]} for i in range(200)]
            _core.mark()
            _core.stop()
        for _ in range(50):
            once()
        gc.collect()
        before, count = rss(), len(gc.get_objects())
        for _ in range(1000):
            once()
        gc.collect()
        print(json.dumps([rss() - before, len(gc.get_objects()) - count]))
        """
    )
    assert grown < 1 << 20 and objects < 10


def test_the_line_that_last_grew_a_list_is_stamped():
    assert run(
        """
        import json
        from leakprobe import _core
        _core.start(8, "/nowhere/")
        grown = _core.hook_status()["grown_at"]
        x = []
        x.extend(range(1000))
        print(json.dumps(grown))
        """
    )
