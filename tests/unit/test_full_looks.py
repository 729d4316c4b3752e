"""When a look must be a full census: not again and again for blocks that a known table adds at the same
rate.
"""

import types

import pytest
from clocked import Looked

from leakprobe.analysis import suspects

#: A module whose lines make the entries of a known table, or of any table, at COUNT a step.
TABLE = """
name = "torch.multiprocessing.reductions"
sys.modules[name] = module = types.ModuleType(name)
module.__file__ = "/somewhere/reductions.py"
source = '''table = {}
def share(step, count):
    for i in range(count):
        table[step, i] = str(step)'''
exec(compile(source, FILE, "exec"), module.__dict__)
with leakprobe.watch(limit="1 KiB/step") as probe:
    for step in range(1, 1001):
        module.share(step, COUNT)
        mark(probe)
"""


def looked(*, known: bool, count: str) -> Looked:
    file = "/somewhere/reductions.py" if known else "/somewhere/else.py"
    return Looked(TABLE.replace("FILE", repr(file)).replace("COUNT", count))


@pytest.fixture(scope="module")
def steady_table():
    return looked(known=True, count="2")


def test_one_full_look_is_enough_where_a_known_table_makes_the_rise(steady_table):
    assert steady_table.full_between(1, 100) == 1, steady_table.full


def test_where_other_objects_make_the_rise_two_full_looks_are_compared():
    found = looked(known=False, count="2")
    assert found.full_between(1, 100) == 2, found.full


def test_few_looks_are_full_while_a_known_table_grows_as_before(steady_table):
    assert steady_table.full_between(1, 1000) <= 4 < len(steady_table.steps), steady_table.full
    assert steady_table.verdict == "steady", steady_table.findings


def test_a_faster_rise_is_looked_into_in_full(steady_table):
    found = looked(known=True, count="2 if step < 500 else 6")
    assert steady_table.full_between(500, 1000) == 0, steady_table.full
    assert found.full_between(500, 1000) > 0, found.full


def test_objects_of_torch_in_a_known_table_keep_bytes_of_malloc(monkeypatch):
    table, other = 7, 8  # sites
    monkeypatch.setattr(suspects, "is_of_known_table", lambda site: site == table)

    def group(type_name, site, count):
        return types.SimpleNamespace(
            type=type_name, site=site, growth=types.SimpleNamespace(count_per_step=count)
        )

    groups = [
        group("torch.Tensor", other, 5.0),
        group("torch.multiprocessing.reductions.StorageWeakRef", table, 2.0),
        group("tuple", table, 9.0),
    ]
    assert suspects.bytes_behind_known_tables(groups) == 2 * suspects.BEHIND_ENTRY
