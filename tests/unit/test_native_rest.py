"""Memory outside of Python that samples explain in part: what is left has its own finding where it is most of
it, and is a note where it is less, since samples miss a part of every line.
"""

import dataclasses
import types

import pytest

from leakprobe.judge.rises import Rise
from leakprobe.model.verdict import Judgement, Verdict
from leakprobe.watch.count_findings import finding_of_bytes
from leakprobe.watch.native_samples import Grower
from leakprobe.watch.resource_findings import add_native, add_native_growth, add_rest
from leakprobe.watch.unexplained import unexplained

RISE = Rise(1000.0, (5, 0.0), (105, 100_000.0), 50, 50, 10.0, 1000.0)


def engine_of(sampled, line=()):
    """An engine whose samples explain so many bytes a step."""
    judgement = Judgement(Verdict.LEAK, "90 kept", 105)
    growers = [Grower(0, sampled, judgement, 0, 90, "lib.so", "make")] if sampled else []
    return types.SimpleNamespace(
        native_samples=types.SimpleNamespace(growers=growers),
        native_lines=types.SimpleNamespace(verdict=lambda rate, what="native": (list(line), "")),
        resources=types.SimpleNamespace(always_new_sizes=lambda: False),
    )


def told(sampled, line=()):
    """(rates of the findings, rates of the notes) where samples explain so many of 1,000 bytes a step."""
    findings = []
    notes = add_native_growth(RISE, None, engine_of(sampled, line), [], findings)
    return [f.bytes_per_step for f in findings], [n.bytes_per_step for n in notes]


def test_without_samples_all_of_it_is_one_finding():
    assert told(0) == ([1000.0], [])


@pytest.mark.parametrize("sampled", [600, 700])
def test_what_is_less_than_the_samples_explain_is_a_note(sampled):
    assert told(sampled) == ([sampled], [1000.0 - sampled])


def test_what_is_more_than_the_samples_explain_is_a_finding():
    assert told(300) == ([300, 700.0], [])


def test_what_has_a_line_of_its_own_is_a_finding():
    assert told(600, [("train.py", 7, "step")]) == ([600, 400.0], [])


def test_samples_that_explain_nearly_all_stand_for_all():
    assert told(960) == ([1000.0], [])


@pytest.mark.parametrize(
    ("sampled", "cause"),
    [(0, "unknown"), (400, "unknown"), (900, "native_growth"), (1050, "native_growth"), (2000, "unknown")],
)
def test_what_the_process_grows_by_is_of_the_lines_whose_samples_make_as_much(sampled, cause):
    """Where too few walks have shown how much of malloc's bytes is Python's."""
    rest = finding_of_bytes("unexplained_growth", "native", [], RISE, "private memory rose")
    findings = []
    add_rest(rest, RISE, engine_of(sampled), [], findings)
    assert [(f.cause, f.bytes_per_step) for f in findings] == [(cause, 1000.0)]


@pytest.mark.parametrize(("medium", "count"), [("cuda:0", 1), ("pinned", 1), ("cpu", 2), ("python", 2)])
def test_what_a_driver_notes_down_of_its_blocks_is_theirs(medium, count):
    """Of blocks that a type of Python's own keeps, malloc's bytes at the same line are CUDA's."""
    stack = [("train.py", 7, "step")]
    kept = finding_of_bytes("retained", medium, stack, RISE, "90 kept")
    findings = [dataclasses.replace(kept, type="list")]
    noted = finding_of_bytes("native_growth", "native", stack, RISE, "malloc's live bytes rose")
    add_native([noted], [], findings)
    assert len(findings) == count
    assert findings[0].bytes_per_step == (2000.0 if count == 1 else 1000.0)


def test_bytes_that_samples_explain_are_not_told_again():
    findings = []
    add_native_growth(RISE, None, engine_of(300), [], findings)
    assert [f.live_bytes for f in findings] == [30_000, 70_000]


def test_bytes_of_what_is_not_explained_are_without_what_is():
    steep = dataclasses.replace(RISE, slope=100_000.0, last=(105, 10_000_000.0))
    found = unexplained(steep, 45_000.0, 0.0, 0.0)
    assert (found.bytes_per_step, found.live_bytes) == (55_000.0, 5_500_000)
