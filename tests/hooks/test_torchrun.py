"""Two ranks under torchrun with gloo: recordings, the merged report, live reports through the store."""

import json
import os
import subprocess
import sys

import pytest
from native_support import has_libuv

pytest.importorskip("torch.distributed.run", exc_type=ImportError)
dist = pytest.importorskip("torch.distributed")
pytestmark = pytest.mark.skipif(
    not (dist.is_available() and dist.is_gloo_available()), reason="torch without gloo"
)

TRAIN = """
import os, signal, sys
import torch, torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(200, 10))
optimizer = torch.optim.SGD(net.parameters(), 0.1)
history = []
for i in range(60):
    optimizer.zero_grad(); net(torch.randn(300, 200)).square().mean().backward(); optimizer.step()
    if rank == 1:
        history.append(net.module(torch.randn(300, 200)).square().mean())
        if "kill" in sys.argv and i == 50:
            os.kill(os.getpid(), signal.SIGKILL)
dist.destroy_process_group()
"""
LINE = next(i for i, line in enumerate(TRAIN.splitlines(), 1) if "history.append" in line)
LIVE = """
import json, torch, torch.distributed as dist, leakprobe
kept = []
with leakprobe.watch() as probe:
    before = [n.text for n in probe.report(ranks=True).notes]
    dist.init_process_group("gloo"); rank = dist.get_rank()
    for i in range(30):
        if rank == 1: kept.append(torch.zeros(1000))
        probe.step()
report = probe.report(ranks=True, timeout=60)
silent = [n.text for n in probe.report(ranks=True, timeout=0.2).notes] if rank == 0 else []
open(f"out-{rank}.json", "w").write(json.dumps([before, report.to_dict(), silent]))
dist.barrier(); dist.destroy_process_group()
"""


def torchrun(folder, text, *arguments, before=()):
    (folder / "train.py").write_text(text)
    options, environment = ["--nproc-per-node", "2"], {**os.environ, "OMP_NUM_THREADS": "1"}
    if not has_libuv():
        options += [
            "--rdzv-backend",
            "c10d",
            "--rdzv-endpoint",
            str(folder / "store"),
            "--rdzv-conf",
            "store_type=file",
            "--local-addr",
            "127.0.0.1",
        ]
        environment |= {"USE_LIBUV": "0", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    command = [sys.executable, "-m", "torch.distributed.run", *options, *before, "train.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=900, cwd=folder, env=environment)


def merged(folder) -> dict:
    done = subprocess.run(
        [sys.executable, "-m", "leakprobe", "report", "rec", "--json", "all.json"],
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=900,
    )
    assert done.returncode == 1, done.stderr
    return json.loads((folder / "all.json").read_text())


def check(report):
    finding = report["findings"][0]
    assert "in 1 of 2 recordings (rank 1)" in finding["evidence"] and finding["allocation"]["lineno"] == LINE
    assert "history" in json.dumps(finding["path"])
    assert any(
        n["kind"] == "ranks" and n["medium"] == "cpu" and "outlier: rank 1" in n["text"]
        for n in report["notes"]
    )


def test_a_leak_on_one_rank_is_told_by_the_merged_report(tmp_path):
    done = torchrun(tmp_path, TRAIN, before=("-m", "leakprobe", "run", "-o", "rec"))
    assert done.returncode == 0, done.stderr[-3000:]  # growth is no crash of a rank
    assert "rank 0 of 2: steady" in done.stderr and "rank 1 of 2: growing" in done.stderr
    check(merged(tmp_path))


def test_a_rank_that_is_killed_is_told_from_its_recording(tmp_path):
    done = torchrun(tmp_path, TRAIN, "kill", before=("-m", "leakprobe", "run", "-o", "rec"))
    assert done.returncode != 0
    report = merged(tmp_path)
    check(report)
    assert any(
        n["kind"] == "gap" and n["text"].startswith("rank 1: ") and "killed" in n["text"]
        for n in report["notes"]
    )


def test_live_reports_of_both_ranks(tmp_path):
    done = torchrun(tmp_path, LIVE)
    assert done.returncode == 0, done.stderr[-3000:]
    for rank in range(2):
        before, report, silent = json.loads((tmp_path / f"out-{rank}.json").read_text())
        assert sum("not initialised" in text for text in before) == 1
        assert report["verdict"] == "growing" and "(rank 1)" in report["findings"][0]["evidence"]
        assert rank == 1 or any("rank 1 did not answer within 0.2 s" in text for text in silent)
