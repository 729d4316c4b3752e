"""Bytes by role at the highest point of a step: a small model whose sizes are known, with nothing said by the
program.
"""

import json
import textwrap
from types import SimpleNamespace

import forked
import pytest
from clocked import FREE

pytest.importorskip("torch", reason="needs torch")

#: 256 x 256 + 256 floats.
LAYER = 4 * (256 * 256 + 256)
BATCH, FEATURES, DEPTH = 512, 256, 4
ACTIVATION = 4 * BATCH * FEATURES

PROGRAM = "import json, sys, torch, leakprobe" + FREE
PROGRAM += textwrap.dedent(
    """
    from leakprobe.model.roles import roles_over_steps
    torch.set_num_threads(1)
    BEFORE, OPTIMIZER, CODE = json.loads(sys.argv[1])
    def make():
        layers = [torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.Sigmoid()) for _ in range(4)]
        model = torch.nn.Sequential(*layers)
        return model, getattr(torch.optim, OPTIMIZER)([p for p in model.parameters()], lr=0.1)
    if BEFORE: model, optimizer = make()
    data = torch.utils.data.TensorDataset(torch.randn(512 * 12, 256))
    loader = torch.utils.data.DataLoader(data, batch_size=512)
    frozen = None
    with leakprobe.watch() as probe:
        if not BEFORE: model, optimizer = make()
        exec(CODE)
        for epoch in range(2):
            for (x,) in probe.steps(loader):
                optimizer.zero_grad()
                loss = model(x).square().mean()
                loss.backward()
                optimizer.step()
                del loss
    report = probe.report()
    print(json.dumps(roles_over_steps(report.memory).get("cpu", [])))
    print(json.dumps([row["media"]["cpu"]["peak_bytes"] for row in report.timeline]))
    print(json.dumps(report.to_dict()["peaks"]))
    """
)


def readings(before: bool, optimizer: str, code: str = ""):
    """([(step, {role: bytes})], peak bytes of each mark)."""
    return run(before, optimizer, code)[:2]


