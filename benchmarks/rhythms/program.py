"""python -m benchmarks.rhythms.program: loops of lines of standard input, run for real under
leakprobe.watch().

A line is a JSON object {"kind", "steps", "seed", "payload", "place"}; the answer is one with the findings of
the report.
"""

import collections
import importlib
import json
import queue
import sys
import threading

import leakprobe
from benchmarks.rhythms.kinds import KINDS
from benchmarks.rhythms.loop import make_loop
from benchmarks.rhythms.payloads import LEAST_BYTES, OF_TORCH, PAYLOADS


class Program:
    """The items of a loop of one site, borne and dropped step by step."""

    def __init__(self, kind: str, steps: int, seed: int, payload: str):
        (site,) = make_loop(KINDS[kind], steps, seed).sites
        self._make = PAYLOADS[payload]
        self._kept: dict[int, object] = {}
        births: list[list[tuple[int, int]]] = [[] for _ in range(steps)]
        deaths: list[list[int]] = [[] for _ in range(steps)]
        for item, (birth, death, size) in enumerate(zip(site.birth, site.death, site.bytes)):
            births[birth].append((item, max(LEAST_BYTES, int(size))))
            if death < steps:
                deaths[int(death)].append(item)
        self._births, self._deaths = births, deaths

    def step(self, number: int) -> None:
        for item, size in self._births[number]:
            self._kept[item] = self._make(size)
        for item in self._deaths[number]:
            del self._kept[item]


def in_process(program: Program, steps: int, probe) -> None:
    for number in probe.steps(range(steps)):
        program.step(number)


def in_thread(program: Program, steps: int, probe) -> None:
    """The steps are marked here, and done in another thread."""
    orders: queue.Queue = queue.Queue()
    done: queue.Queue = queue.Queue()

    def work() -> None:
        for number in iter(orders.get, None):
            program.step(number)
            done.put(number)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for number in probe.steps(range(steps)):
            orders.put(number)
            done.get()
    finally:
        orders.put(None)
        thread.join()


def in_worker(program: Program, steps: int, probe) -> None:
    """The items are those of a dataset, in the one worker of its loader."""
    import torch.utils.data

    class Steps(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return steps

        def __getitem__(self, number: int) -> int:
            program.step(number)
            return number

    for _ in probe.steps(torch.utils.data.DataLoader(Steps(), batch_size=None, num_workers=1)):
        pass


def in_training(program: Program, steps: int, probe) -> None:
    """Within a training loop: what its model, its optimizer and a cache of results take is no growth."""
    import torch

    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
    optimizer = torch.optim.Adam(model.parameters())
    recent = collections.deque(maxlen=20)
    for number in probe.steps(range(steps)):
        batch = torch.randn(16 + number % 5, 32)
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        recent.append({"step": number, "loss": loss.item()})
        program.step(number)


def in_loader(program: Program, steps: int, probe) -> None:
    """In the process that iterates over a loader, whose workers have batches in flight."""
    import torch.utils.data

    rows = torch.utils.data.TensorDataset(torch.zeros(4 * steps, 300))
    for number, _ in enumerate(probe.steps(torch.utils.data.DataLoader(rows, batch_size=4, num_workers=2))):
        program.step(number)


PLACES = {
    "process": in_process,
    "thread": in_thread,
    "worker": in_worker,
    "training": in_training,
    "loader": in_loader,
}
#: Those of them that need torch.
WITH_TORCH = frozenset({"worker", "training", "loader"})


def answer(kind: str, steps: int, seed: int, payload: str, place: str) -> dict:
    if payload in OF_TORCH or place in WITH_TORCH:
        importlib.import_module("torch.utils.data")  # before the watch, as a program's imports are
    program = Program(kind, steps, seed, payload)
    with leakprobe.watch() as probe:
        PLACES[place](program, steps, probe)
    report = probe.report()
    findings = [[f.kind, f.medium, f.bytes_per_step] for f in report.findings]
    return {"verdict": report.verdict, "findings": findings}


def main() -> None:
    for line in sys.stdin:
        print(json.dumps(answer(**json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
