"""Every leaking loop is found with owner, line and rate; every clean twin is silent."""

import json
import subprocess
import sys

import forked
import pytest
from cases import CASES, CLEAN, SETUP
from native_support import skip_without_torch

LOOP = """
import json, leakprobe
with leakprobe.watch() as probe:
    for i in range(60):
        {body}
        probe.step()
print(json.dumps(probe.report().to_dict()))
"""


def report_of(folder, before, body):
    skip_without_torch(before, body)
    script = folder / "loop.py"
    script.write_text(SETUP + before + LOOP.format(body=body))
    if "torch" in before + body:
        done = forked.run([script])
    else:
        done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    lines = script.read_text().splitlines()
    return json.loads(done.stdout.strip().splitlines()[-1]), lines


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_leak_is_found_and_explained(case, tmp_path):
    report, lines = report_of(tmp_path, case.before, case.leak)
    assert report["verdict"] == "growing", report["notes"]
    (finding,) = report["findings"]  # one leak is one finding
    assert finding["kind"] == case.kind
    held = json.dumps([finding["path"], finding["holder"], finding["cycle"]])
    assert case.owner in held
    assert finding["allocation"]["filename"].endswith("loop.py")
    allocating = lines[finding["allocation"]["lineno"] - 1].strip()
    assert allocating in f"{case.before}\n{case.leak}" and allocating, allocating
    if case.bytes_per_step is not None:
        assert 0.9 * case.bytes_per_step < finding["bytes_per_step"] < 1.1 * case.bytes_per_step


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_clean_twin_is_silent(case, tmp_path):
    report, _ = report_of(tmp_path, case.before, case.clean)
    assert report["verdict"] == "steady" and report["findings"] == []


@pytest.mark.parametrize(
    "name, before, body", CLEAN, ids=lambda v: v if isinstance(v, str) and len(v) < 30 else ""
)
def test_what_looks_like_growth_is_silent(name, before, body, tmp_path):
    report, _ = report_of(tmp_path, before, body)
    assert report["verdict"] == "steady", [f["evidence"] for f in report["findings"]]
