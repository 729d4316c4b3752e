"""What doctor collects, and what it leaves behind."""

import pytest

pytest.importorskip("torch")

from native_support import linux_only, run_fresh

pytestmark = linux_only


def test_doctor_imports_nothing_unasked():
    run_fresh(
        """
import sys
from leakprobe import doctor
rows = doctor.examine(import_libraries=False)
assert "torch" not in sys.modules and "numpy" not in sys.modules
media = {r["name"]: r for r in rows if r["area"] == "medium"}
assert media["cpu"]["ok"] is None and media["cpu"]["detail"] == "torch is not imported"
""",
        alone=True,
    )


def test_doctor_tries_each_hook_and_removes_it():
    run_fresh(
        """
import json
from leakprobe import _core, doctor
rows = doctor.examine()
json.dumps(rows)
media = {r["name"]: r for r in rows if r["area"] == "medium"}
for name in ("numpy", "cpu", "shared"):
    assert media[name]["ok"] is True and "canary passed" in media[name]["detail"]
assert media["cuda"]["ok"] is None
assert not any(entry["active"] for entry in _core.native_status())
assert all(set(r) == {"area", "name", "value", "ok", "detail"} for r in rows)
""",
        alone=True,
    )


def test_doctor_describes_a_watch_that_is_on():
    run_fresh(
        """
import torch
from leakprobe import _core, doctor
_core.native_install(["cpu"])
media = {r["name"]: r for r in doctor.examine(import_libraries=False) if r["area"] == "medium"}
assert media["cpu"]["ok"] is True and media["numpy"]["detail"] == "not asked for"
assert any(entry["active"] for entry in _core.native_status())
"""
    )