def run(before: bool, optimizer: str, code: str = ""):
    """What the program prints: the readings, and the highest points by line."""
    command = ["-c", PROGRAM, json.dumps([before, optimizer, code])]
    done = forked.run(command, timeout=300, trains=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("before", [False, True], ids=["made in the watch", "made before it"])
def test_each_role_has_its_bytes(before):
    roles, peaks = readings(before, "SGD")
    assert len(roles) >= 2 and [step for step, _ in roles] == sorted({step for step, _ in roles})
    for step, found in roles[1:]:
        assert found["parameter"] == DEPTH * LAYER, step
        assert found["optimizer state"] == 0
        # The highest point lies in the backward pass, which lets go of what a layer saved once it is done.
        assert (DEPTH - 1) * ACTIVATION <= found["activation"] <= (2 * DEPTH + 4) * ACTIVATION
        assert found["gradient"] <= DEPTH * LAYER
        assert found["batch"] == ACTIVATION, "a batch has as many numbers as what a layer makes"
        older = DEPTH * LAYER if before else 0  # the ledger does not know what is older than the watch
        assert abs(sum(found.values()) - older - peaks[step - 1]) <= ACTIVATION, "it is the peak of that step"


@pytest.mark.parametrize("before", [False, True], ids=["made in the watch", "made before it"])
def test_the_highest_point_by_line(before):
    roles, _, (peak,) = run(before, "Adam")
    step, most = max(roles, key=lambda r: sum(r[1].values()))
    assert (peak["medium"], peak["step"], peak["bytes"]) == ("cpu", step, sum(most.values()))
    by_role = {}
    for part in peak["parts"]:
        by_role.setdefault(part["role"], []).append(part)
    assert {role: sum(p["bytes"] for p in parts) for role, parts in by_role.items()} == {
        role: size for role, size in most.items() if size
    }
    lines = {role: source_of(parts[0]) for role, parts in by_role.items() if role != "other"}
    assert lines == {
        "parameter": None if before else "layers = [torc",
        "optimizer state": "optimizer.step",
        "activation": "loss = model(x",
        "batch": "for (x,) in pr",
        **({"gradient": "loss.backward("} if "gradient" in lines else {}),
    }
    assert by_role["optimizer state"][0]["count"] == 3 * 2 * DEPTH


def source_of(part):
    """The beginning of the line of a part; None where none is known."""
    line = part["allocation"] and PROGRAM.splitlines()[part["allocation"]["lineno"] - 1]
    return line and line.strip()[:14].strip()


def test_optimizer_state_and_frozen_parameters_are_found():
    roles, _ = readings(
        False, "Adam", "global frozen; frozen = torch.nn.Linear(256, 256).requires_grad_(False)"
    )
    found = roles[-1][1]
    assert found["parameter"] == (DEPTH + 1) * LAYER
    # Two moments for each parameter, and a count of steps for each of eight tensors.
    assert 2 * DEPTH * LAYER <= found["optimizer state"] <= 2 * DEPTH * LAYER + 8 * 64


def test_peaks_are_since_the_mark_before():
    code = "a = torch.zeros(4_000_000); del a"  # 16 MB before the first step
    _, peaks = readings(False, "SGD", code)
    assert peaks[0] >= 16_000_000 > max(peaks[1:]) > 0


def test_without_an_optimizer_there_is_no_reading():
    code = (
        "import torch, leakprobe\nfrom leakprobe.model.roles import roles_over_steps\n"
        "with leakprobe.watch() as probe:\n"
        "    for i in probe.steps(range(30)): torch.zeros(1000)\n"
        "print(roles_over_steps(probe.report().memory))"
    )
    done = forked.run(["-c", code], timeout=300)
    assert done.stdout.strip() == "{}", done.stderr


def test_the_hook_goes_with_the_watch():
    """One reads roles, one marks the steps that nobody marks."""
    code = (
        "import torch, leakprobe\nfrom torch.optim import optimizer\n"
        "from leakprobe.torch import optimizer_steps\n"
        "with leakprobe.watch() as probe: inside = len(optimizer_steps._listeners)\n"
        "print(inside, len(optimizer_steps._listeners), len(optimizer._global_optimizer_post_hooks))\n"
        "with leakprobe.watch(media={'python'}): print(len(optimizer_steps._listeners))"
    )
    done = forked.run(["-c", code], timeout=300)
    assert done.stdout.split() == ["2", "0", "1", "1"], done.stderr


def test_a_block_that_had_the_gradients_address_before_is_none():
    from leakprobe.torch.highest import events_of_last

    sizes = (400, -400, 90, -90, 100, -100)
    events = [SimpleNamespace(address=7, bytes=size) for size in sizes]
    assert events_of_last(events, {7: 100}) == {4, 5}
    assert events_of_last(events[:5], {7: 100}) == {4}, "it lives on"
    assert events_of_last(events[1:2], {7: 100}) == {0}, "it was born before"
    assert events_of_last(events, {8: 100}) == set()


def test_searches_for_modules_keep_to_their_share(monkeypatch):
    """A new optimizer in each of 300 steps of 10 ms; a search takes 10 ms, by a clock that only searches and
    steps move.
    """
    import torch

    from leakprobe.model import budget
    from leakprobe.torch import role_readings

    now, searches = [0.0], []

    def search():
        searches.append(now[0])
        now[0] += 0.01
        return []

    clock = SimpleNamespace(monotonic=lambda: now[0], thread_time=lambda: now[0])
    monkeypatch.setattr(budget, "time", clock)
    monkeypatch.setattr(role_readings, "modules_with_tensors", search)
    roles = role_readings.RoleReadings({"cpu"})
    now[0] = 1.0
    for _ in range(300):
        optimizer = torch.optim.SGD([torch.zeros(1)], lr=0.1)
        roles._optimizer_stepped(optimizer, (), {})
        roles._holdings = None
        roles._asked.clear()
        now[0] += 0.01
    assert searches[0] == 1.0 and 3 <= len(searches) <= 5
    assert len(roles._optimizers) <= 2


@pytest.mark.parametrize("error, is_read", [("raise RuntimeError('none')", True), ("return 1 / 0", False)])
def test_a_tensor_that_cannot_be_read_ends_no_reading_and_other_errors_are_said(error, is_read):
    from leakprobe.torch.role_readings import RoleReadings

    torch = pytest.importorskip("torch")

    class Odd(torch.Tensor):
        @property
        def nbytes(self):
            exec(error.replace("return ", ""))

    parameter = torch.nn.Parameter(torch.zeros(9))
    optimizer = torch.optim.SGD([parameter], lr=0.1)
    optimizer.param_groups[0]["params"].append(torch.zeros(9).as_subclass(Odd))
    readings = RoleReadings(["cpu"])
    readings._optimizer_stepped(optimizer, (), {})
    assert (readings.why_not is None) is is_read
    assert [note.kind for note in readings.notes] == ["gap"] * (not is_read)
    assert all("no longer read: ZeroDivisionError" in note.text for note in readings.notes)
