"""A process of a pool that grows is reported, though nobody watches it; one that does not grow is not, nor
are a DataLoader's workers.
"""

import sys

import pytest
from fresh import run

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc tells their memory")

LOOP = """
import json, multiprocessing
import leakprobe

KEPT = []

def task(number):
    KEPT.append(bytearray(200_000))
    del KEPT[:-MOST]
    return number

def main():
    with multiprocessing.get_context("fork").Pool(PROCESSES) as pool:
        with leakprobe.watch(warmup=5) as probe:
            for i in probe.steps(range(200)):
                pool.map(task, range(PROCESSES), chunksize=1)
    report = probe.report().to_dict()
    found = [f for f in report["findings"] if f["medium"] == "worker"]
    print(json.dumps([report["verdict"], found]))

main()
"""


def looked(most, processes):
    return run(LOOP.replace("MOST", str(most)).replace("PROCESSES", str(processes)))


def test_a_process_that_grows_is_reported_with_its_name():
    verdict, (finding,) = looked(most=10_000, processes=1)
    assert verdict == "growing" and finding["kind"] == "unexplained_growth"
    assert finding["bytes_per_step"] == pytest.approx(200_000, rel=0.1)
    assert "ForkPoolWorker-1 (process " in finding["evidence"]


def test_processes_of_a_pool_are_one_finding():
    _, (finding,) = looked(most=10_000, processes=2)
    # which of them takes a task is up to them
    assert finding["bytes_per_step"] == pytest.approx(400_000, rel=0.1)


def test_a_process_that_keeps_the_last_is_none():
    assert looked(most=10, processes=1) == ["steady", []]


def test_workers_of_a_loader_are_not_among_them():
    pytest.importorskip("torch")
    loop = """
import json
import leakprobe, torch
from torch.utils.data import DataLoader, Dataset

class Data(Dataset):
    kept = []
    def __len__(self): return 400
    def __getitem__(self, at):
        self.kept.append(bytearray(100_000))
        return torch.zeros(4)

loader = DataLoader(Data(), batch_size=2, num_workers=1, multiprocessing_context="fork")
with leakprobe.watch(warmup=5) as probe:
    for batch in probe.steps(loader):
        pass
print(json.dumps([f["kind"] for f in probe.report().to_dict()["findings"]]))
"""
    assert "unexplained_growth" not in run(loop)
