"""The lists of what still breaks a rule take nothing new, keep nothing that is paid, and only shrink."""

import debts
import pytest


def test_a_list_takes_nothing_new_and_keeps_nothing_that_is_paid():
    debts.check_list(["a", "b"], ["b", "a"], "files")
    with pytest.raises(AssertionError, match=r"files: \['c'\]; fix"):
        debts.check_list(["a"], ["a", "c"], "files")
    with pytest.raises(AssertionError, match=r"files: \['b'\] are no longer so"):
        debts.check_list(["a", "b"], ["a"], "files")


def test_a_count_is_neither_exceeded_nor_left_too_high():
    debts.check_count(5, 5, "numbers")
    with pytest.raises(AssertionError, match="numbers: 6, the bound is 5"):
        debts.check_count(5, 6, "numbers")
    with pytest.raises(AssertionError, match="numbers: 4, fewer than the bound of 5"):
        debts.check_count(5, 4, "numbers")


def test_a_file_that_is_too_long_may_only_become_shorter():
    debts.check_lengths({"a.c": 520}, {"a.c": 510}, "lines")
    with pytest.raises(AssertionError, match="lines: {'a.c': 530} are longer than before"):
        debts.check_lengths({"a.c": 520}, {"a.c": 530}, "lines")


def test_lowering_adds_nothing_and_raises_nothing():
    old = {"arrows": [["a", "b"], ["c", "d"]], "numbers": {"c": 5, "python": 7}, "long": {"x": 9, "y": 9}}
    new = {"arrows": [["c", "d"], ["e", "f"]], "numbers": {"c": 6, "python": 3}, "long": {"x": 8, "z": 9}}
    lowered = {"arrows": [["c", "d"]], "numbers": {"c": 5, "python": 3}, "long": {"x": 8}}
    assert debts.lowered(old, new) == lowered
