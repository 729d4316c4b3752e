"""Roles, owners and the peak of real tensors; the pickle in torch's own viewer."""

import pickle
import stat

import pytest

torch = pytest.importorskip("torch")

import forked
from native_support import linux_only, run_fresh

pytestmark = linux_only

TRAIN = """
import sys
import torch, torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset
import leakprobe
history = []
def train(probe, steps=6):
    global model, optimizer
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 8))
    optimizer = torch.optim.Adam(model.parameters())
    data = TensorDataset(torch.randn(16 * steps, 64), torch.zeros(16 * steps))
    for x, y in probe.steps(DataLoader(data, batch_size=16)):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        if keeps: history.append(loss)
        loss.backward(retain_graph=keeps)
        optimizer.step()
weights = 4 * (64 * 32 + 32 + 32 * 8 + 8)
"""


def train_and_map(keeps: bool, body: str, *arguments) -> None:
    """Run TRAIN, then ``body``, of which the lines that are indented run inside the watch, with ``found``,
    the map at its end.
    """
    head = f"""
keeps = {keeps}
with leakprobe.watch(warmup=1) as probe:
    train(probe)
    found = leakprobe.memory_map()
"""
    run_fresh(TRAIN + head + body.lstrip("\n"), *arguments, trains=True)


def test_roles_are_found_without_help():
    train_and_map(
        True,
        """
roles = found.by_role()["cpu"]
assert roles["parameter"] == roles["gradient"] == weights, roles
assert roles["optimizer state"] == 2 * weights + 4 * 4, roles        # two moments, and a step count each
kept = [r for r in found.rows if r.owner and "history" in r.owner]
assert {r.role for r in kept} <= {"activation", "batch", "gradient"} and len(kept) >= 2 * 6, kept
batches = [r for r in found.rows if r.role == "batch" and r.size == 16 * 64 * 4]
assert len(batches) == 6, [(r.size, r.step) for r in batches]          # saved by the kept graphs
assert not torch.cuda.is_initialized()
""",
    )


def test_the_peak_of_a_clean_loop_has_the_activations_that_are_gone_at_the_mark():
    train_and_map(
        False,
        """
    peak, rows = found.peak("cpu")
    highest = leakprobe._core.ledger_totals()["cpu"]["peak_bytes"]
live = sum(r.size for r in found.rows if r.medium == "cpu")
assert live < peak <= highest and sum(r[3] for r in rows) == peak, (live, peak, highest)
assert found.events_lost == 0 and peak == highest
assert sum(size for role, _, _, size in rows if role == "parameter") == weights, rows
""",
    )


def test_roles_by_step_are_those_of_the_highest_point_of_each_step():
    train_and_map(
        False,
        """
    rows, (peak, at_peak) = dict(found.by_step("cpu")), found.peak("cpu")
assert max(sum(roles.values()) for roles in rows.values()) == peak, (rows, peak)
assert set(range(1, 6)) <= set(rows), rows
outputs = 4 * 16 * (32 + 8)                   # what the two layers give, alive when the backward pass begins
for step in range(2, 6):
    assert rows[step]["activation"] >= outputs and rows[step]["parameter"] == weights, rows[step]
    assert rows[step]["optimizer state"] == 2 * weights + 16 and rows[step]["gradient"] == weights, rows[step]
highest = max(reversed(rows.values()), key=lambda roles: sum(roles.values()))   # peak() tells the last of them
for role in highest:
    assert highest[role] == sum(size for name, _, _, size in at_peak if name == role), (highest, at_peak)
""",
    )


def test_steps_of_made_events():
    from leakprobe.memory_map import BlockRow, Event, MemoryMap

    rows = [BlockRow("cpu", 16, 100, 0, (), "parameter", None), BlockRow("cpu", 32, 5, 2, (), "batch", None)]
    events = [
        Event("cpu", a, size, step, 0)
        for a, size, step in [(48, 70, 1), (48, -70, 1), (32, 9, 2), (32, -9, 2), (32, 5, 2), (8, -30, 3)]
    ]
    found = MemoryMap(rows, events, 3).by_step("cpu")
    assert found == [
        (1, {"parameter": 100, "temporary": 100}),
        (2, {"parameter": 100, "temporary": 39}),
        (3, {"parameter": 100, "batch": 5, "temporary": 30}),
    ]
    assert MemoryMap(rows, events, 3, events_lost=1).by_step("cpu") == found[1:]
    assert MemoryMap(rows, events, 3).by_step("cuda:0") == []


def test_events_are_played_back_to_the_highest_point():
    from leakprobe.evidence import peaks
    from leakprobe.memory_map import BlockRow, Event, MemoryMap

    def event(address, size):
        return Event("cpu", address, size, 1, 0)

    row = BlockRow("cpu", 16, 100, 0, (), "parameter", None)
    reused = BlockRow("cpu", 32, 5, 1, (), "unknown", None)
    events = [event(32, 70), event(48, 300), event(48, -300), event(32, -70), event(32, 5)]
    made = MemoryMap([row, reused], events, 1)
    most, rows = peaks.at_peak(made, "cpu")
    assert most == 470 and {(role, size) for role, _, _, size in rows} == {
        ("parameter", 100),
        ("temporary", 370),
    }
    assert peaks.at_peak(MemoryMap([row], [], 1), "cpu") == (100, [("parameter", "unknown", 1, 100)])


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    path = tmp_path_factory.mktemp("map") / "map.pickle"
    train_and_map(True, "    found.to_memory_viz(sys.argv[1])", path)
    return path


def test_the_pickle_is_plain_and_private(exported):
    assert stat.S_IMODE(exported.stat().st_mode) == 0o600
    data = exported.read_bytes()
    assert data[:2] == b"\x80\x04"  # the page's reader knows no newer protocol
    made = pickle.loads(data)
    names = made["leakprobe"]["devices"]
    assert list(names.values())[:1] == ["cpu"] and len(made["device_traces"]) == len(names)
    for segment in made["segments"]:
        at = segment["address"]
        for block in segment["blocks"]:
            assert block["address"] == at
            at += block["size"]
        assert at == segment["address"] + segment["total_size"]
    owners = [f["name"] for s in made["segments"] for b in s["blocks"] for f in b["frames"][:1]]
    assert any("history" in name for name in owners)
    categories = {e.get("category") for e in made["device_traces"][0]}
    assert {"parameter", "activation", "optimizer state", "unknown"} <= categories


def test_the_trace_replays_to_what_is_alive(exported):
    made = pickle.loads(exported.read_bytes())
    total = 0
    for event in made["device_traces"][0]:
        total += {"alloc": event["size"], "free_completed": -event["size"]}.get(event["action"], 0)
    cpu = sum(s["allocated_size"] for s in made["segments"] if s["device"] == 0)
    assert total == cpu


@pytest.mark.parametrize("action", ["stats", "trace_plot", "segment_plot"])
def test_torch_s_own_viewer_opens_it(exported, tmp_path, action):
    output = [] if action == "stats" else ["-o", str(tmp_path / "out.html")]
    done = forked.run(["-m", "torch.cuda._memory_viz", action, exported, *output], timeout=120)
    assert done.returncode == 0, done.stderr
    if action == "stats":
        assert "page is completely free" in done.stdout
    else:
        assert (tmp_path / "out.html").stat().st_size > 10_000
