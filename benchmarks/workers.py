"""An epoch of training with DataLoader workers: under watch(), under watch(workers=False), and without, in turns.

Each round has one epoch of each kind in random order, in one process; new workers are forked for every epoch.  The
ratio of a round is that of two of its times: on the clock, and of processor time of the process with its workers.  Told
is the median ratio with its 95 % interval (bootstrap over the rounds).  A watch may take some seconds for its looks
however short the loop is: an epoch of a few seconds shows that rather than the running cost.
"""

import os
import random
import resource
import statistics
import time

from benchmarks.pairs import machine


def add_arguments(parser) -> None:
    parser.add_argument("--pairs", type=int, default=16)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--items", type=int, default=6000)
    parser.add_argument("--texts", type=int, default=0, help="strings in a list that the dataset reads: its pages are copied")


def run(args) -> dict:
    import torch

    torch.set_num_threads(1)
    loader, model = make_loader(args), make_model()
    rng = random.Random(0)
    for kind in ("watch", "parent", "plain"):
        epoch(loader, model, kind)
    pairs = [("watch()", "watch", "plain"), ("workers followed", "watch", "parent")]
    ratios = {f"{name}, {clock}": [] for name, *_ in pairs for clock in ("clock", "processor")}
    for _ in range(args.pairs):
        order = ["watch", "parent", "plain"]
        rng.shuffle(order)
        times = {kind: epoch(loader, model, kind) for kind in order}
        for name, kind, base in pairs:
            for i, clock in enumerate(("clock", "processor")):
                ratios[f"{name}, {clock}"].append(times[kind][i] / times[base][i])
    rows = {name: summary(values) for name, values in ratios.items()}
    return {"machine": machine() | {"torch": torch.__version__, "cores": os.cpu_count()}, "rows": rows, "geometric_mean": {}, "pairs": ratios}


def summary(values) -> dict:
    rng = random.Random(1)
    medians = sorted(statistics.median(rng.choices(values, k=len(values))) for _ in range(4000))
    return {"ratio": statistics.median(values), "low": medians[100], "high": medians[-100]}


def make_loader(args):
    import numpy as np
    from torch.utils.data import DataLoader, Dataset

    class Images(Dataset):
        """Images that are flipped, scaled and cropped for each item, as decoders and augmentations do."""

        def __init__(self):
            self.images = np.random.default_rng(0).integers(0, 255, (512, 40, 40, 3), dtype=np.uint8)
            self.texts = ["%0100d" % k for k in range(args.texts)]

        def __len__(self):
            return args.items

        def __getitem__(self, k):
            image = self.images[k % 512, k % 8 : 32 + k % 8, 4:36, :: 1 if k % 2 else -1].astype(np.float32)
            image = (image / 255 - image.mean()) / (image.std() + 1e-6)
            record = {"id": k, "tags": [str(k + i) for i in range(20)], "text": len(self.texts[k]) if self.texts else 0}
            return np.ascontiguousarray(image.transpose(2, 0, 1)), len(record["tags"]) % 10

    return DataLoader(Images(), batch_size=32, shuffle=True, num_workers=args.workers, multiprocessing_context="fork")


def make_model():
    import torch
    from torch import nn

    net = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 16, 3), nn.ReLU(), nn.Flatten(), nn.LazyLinear(10))
    net(torch.zeros(1, 3, 32, 32))
    return net, torch.optim.SGD(net.parameters(), 0.01)


def epoch(loader, model, kind: str) -> tuple[float, float]:
    """(seconds on the clock, processor seconds) of one epoch, the beginning and end of the watch included."""
    import leakprobe

    began, began_cpu = time.perf_counter(), processor_seconds()
    if kind != "plain":
        with leakprobe.watch(workers=kind == "watch") as probe:
            train(probe.steps(loader), model)
        probe.report()
    else:
        train(loader, model)
    return time.perf_counter() - began, processor_seconds() - began_cpu


def train(batches, model) -> None:
    from torch.nn import functional

    net, optimizer = model
    for images, labels in batches:
        optimizer.zero_grad()
        functional.cross_entropy(net(images), labels).backward()
        optimizer.step()


def processor_seconds() -> float:
    """Of this process and of the children that have ended."""
    return sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))
