"""The live objects of some types, found without a list of all that live."""

import gc

import pytest

from leakprobe import _core
from leakprobe.errors import LeakprobeError


class Base: ...


class Derived(Base): ...


class Slotted:
    __slots__ = ("__weakref__", "other")


def test_objects_of_the_types_are_found_and_no_others():
    base, derived, slotted = Base(), Derived(), Slotted()
    assert _core.instances([Base]) == [base]
    assert set(map(id, _core.instances([Base, Derived, Derived]))) == {id(base), id(derived)}
    assert _core.instances([Slotted]) == [slotted]
    assert _core.instances([]) == [] and _core.instances([int]) == []


def test_what_is_frozen_is_found_too():
    base = Base()
    gc.collect()
    gc.freeze()
    try:
        assert _core.instances([Base]) == [base]
    finally:
        gc.unfreeze()


def test_while_the_collector_runs_it_says_so():
    said = []

    def asked(phase, info):
        try:
            _core.instances([Base])
        except LeakprobeError as error:
            said.append(error.code)

    gc.callbacks.append(asked)
    try:
        gc.collect()
    finally:
        gc.callbacks.remove(asked)
    assert said.count("gc_running") >= 1


@pytest.mark.parametrize("wrong", [None, (Base,), Base])
def test_anything_but_a_list_is_refused(wrong):
    with pytest.raises(TypeError, match="list of types"):
        _core.instances(wrong)
