"""Objects that CPython recycles name the line that made them, and nesting is freed as before."""

import sys

import pytest
from fresh import run

MECHANISMS = ["events", "allocator"] if sys.version_info >= (3, 13) else ["allocator"]

CHURN = """
    import gc, json
    from leakprobe import _core
    class Plain:
        pass
    def churn():
        for _ in range(50):
            a, b, c, d, e = [], {}, (a0, a0), a0 * 0.5, Plain()
            e.x = [a, b]
    a0 = 1.5
    kept = []
    def leak():
        kept.append([])
        kept.append({})
        kept.append((kept, kept))
        kept.append(a0 * 3)
        kept.append(Plain())
        kept.append([1, 2, 3])
        kept.append({"a": 1})
        kept.append((kept, 1, 2, 3))
    _core.start(8, "/nowhere/")
    for i in range(300):
        churn()
        leak()
        churn()
        if i % 50 == 0:
            gc.collect()
        _core.mark()
    lines = [_core.site_frames(_core.site_of(op)[0])[0][1] for op in kept]
    steps = [_core.site_of(op)[1] for op in kept]
    mechanism = _core.hook_status()["mechanism"]
    _core.stop()
    print(json.dumps([lines, steps, mechanism]))
"""


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_leaked_objects_name_their_line_while_others_churn(mechanism):
    lines, steps, name = run(CHURN, env={"LEAKPROBE_MECHANISM": mechanism})
    assert lines == list(range(12, 20)) * 300
    assert steps == [i for i in range(300) for _ in range(8)]
    assert name == {"events": "creation events", "allocator": "allocator hook"}[mechanism]


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("nest", ["[x]", "{1: x}", "(x,)", "[{1: (x,)}]", "Sub([x])"])
def test_a_million_deep_is_freed_without_overflow(nest, mechanism):
    assert run(
        f"""
        import json
        from leakprobe import _core
        class Sub(list):
            pass
        def nested():
            x = None
            for _ in range(1_000_000):
                x = {nest}
            return x
        _core.start(8, "/nowhere/")
        x = nested()
        del x
        y = nested()
        _core.mark()
        _core.stop()
        del y
        print(json.dumps(True))
        """,
        env={"LEAKPROBE_MECHANISM": mechanism},
    )


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_gc_callbacks_of_others_are_kept_and_ours_goes(mechanism):
    during, after, called = run(
        """
        import gc, json
        from leakprobe import _core
        calls = []
        mine = lambda phase, info: calls.append(phase)
        gc.callbacks.append(mine)
        _core.start(8, "/nowhere/")
        during = mine in gc.callbacks
        gc.collect()
        _core.stop()
        print(json.dumps([during, gc.callbacks == [mine], calls[:2]]))
        """,
        env={"LEAKPROBE_MECHANISM": mechanism},
    )
    assert during and after and called == ["start", "stop"]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_stop_inside_a_finalizer_that_a_list_runs(mechanism):
    assert run(
        """
        import json
        from leakprobe import _core
        class Stops:
            def __del__(self):
                _core.stop()
        class Sub(list):
            def __del__(self):
                _core.stop()
        for _ in range(50):
            for make in (lambda: [Stops()], lambda: {1: Stops()}, lambda: (Stops(),), lambda: Sub([1])):
                _core.start(8, "/nowhere/")
                x = [make()]
                del x
                assert not _core.is_active()
        print(json.dumps(True))
        """,
        env={"LEAKPROBE_MECHANISM": mechanism},
    )


def test_an_object_that_may_be_recycled_names_no_line():
    recycled = run(
        """
        import contextvars, json
        from leakprobe import _core
        _core.start(8, "/nowhere/")
        for _ in range(300):
            contextvars.copy_context()
        kept = [contextvars.copy_context() for _ in range(10)]
        sites = [_core.site_of(op)[0] for op in kept]
        frames = [_core.site_frames(site) for site in sites]
        _core.stop()
        print(json.dumps([sites, frames]))
        """,
        env={"LEAKPROBE_MECHANISM": "allocator"},
    )
    assert recycled == [[3] * 10, [[]] * 10]
