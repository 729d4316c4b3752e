"""Memory of devices that runs out, and what is read of them, on the fake runtime (fake_gpu.py)."""

import json
import os
import subprocess
import sys

import pytest
from native_support import run_fresh

pytestmark = [
    pytest.mark.fake_gpu,
    pytest.mark.skipif(not os.environ.get("FAKE_CUDA"), reason="not run under tests/gpu/fake_gpu.py"),
]

PRELUDE = """
import torch, leakprobe
def block(size, device="cuda:0"):
    return torch.empty(size, dtype=torch.uint8, device=device)
def told(probe):
    return [n.text for n in probe.report().notes if n.kind == "memory_pressure"]
"""


def test_out_of_memory_is_told_in_any_step_of_its_own_watch():
    run_fresh(
        PRELUDE
        + """
for at in (0, 1, 4):
    kept = []
    try:
        with leakprobe.watch(warmup=2) as probe:
            for i in range(6):
                kept.append(block(1 << 28))
                if i == at:
                    block(1 << 50)
                probe.step()
    except torch.OutOfMemoryError:
        pass
    texts = told(probe)
    assert f"step {at}: out of memory on cuda:0" in texts[0] and "kept (list" in texts[1], texts
    with leakprobe.watch(warmup=0, media={"cpu", "python"}) as probe:
        probe.step()
    assert not told(probe), "that was in another watch"
with leakprobe.watch(warmup=1) as probe:
    for i in range(4):
        probe.step()
    try:
        block(1 << 50)
    except torch.OutOfMemoryError:
        pass
assert "step 4: out of memory on cuda:0" in told(probe)[0]
"""
    )


@pytest.mark.parametrize(
    "at, first, second",
    [
        (0, "out of memory on a device, as torch's exception says", "gc.collect()"),
        (3, "out of memory on cuda:0", "kept Tensor"),
    ],
)
def test_out_of_memory_that_ends_a_program_is_told_with_what_its_frames_hold(at, first, second, tmp_path):
    path, page = tmp_path / "train.py", tmp_path / "report.json"
    path.write_text(
        "import torch\n"
        "w = torch.zeros(8, device='cuda', requires_grad=True)\n"
        "optimizer = torch.optim.SGD([w], lr=0.1)\n"
        "def train_step(i):\n"
        "    kept = torch.empty(1 << 28, dtype=torch.uint8, device='cuda')\n"
        f"    if i == {at}: torch.empty(1 << 50, dtype=torch.uint8, device='cuda')\n"
        "    (w * 1).sum().backward()\n"
        "    optimizer.step()\n"
        "for i in range(6): train_step(i)\n"
    )
    command = [sys.executable, "-m", "leakprobe", "run", "--json", str(page), str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1 and "torch.OutOfMemoryError" in done.stderr, done.stderr
    notes = [n["text"] for n in json.loads(page.read_text())["notes"] if n["kind"] == "memory_pressure"]
    assert notes[0] == f"step {at}: {first}" or notes[0].startswith(f"step {at}: {first}: "), notes
    assert second in notes[1], notes


def test_a_device_whose_blocks_are_older_than_the_watch_counts_too():
    run_fresh(
        PRELUDE
        + """
model = block(15 << 30, "cuda:1")
block(1)
with leakprobe.watch(warmup=1, memory_limit="50 %") as probe:
    for i in range(6):
        made = block(1000)
        probe.step()
wanted = "15.0 GiB of cuda:1 in use, over the limit of 8.0 GiB"
assert any(wanted in text for text in told(probe)), told(probe)
assert any("cuda:1 used" in row for row in probe.report().memory)
"""
    )


def test_a_forked_child_s_own_watch_says_that_cuda_can_t_be_used():
    run_fresh(
        PRELUDE
        + """
import os
block(1)
with leakprobe.watch(warmup=1) as probe:
    for i in range(3):
        made = block(1000)
        probe.step()
    pid = os.fork()
    if pid == 0:
        fine = False
        try:
            with leakprobe.watch(warmup=1) as own:
                for i in range(4):
                    own.step()
            rows = [row for name, row in own.report().media.items() if name.startswith(("cuda", "pinned"))]
            fine = len(rows) > 1 and not any(row["active"] for row in rows)
            fine = fine and all("was forked" in row["why_not"] for row in rows)
        finally:
            os._exit(0 if fine else 1)
    assert os.waitpid(pid, 0)[1] == 0
    made = probe.step()
assert probe.report().media["pinned"]["active"]
"""
    )
