"""Each rule of causes.py on a loop of its own: the cause is told, and the fix names a line of the loop."""

import collections
import sys

import pytest
from mechanisms import HAS_TORCH, KNOWN_BOUNDS, MECHANISMS, TWINS, run_mechanisms
from shapes import SHAPES

from leakprobe.model.causes import CAUSES

#: Told by rules elsewhere, or by none: what workers copy is no finding of a loop, and what is unknown has no
#: rule.
TOLD_ELSEWHERE = {"copy_on_access", "copied_by_collection", "unknown"}
#: Of these MECHANISMS have no loop, and SHAPES two.
OUTSIDE = {"lost_reference", "held_outside_python"}
LEAKS = [*((m[0], m[3]) for m in MECHANISMS), *((s.name, s.cause) for s in SHAPES)]
SILENT = [*(twin[0] for twin in TWINS), *(f"{s.name}_clean" for s in SHAPES)]
#: What 3.10 tells otherwise: its Pickler shows the collector no memo, so that what that keeps is "held
#: outside"; the deque that a thread was given is found by the variable of the function that has it.
NOT_ON_310 = {"pickler_of_a_run", "given_to_a_thread"}


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    return run_mechanisms(tmp_path_factory.mktemp("mechanisms"))


@pytest.mark.parametrize("name, cause", LEAKS, ids=[name for name, _ in LEAKS])
def test_cause_is_told_with_a_fix(name, cause, reports):
    if name not in reports and not HAS_TORCH:
        pytest.skip("needs torch")
    if sys.version_info < (3, 11) and name in NOT_ON_310:
        pytest.skip("3.10 shows less of it")
    findings = reports[name]["findings"]
    assert len(findings) == 1, [(f["cause"], f["path"]) for f in findings] or reports[name]["notes"]
    assert findings[0]["cause"] == cause, (findings[0]["path"], findings[0]["cycle"], findings[0]["holder"])
    assert findings[0]["fix"]
    if findings[0]["allocation"] and cause not in ("library_registry", "never_ended"):
        assert f"mechanism_{name}.py:" in findings[0]["fix"]


def test_every_cause_has_two_loops_of_unlike_shapes():
    known = set(CAUSES) - TOLD_ELSEWHERE
    assert {m[3] for m in MECHANISMS} == known - OUTSIDE
    counts = collections.Counter(s.cause for s in SHAPES)
    assert set(counts) == known
    assert all(counts[cause] > 1 for cause in OUTSIDE)


@pytest.mark.parametrize(
    "name, bound", [(b[0], b[3]) for b in KNOWN_BOUNDS], ids=[b[0] for b in KNOWN_BOUNDS]
)
def test_known_bound_is_a_note(name, bound, reports):
    if name not in reports and not HAS_TORCH:
        pytest.skip("needs torch")
    report = reports[name]
    assert report["findings"] == [] and report["verdict"] == "steady"
    texts = [n["text"] for n in report["notes"] if n["kind"] == "bounded"]
    assert bound is None or any(text.startswith("filling, ") and bound in text for text in texts), report[
        "notes"
    ]


@pytest.mark.parametrize("name", SILENT)
def test_clean_twin_is_silent(name, reports):
    if name not in reports and not HAS_TORCH:
        pytest.skip("needs torch")
    assert reports[name]["findings"] == [] and reports[name]["verdict"] == "steady"
