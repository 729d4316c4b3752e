"""More holders, cycles and names than a trace looks at one by one: none of what they keep goes uncounted."""

import pytest
from trace_support import holders, run, with_holder

STEPS = 8  # of the window that is traced


def each_step(entry: dict, of: str) -> set[int]:
    """How many of a type each step left; one number if all left as many."""
    (member,) = [m for m in entry["members"] if m["type"] == of]
    assert len(member["series"]) == STEPS
    return {row[1] for row in member["series"]}


def test_cycles_of_all_steps_are_counted():
    result = run(
        """
        class Node:
            pass
        begin()
        gc.disable()
        def step(i):
            for _ in range(600):
                node = Node()
                node.me = node
        loop(step)
        done(trace())
        """
    )
    (entry,) = [h for h in holders(result) if any(m["type"] == "__main__.Node" for m in h["members"])]
    assert (entry["kind"], entry["holder_count"]) == ("garbage", 600 * STEPS)
    assert each_step(entry, "__main__.Node") == {600}
    assert result["trace"]["rest"]["count"] == 0


def test_each_of_many_holders_goes_where_those_like_it_are():
    """They are older than the watch: no line tells them apart, what they are in does."""
    result = run(
        """
        class Item:
            __slots__ = ()
        class Left:
            def __init__(self):
                self.log = []
        class Right:
            def __init__(self):
                self.seen = []
        left, right = [Left() for _ in range(2500)], [Right() for _ in range(2500)]
        begin()
        def step(i):
            for one in left:
                one.log.append(Item())
            for one in right:
                one.seen += [Item()]
        loop(step)
        done(trace())
        """
    )
    for text in (".log", ".seen"):
        entry = with_holder(result, text)
        assert entry["holder_count"] == 2500 and each_step(entry, "__main__.Item") == {2500}


NAMES = """
class Item:
    __slots__ = ()
class Register:
    pass
register = Register()
begin()
def step(i):
    for k in range(PER_STEP):
        name = f"item_{i}_{k}"
        GROW
loop(step)
done(trace())
"""
GROW = {
    "instance": "setattr(register, name, Item())",
    "class": "setattr(Register, name, Item())",
    "module": "globals()[name] = Item()",
}


def found(grow: str, per_step: int) -> list:
    result = run(NAMES.replace("PER_STEP", str(per_step)).replace("GROW", GROW[grow]))
    return [h for h in holders(result) if any(m["type"] == "__main__.Item" for m in h["members"])]


@pytest.mark.parametrize("grow", GROW)
def test_a_namespace_with_many_growing_names_is_a_table(grow):
    (entry,) = found(grow, 10)
    assert each_step(entry, "__main__.Item") == {10}
    assert entry["holder_count"] == 1


def test_few_names_are_told_apart():
    assert len(found("instance", 5)) == 5 * STEPS


def test_names_beside_a_namespace_that_became_a_table_stay_apart():
    names = NAMES.replace("PER_STEP", "10").replace(
        "GROW", "setattr(register, name, Item())\n        if k < 5: setattr(other, name, Item())"
    )
    result = run(names.replace("register = Register()", "register, other = Register(), Register()"))
    found = [h for h in holders(result) if any(m["type"] == "__main__.Item" for m in h["members"])]
    assert len(found) == 1 + 5 * STEPS
