"""What a program does in its loop beside steps: reports, many epochs, an optimizer that steps first."""

import pytest
from fresh import run
from native_support import needs_torch

import leakprobe
from leakprobe.model.bounds import MOST_PHASES

NATIVE = """
import ctypes, json
import leakprobe
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
with leakprobe.watch() as probe:
    for i in range(400):
        if i >= 80:
            libc.memset(libc.malloc(65536), 1, 65536)
        if i == 60:
            block = libc.malloc(200_000_000)
            libc.memset(block, 1, 200_000_000)
            middle = probe.report().verdict
            libc.free(ctypes.c_void_p(block))
        probe.step()
report = probe.report()
print(json.dumps([middle, [(f.cause, f.bytes_per_step) for f in report.findings]]))
"""


def test_a_report_in_the_middle_is_not_the_end_of_the_loop():
    middle, findings = run(NATIVE)
    assert middle == "steady"
    ((cause, rate),) = findings
    assert cause == "native_growth" and rate == pytest.approx(65536, rel=0.1)


def test_epochs_too_short_to_be_judged_are_forgotten_once_they_are_many():
    with leakprobe.watch() as probe:
        for _ in range(10_000):
            probe.epoch()
            probe.step()
        epochs = probe._readings.engine._epochs
    assert len(epochs) <= MOST_PHASES + 10_000 / 20 and epochs[-1] == 9_999


FUNCTION = """
import json
import leakprobe
def train(probe):
    history = []
    for i in range(600):
        history.append({"loss": [float(i)] * 40})
        probe.step()
with leakprobe.watch() as probe:
    train(probe)
(finding,) = probe.report().findings
print(json.dumps([finding.pattern, [node["text"] + " " + node["why"] for node in finding.path]]))
"""


def test_steps_that_are_known_together_are_no_rhythm():
    pattern, path = run(FUNCTION)
    assert pattern == "per_step" and "each step leaves one more" in " ".join(path)


RHYTHM = """
import json
import leakprobe
kept, number = [], 0
with leakprobe.watch() as probe:
    for epoch in range({epochs}):
        for _ in probe.steps(range(400 // {epochs})):
            number += 1
            if number % {every} == 0:
                kept.append(bytearray(16000))
(finding,) = probe.report().findings
print(json.dumps([finding.pattern, [node["text"] + " " + node["why"] for node in finding.path]]))
"""


@pytest.mark.parametrize(
    ("epochs", "every", "expected"),
    [(1, 2, "per_step"), (4, 5, "per_step"), (1, 20, "per_step"), (20, 20, "per_epoch")],
)
def test_once_an_epoch_is_told_by_the_epochs_of_the_loop(epochs, every, expected):
    pattern, path = run(RHYTHM.format(epochs=epochs, every=every))
    assert pattern == expected and f"every {every} steps leave one more" in " ".join(path)


PHASES = """
import json, torch
import leakprobe
from torch.utils.data import DataLoader, TensorDataset
data = TensorDataset(torch.randn(48, 16), torch.randn(48, 1))
train, test = DataLoader(data, batch_size=8), DataLoader(data, batch_size=8)
model = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
history = []
with leakprobe.watch() as probe:
    for epoch in range(60):
        for x, y in train:
            optimizer.zero_grad()
            (model(x) - y).square().mean().backward()
            optimizer.step()
        with torch.no_grad():
            for x, y in test:
                model(x)
        history.append(torch.zeros(25_000))
        probe.step()
print(json.dumps([[f.bytes_per_step, f.evidence] for f in probe.report().findings]))
"""


@needs_torch
def test_the_phases_of_steps_that_torch_marked_end_with_them():
    ((rate, evidence),) = run(PHASES)
    assert rate == pytest.approx(100_000, rel=0.02) and "evaluation" not in evidence


@needs_torch
def test_a_parameter_without_a_buffer_costs_no_mark():
    import torch

    net = torch.nn.Module()
    net.body, net.head = torch.nn.Linear(16, 16), torch.nn.LazyLinear(4)
    optimizer, kept = torch.optim.SGD(net.body.parameters(), lr=0.01), []
    with leakprobe.watch() as probe:
        for _ in range(60):
            optimizer.zero_grad()
            net.body(torch.ones(8, 16)).sum().backward()
            optimizer.step()
            kept.append(torch.zeros(1000))
            probe.step()
    report = probe.report()
    assert report.verdict == "growing" and not [n for n in report.notes if "failed" in n.text]


@needs_torch
def test_a_native_leak_beside_tensors_that_a_local_keeps():
    code = """
    import ctypes, json, torch
    import leakprobe
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
    lived = [[i] for i in range(600_000)]
    def train(probe):
        kept = []
        for _ in range(200):
            kept.append(torch.zeros(1000))
            libc.memset(libc.malloc(65536), 1, 65536)
            probe.step()
    with leakprobe.watch() as probe:
        train(probe)
    print(json.dumps(sorted(f.cause for f in probe.report().findings)))
    """
    assert run(code) == ["growing_container", "native_growth"]


@needs_torch
@pytest.mark.parametrize(
    "body, cause, rate",
    [
        ('rows["x"] = torch.cat([rows["x"], torch.ones(10, 100)])', "growing_buffer", 4000),
        ('for key in "abc": log[key].append(torch.zeros(1000))', "growing_container", 13_000),
    ],
)
def test_keys_of_a_dict_with_a_factory_are_keys(body, cause, rate, tmp_path):
    program = tmp_path / "program.py"  # what is rewritten in each step is read from the source
    program.write_text(
        f"""
import collections, torch
import leakprobe
rows = collections.defaultdict(lambda: torch.zeros(0, 100))
log = collections.defaultdict(list)
with leakprobe.watch() as probe:
    for step in range(120):
        {body}
        probe.step()
found = [[f.cause, f.bytes_per_step] for f in probe.report().findings]
"""
    )
    code = "import json, runpy; print(json.dumps(runpy.run_path(PATH, run_name='__main__')['found']))"
    ((found, found_rate),) = run(code.replace("PATH", repr(str(program))))
    assert found == cause and found_rate == pytest.approx(rate, rel=0.1)
