"""Sites name the right code: generators, recursion, exceptions, exec'd code that dies, deep stacks."""

from fresh import run


def test_two_callers_of_one_line_are_two_sites():
    frames = run(
        """
        import json
        from leakprobe import _core
        def make():
            return bytearray(1)
        def one():
            return make()
        def two():
            return make()
        _core.start(8, "/nowhere/")
        kept = [f() for _ in range(3) for f in (one, two)]
        print(json.dumps([_core.site_frames(_core.site_of(op)[0]) for op in kept]))
        """
    )
    assert [[f[1] for f in stack] for stack in frames] == [[4, 6], [4, 8]] * 3


def test_callers_of_a_class_are_seen_behind_its_init():
    """A specialised call of a class has a frame of its own below __init__ (3.13)."""
    frames = run(
        """
        import json
        from leakprobe import _core
        class Made:
            def __init__(self):
                self.data = bytearray(1)
        def one():
            return Made()
        def two():
            return Made()
        _core.start(8, "/nowhere/")
        kept = [f() for _ in range(50) for f in (one, two)]
        print(json.dumps([_core.site_frames(_core.site_of(op.data)[0]) for op in kept]))
        """
    )
    assert [[f[1] for f in stack] for stack in frames] == [[5, 7], [5, 9]] * 50


def test_callers_behind_c_code_are_seen():
    frames = run(
        """
        import functools, json
        from leakprobe import _core
        def make(*_):
            return bytearray(1)
        def by_map():
            return list(map(make, [1]))[0]
        def by_partial():
            return functools.partial(make)()
        def by_sort():
            out = []
            sorted([1], key=lambda _: out.append(make()))
            return out[0]
        _core.start(8, "/nowhere/")
        kept = [f() for f in (by_map, by_partial, by_sort)]
        print(json.dumps([[f[1] for f in _core.site_frames(_core.site_of(op)[0])] for op in kept]))
        """
    )
    assert frames == [[4, 6], [4, 8], [4, 11]]


def test_generators_coroutines_comprehensions_and_classes():
    lines = run(
        """
        import asyncio, json
        from leakprobe import _core
        kept = []
        def generator():
            kept.append(bytearray(1))
            yield
            kept.append(bytearray(1))
            yield from inner()
        def inner():
            kept.append(bytearray(1))
            yield
        async def coroutine():
            kept.append(bytearray(1))
            await asyncio.sleep(0)
            kept.append(bytearray(1))
        async def agen():
            kept.append(bytearray(1))
            yield 1
            kept.append(bytearray(1))
        async def uses():
            async for _ in agen():
                await coroutine()
        _core.start(8, "/nowhere/")
        for _ in generator():
            pass
        asyncio.run(uses())
        kept += [bytearray(1) for _ in range(2)]
        class Body:
            kept.append(bytearray(1))
        print(json.dumps([_core.site_frames(_core.site_of(op)[0])[0][1] for op in kept]))
        """
    )
    assert lines == [5, 7, 10, 17, 13, 15, 19, 27, 27, 29]


def test_exceptions_and_recursion_to_the_limit():
    lines, caught = run(
        """
        import json
        from leakprobe import _core
        kept = []
        def deep(n):
            kept.append([n])
            return deep(n + 1)
        def raises():
            raise ValueError([1])
        _core.start(16, "/nowhere/")
        caught = 0
        for _ in range(20):
            try:
                deep(0)
            except RecursionError:
                caught += 1
            try:
                raises()
            except ValueError as error:
                kept.append(error)
            _core.mark()
        lines = sorted({_core.site_frames(_core.site_of(op)[0])[0][1] for op in kept})
        print(json.dumps([lines, caught]))
        """
    )
    assert lines == [5, 8] and caught == 20


def test_code_that_dies_and_whose_address_is_used_again():
    wrong, reused = run(
        """
        import json
        from leakprobe import _core
        _core.start(8, "/nowhere/")
        wrong, addresses, sites = 0, set(), []
        for i in range(3000):
            name = "file %d \\u00e9\\u4e2d.py" % i
            space = {}
            exec(compile("\\n" * (i % 7) + "def f():\\n  return bytearray(1)\\nx = f()", name, "exec"), space)
            addresses.add(id(space["f"].__code__))
            site = _core.site_of(space["x"])[0]
            sites.append((site, name, i % 7 + 2))
            wrong += _core.site_frames(site)[0] != (name, i % 7 + 2, "f") if i % 2 else 0
            del space
        for site, name, line in sites:
            wrong += _core.site_frames(site)[0] != (name, line, "f")
        print(json.dumps([wrong, len(addresses)]))
        """
    )
    assert wrong == 0 and reused < 2900


