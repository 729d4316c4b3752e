"""What native code keeps for the items of a container is one finding with that."""

import pytest
from sample_reports import USER, finding

from leakprobe.judge.causes.case import is_opaque
from leakprobe.judge.merging import is_one_cause, merge_findings, merge_opaque, merge_weak
from leakprobe.model.frames import Frame

#: A C type without tp_traverse, by a name of this module.
Opaque = float


class Open:
    pass


def kept(item="Opaque", **changes):
    values = {"cause": "growing_container", "type": f"{__name__}.{item}", "count_per_step": 2.0}
    return finding(**(values | changes))


def lost(**changes):
    values = {
        "fingerprint": "ba9876543210",
        "kind": "lost_reference",
        "cause": "lost_reference",
        "type": "numpy.ndarray",
        "medium": "numpy",
        "holder": None,
        "count_per_step": 4.0,
        "bytes_per_step": 8.0 * 2**20,
    }
    return finding(**(values | changes))


def test_arrays_that_opaque_items_keep_are_counted_with_their_container():
    (merged,) = merge_opaque([lost(), kept()])
    assert merged.cause == "growing_container" and merged.medium == "numpy"
    assert (
        merged.bytes_per_step == 8.0 * 2**20
        and "does not show the garbage collector what it refers to" in merged.evidence
    )


@pytest.mark.parametrize(
    "owner, other",
    [
        (kept("Open"), lost()),  # its references are seen
        (kept(), lost(count_per_step=3.0)),  # no whole number for each item
        (kept(), lost(allocation=USER.__class__("/home/me/other.py", 3, "load"))),
        (kept(holder=None), lost()),
    ],
)
def test_others_stay_two(owner, other):
    assert merge_opaque([owner, other]) == [owner, other]


def test_opaque_types_are_told_by_their_flags():
    assert is_opaque(f"{__name__}.Opaque") and not is_opaque(f"{__name__}.Open")
    assert not any(map(is_opaque, ("int", "datetime.datetime", "numpy.ndarray", "no.such.Type")))


CALL = {"filename": "/home/me/train.py", "lineno": 61, "function": "step"}


def registered(root="re", **changes):
    values = {
        "cause": "library_registry",
        "fingerprint": f"{root}{len(changes)}"[:12],
        "path": [{"text": root, "edge": "module", "type": "module"}],
        "holder": {
            "text": f"table of {root} (dict, 60 items)",
            "type": "dict",
            "grown_at": CALL,
            "length": 60,
        },
        "count_per_step": 3.0,
    }
    return finding(**(values | changes))


def test_tables_that_one_call_fills_are_one_finding():
    (merged,) = merge_findings([registered(bytes_per_step=700.0), registered("ast", bytes_per_step=400.0)])
    assert (
        merged.bytes_per_step == 1100.0
        and "also kept by table of ast (dict, 60 items) of ast" in merged.evidence
    )


def test_the_library_that_was_called_stands_for_what_the_standard_library_keeps_for_it():
    own, kept = (
        registered("pytest.cache", bytes_per_step=400.0),
        registered("linecache", bytes_per_step=700.0),
    )
    (merged,) = merge_findings([kept, own])
    assert merged.path == own.path and merged.holder == own.holder and merged.bytes_per_step == 1100.0
    assert "also kept by table of linecache" in merged.evidence


@pytest.mark.parametrize(
    "other",
    [
        registered("ast", holder={**registered().holder, "grown_at": {**CALL, "lineno": 62}}),
        registered("ast", count_per_step=4.3),  # not with each entry of the other table
        registered("ast", allocation=USER.__class__("/home/me/train.py", 60, "step")),
        registered("ast", cause="growing_container"),
    ],
)
def test_tables_that_others_fill_stay_two(other):
    assert len(merge_findings([registered(), other])) == 2


INFO = {"text": "[<finalize key>] _Info", "edge": "item", "type": "weakref.finalize._Info"}


def finalizer(**changes):
    path = [{"text": "weakref", "edge": "module", "type": "module"}, INFO]
    return registered("weakref", path=path, onset_step=7, **changes)


def test_the_finalizer_of_what_a_container_keeps_goes_with_it():
    owner = finding(count_per_step=3.0, onset_step=6)
    assert [f.cause for f in merge_weak([finalizer(), owner])] == [owner.cause]
    elsewhere = finalizer(allocation=USER.__class__("/home/me/train.py", 12, "step"))
    assert len(merge_weak([elsewhere, owner])) == 2


def filled(name, lineno, allocated=7):
    """What a line puts into a list of this name."""
    row = {"filename": USER.filename, "lineno": lineno, "function": "step"}
    holder = {"text": f"{name} (list, 60 items)", "type": "list", "grown_at": row}
    nodes = [("__main__", "module", "module"), (holder["text"], "attribute", "list")]
    path = [{"text": text, "edge": edge, "type": kind} for text, edge, kind in nodes]
    return kept(path=path, holder=holder, allocation=Frame(USER.filename, allocated, "step"))


def test_lists_of_like_names_that_two_lines_fill_are_two_leaks():
    first, second = merge_findings([filled(".losses1", 3), filled(".losses2", 4)])
    assert {first.holder["text"], second.holder["text"]} == {
        ".losses1 (list, 60 items)",
        ".losses2 (list, 60 items)",
    }
    assert len({first.fingerprint, second.fingerprint, filled(".losses1", 3).fingerprint}) == 3


def test_names_that_one_line_makes_up_are_one_leak():
    (merged,) = merge_findings([filled(".b17", 3), filled(".b18", 3)])
    assert merged.count_per_step == 4.0


def groups_of(name, table=".state (dict, 60 items)"):
    texts = [("state S", "global"), (f".{name} Adam", "attribute"), (table, "attribute")]
    path = [{"text": "__main__", "edge": "module", "type": "module"}]
    path += [{"text": text, "edge": edge, "type": None} for text, edge in texts]
    holder = {"text": table, "type": "dict", "grown_at": None, "length": 60}
    return finding(cause="optimizer_state", path=path, holder=holder)


def test_two_optimizers_below_a_variable_named_state_are_two():
    first, groups = groups_of("first"), groups_of("first", ".param_groups (list, 61 items)")
    assert is_one_cause(first, groups) and not is_one_cause(first, groups_of("second"))
