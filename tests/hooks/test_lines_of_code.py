"""The lines that births are given, in code whose lines are known: far apart, over several, backwards."""

import random

import pytest
from fresh import run


def module_of(seed, statements=600):
    """(source, lines): its statements append lists, which are born on these lines, in this order."""
    rng, text, lines = random.Random(seed), ["def f(out):"], []
    for number in range(statements):
        text += [""] * rng.choice((0, 0, 0, 1, 7, 40, 300))
        kind = rng.randrange(4)
        if kind == 0:
            text.append(f"    out.append([{number}, out])")
        elif kind == 1:
            text += ["    out.append(", f"        [{number}, out]", "    )"]
        elif kind == 2:
            text += ["    if len(out) >= 0:", "", f"        out.append([{number}, out])"]
        else:
            text += ["    for _ in range(2):", f"        out.append([{number}, out])"]
        lines += [len(text) - (kind == 1)] * (1 + (kind == 3))
    return "\n".join(text) + "\n", lines


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("dies", [False, True], ids=["alive", "dead"])
def test_each_birth_has_its_line(seed, dies):
    source, lines = module_of(seed)
    found = run(
        f"""
        import json
        from leakprobe import _core
        _core.start(8, "/nowhere/")
        space, out = {{}}, []
        exec(compile({source!r}, "made.py", "exec"), space)
        for _ in range(2):
            space["f"](out)
        if {dies}:
            del space["f"]
        print(json.dumps([_core.site_frames(_core.site_of(op)[0])[0][1] for op in out]))
        """
    )
    assert found == lines + lines


def test_code_that_is_made_anew_has_the_sites_of_the_one_before():
    """Also where another code object lies in the same place meanwhile."""
    source, lines = module_of(9, statements=60)
    sites = run(
        f"""
        import json
        from leakprobe import _core
        _core.start(8, "/nowhere/")
        found = []
        for turn in range(6):
            space, out = {{}}, []
            text = {source!r} if turn % 2 == 0 else "\\n" + {source!r}
            exec(compile(text, "made.py", "exec"), space)
            space["f"](out)
            del space["f"]
            bases = [_core.site_base(_core.site_of(op)[0]) for op in out]
            found.append([bases, [_core.site_frames(site)[0][1] for site in bases]])
        print(json.dumps(found))
        """
    )
    for turn, (bases, found) in enumerate(sites):
        assert found == [line + turn % 2 for line in lines]
        assert bases == sites[turn % 2][0]