def test_code_that_dies_after_stop():
    assert run(
        """
        import gc, json
        from leakprobe import _core
        space = {}
        exec(compile("def f(): return bytearray(1)", "gone.py", "exec"), space)
        _core.start(8, "/nowhere/")
        site = _core.site_of(space["f"]())
        x = space["f"]()
        site = _core.site_of(x)[0]
        _core.stop()
        space.clear()
        gc.collect()
        junk = [compile("a = %d" % i, "other.py", "exec") for i in range(100)]
        print(json.dumps(_core.site_frames(site)[0]))
        """
    ) == ["gone.py", 1, "f"]


def test_own_code_is_left_out():
    frames, own = run(
        """
        import json
        from leakprobe import _core
        space = {}
        exec(compile("def steps(make):\\n  mine = bytearray(1)\\n  return mine, make()", "/own/probe.py", "exec"), space)
        def make():
            return bytearray(1)
        def user():
            return space["steps"](make)
        _core.start(8, "/own/")
        mine, theirs = user()
        print(json.dumps([_core.site_frames(_core.site_of(theirs)[0]), _core.site_of(mine)[0]]))
        """
    )
    assert [f[1:] for f in frames] == [[6, "make"]] and own == 2


def test_a_deep_site_has_whole_stacks_as_children():
    base, children, frames = run(
        """
        import json
        from leakprobe import _core
        def make():
            return bytearray(1)
        def nest(n):
            return nest(n - 1) if n else make()
        def left():
            return nest(5)
        def right():
            return nest(5)
        _core.start(16, "/nowhere/")
        site = _core.site_of(left())[0]
        x = left()
        site = _core.site_of(x)[0]
        _core.set_deep(site)
        kept = [f() for _ in range(3) for f in (left, right)]
        sites = [_core.site_of(op)[0] for op in kept]
        assert sites == sites[:2] * 3 and {_core.site_base(s) for s in sites} == {site}
        children = _core.site_children(site)
        frames = [[f[1] for f in _core.site_frames(s)] for s in children]
        print(json.dumps([sorted(children) == sorted(set(sites)), len(children), frames]))
        """
    )
    assert base and children == 2
    # Behind these come the module and, before 3.12, a frame of the comprehension.
    assert [stack[:8] for stack in frames] == [[4] + [6] * 6 + [8], [4] + [6] * 6 + [10]]
    assert all(len(stack) <= 10 and stack[-1] == 16 for stack in frames)


def test_sites_agree_with_tracemalloc_on_the_standard_library():
    same, different = run(
        """
        import json, tracemalloc
        from leakprobe import _core
        _core.start(8, "/nowhere/")
        tracemalloc.start(1)
        _core.mark()
        import argparse, ast, dataclasses, decimal, textwrap
        kept = []
        for i in range(30):
            tree = ast.parse("def f(x):\\n  return [y * 2 for y in x if y > %d]" % i)
            kept += [node for node in ast.walk(tree)]
            kept.append(json.loads('{"a": [1.5, {"b": "cccc%d"}]}' % i))
            parser = argparse.ArgumentParser()
            kept.append(parser.add_argument("--x%d" % i))
            kept.append(textwrap.wrap("some words " * 20, 30))
            kept.append(dataclasses.make_dataclass("D%d" % i, ["a", "b"]))
        same = different = 0
        for op in kept:
            trace = tracemalloc.get_object_traceback(op)
            stamp = _core.site_of(op)
            if trace is None or stamp is None:
                continue
            frames = _core.site_frames(stamp[0])
            if frames and frames[0][:2] == (trace[0].filename, trace[0].lineno):
                same += 1
            else:
                different += 1
        print(json.dumps([same, different]))
        """
    )
    assert same > 400 and different <= 3
