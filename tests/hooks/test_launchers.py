"""Four ranks under each launcher, one of which leaks: each records, and the merged report names it.

Launchers other than torchrun are tried where they are installed.
"""

import importlib.util
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

#: The leak is in a local of a function that has returned when the watch ends, as it is in most programs.
TRAIN = """
import argparse, os
parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", type=int, default=int(os.environ["LOCAL_RANK"]))
local_rank = parser.parse_args().local_rank
import torch, torch.distributed as dist
dist.init_process_group("gloo")
def main():
    net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(200, 10))
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    history = []
    for i in range(60):
        optimizer.zero_grad(); net(torch.randn(30, 200)).square().mean().backward(); optimizer.step()
        if dist.get_rank() == 2:
            history.append(torch.randn(300, 200).square())
main()
open(f"local-{dist.get_rank()}", "w").write(str(local_rank))
dist.destroy_process_group()
"""
ACCELERATE = """
import torch
from accelerate import Accelerator
accelerator = Accelerator(cpu=True)
def main():
    net = torch.nn.Linear(200, 10)
    net, optimizer = accelerator.prepare(net, torch.optim.SGD(net.parameters(), 0.1))
    history = []
    for i in range(60):
        loss = net(torch.randn(30, 200)).square().mean()
        optimizer.zero_grad(); accelerator.backward(loss); optimizer.step()
        if accelerator.process_index == 2:
            history.append(torch.randn(300, 200).square())
main()
open(f"local-{accelerator.process_index}", "w").write(str(accelerator.local_process_index))
accelerator.end_training()
"""
RAY = """
import sys, ray
from ray.train import RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer
from leakprobe.integrations.ray import watched
def train(config):
    import ray.train, torch
    net = ray.train.torch.prepare_model(torch.nn.Linear(200, 10))
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    history = []
    for i in range(config["steps"]):
        optimizer.zero_grad(); net(torch.randn(30, 200)).square().mean().backward(); optimizer.step()
        if ray.train.get_context().get_world_rank() == 1:
            history.append(torch.randn(300, 200).square())
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
TorchTrainer(watched(train, record="rec"), train_loop_config={"steps": 60},
             scaling_config=ScalingConfig(num_workers=2),
             run_config=RunConfig(storage_path=sys.argv[1])).fit()
"""
WATCHED = ["leakprobe", "run", "-o", "rec", "train.py"]


def run(folder, text, command, **variables) -> str:
    """Standard error of ``command`` in ``folder``, with the text as train.py."""
    (folder / "train.py").write_text(text)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
    environment["PATH"] = os.path.dirname(sys.executable) + os.pathsep + environment.get("PATH", "")
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, cwd=folder, env=environment)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout + done.stderr


def merged(folder) -> dict:
    command = [sys.executable, "-m", "leakprobe", "report", "rec", "--json", "all.json"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=300)
    assert done.returncode == 1, done.stdout + done.stderr
    return json.loads((folder / "all.json").read_text())


def check(folder, text, ranks: int, leaking: int) -> None:
    assert sorted(p.name for p in (folder / "rec").glob("*.leak")) == [
        f"rank-{rank:05}.leak" for rank in range(ranks)
    ]
    report = merged(folder)
    (finding,) = report["findings"]
    line = next(i for i, text in enumerate(text.splitlines(), 1) if "history.append" in text)
    assert f"in 1 of {ranks} recordings (rank {leaking})" in finding["evidence"]
    assert finding["allocation"]["lineno"] == line and "history" in finding["holder"]["text"]
    assert finding["bytes_per_step"] == pytest.approx(300 * 200 * 4, rel=0.05)
    of_cpu = [n["text"] for n in report["notes"] if n["kind"] == "ranks" and n["medium"] == "cpu"]
    assert len(of_cpu) == 1 and f"outlier: rank {leaking} (" in of_cpu[0]


def local_ranks(folder) -> list[str]:
    return [(folder / f"local-{rank}").read_text() for rank in range(4)]


@pytest.mark.slow
def test_torchrun(tmp_path):
    if not has_libuv():
        pytest.skip("this torch has no libuv: tests/hooks/test_torchrun.py goes another way")
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "4", "-m", *WATCHED]
    said = run(tmp_path, TRAIN, command)
    assert "leakprobe: rank 2 of 4: growing: 1 finding" in said
    assert said.count("of 4: steady") == 3 and said.count("leakprobe: all ranks: leakprobe report") == 1
    check(tmp_path, TRAIN, 4, 2)
    assert local_ranks(tmp_path) == ["0", "1", "2", "3"]


def needs(name: str) -> None:
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"needs {name}")


def test_accelerate(tmp_path):
    """--multi_gpu is what makes it launch several processes on one machine, on processors too."""
    needs("accelerate")
    command = [sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "4"]
    command += ["--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no", "-m", *WATCHED]
    said = run(tmp_path, ACCELERATE, command)
    assert "leakprobe: rank 2 of 4: growing: 1 finding" in said
    check(tmp_path, ACCELERATE, 4, 2)
    assert local_ranks(tmp_path) == ["0", "1", "2", "3"]


def test_the_launcher_of_deepspeed(tmp_path):
    """It gives leakprobe the argument --local_rank=N, which the script must get."""
    needs("deepspeed")
    command = [sys.executable, "-m", "deepspeed.launcher.runner", "--num_accelerators", "4", "--module"]
    said = run(tmp_path, TRAIN, [*command, *WATCHED], DS_ACCELERATOR="cpu")
    assert "'leakprobe', '--local_rank=2', 'run'" in said, "what this test is about"
    assert "leakprobe: rank 2 of 4: growing: 1 finding" in said
    check(tmp_path, TRAIN, 4, 2)
    assert local_ranks(tmp_path) == ["0", "1", "2", "3"]


def test_two_workers_of_ray_train(tmp_path):
    needs("ray")
    run(tmp_path, RAY, [sys.executable, "train.py", str(tmp_path / "ray")], RAY_USAGE_STATS_ENABLED="0")
    check(tmp_path, RAY, 2, 1)
