"""What an object reaches: counts, bytes and pages, against what Python itself says."""

from fresh import run


def test_a_list_of_strings_is_counted_to_the_byte():
    found = run(
        """
        import json, sys
        from leakprobe import _core
        data = ["%0100d" % k for k in range(10_000)]
        reach = _core.reach_new(0)
        first = reach.region(reach.add(data))
        again = reach.region(reach.add(data))
        reach.finish()
        print(json.dumps([first, again["count"], sys.getsizeof(data), sum(map(sys.getsizeof, data)),
                          len({id(s) >> 12 for s in data} | {id(data) >> 12})]))
        """
    )
    region, again, of_list, of_strings, pages = found
    assert region["count"] == 10_001 and region["types"][1] == ["str", 10_000, of_strings]
    # getsizeof() has the header of the collector, and the room of the list as it was asked for.
    assert abs(region["bytes"] - of_list - of_strings) <= 32
    assert region["pages"] == pages and again == 0


def test_classes_modules_and_functions_are_not_followed():
    count = run(
        """
        import json, os
        from leakprobe import _core
        class Data:
            def __init__(self): self.module, self.cls, self.f, self.x = os, Data, os.path.join, [1.5, 2.5]
        reach = _core.reach_new(0)
        print(json.dumps(reach.region(reach.add(Data()))["count"]))
        """
    )
    assert count <= 10


def test_a_limit_is_an_error_that_says_so():
    said = run(
        """
        import json
        from leakprobe import _core, LeakprobeError
        try:
            _core.reach_new(100).add([object() for _ in range(1000)])
        except LeakprobeError as error:
            print(json.dumps(str(error)))
        """
    )
    assert "limit" in said


def test_cycles_and_deep_nesting_end():
    counts = run(
        """
        import json
        from leakprobe import _core
        ring = []; ring.append(ring)
        deep = None
        for _ in range(1_000_000): deep = (deep,)
        reach = _core.reach_new(0)
        print(json.dumps([reach.region(reach.add(ring))["count"], reach.region(reach.add(deep))["count"]]))
        """
    )
    assert counts[0] == 1 and counts[1] in (1_000_000, 1_000_001)


def test_attributes_are_named():
    names = run(
        """
        import json, sys
        from leakprobe.torch.datasets import DatasetWalk
        class Base:
            __slots__ = ("rows",)
        class Set:
            pass
        base, data = Base(), Set()
        base.rows = [[k] for k in range(500)]
        data.splits = {"train": [str(k) for k in range(1000)], "test": [str(k) for k in range(1000, 1300)]}
        data.base, data.name, data.own = base, "x", data
        walk = DatasetWalk(data)
        print(json.dumps(sorted([a.name, a.describe()] for a in walk.attributes if a.length)))
        """
    )
    assert names == [
        ["dataset.base.rows", "list of 500 list"],
        ["dataset.name", "str of 1 items"],
        ["dataset.splits['test']", "list of 300 str"],
        ["dataset.splits['train']", "list of 1,000 str"],
    ]


def test_types_that_find_no_room_of_their_own_are_counted_together():
    first, last, kept = run(
        """
        import json
        from leakprobe import _core
        rare = [type(f"T{i}", (), {"__slots__": ()})() for i in range(70)]
        class Bulk: __slots__ = ()
        bulk = [Bulk() for _ in range(1000)]
        reach = _core.reach_new(0)
        rows = reach.region(reach.add((*rare, bulk)))["types"]
        print(json.dumps([rows[0], rows[-1], len(rows)]))
        """
    )
    assert first[0] == "tuple" and kept == 60
    assert last[0] == "other types" and last[1] > 1000
