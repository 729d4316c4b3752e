"""An epoch of training with DataLoader workers: under watch(), under watch(workers=False), and without, in
turns.

Workers decode JPEG images of 240 x 320, crop, flip and scale them, as in training on photographs; the process
trains a small network; malloc keeps what is freed.  Each round has one epoch of each kind in random order, in
one process; new workers are forked for every epoch.  The ratio of a round is that of two of its times: on the
clock, and of processor time of the process with its workers.  Told is the median ratio with its 95 % interval
(bootstrap over the rounds).  The looks of a watch come first: the shorter the epoch, the larger their part.
"""

import io
import os
import random
import resource
import statistics
import time

from benchmarks.pairs import keep_freed_memory, machine


def add_arguments(parser) -> None:
    parser.add_argument("--pairs", type=int, default=16)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--seconds", type=float, default=10.0, help="how long a plain epoch should take, more or less"
    )
    parser.add_argument("--without-parent", action="store_true", help="leave watch(workers=False) out")
    parser.add_argument(
        "--texts", type=int, default=0, help="strings in a list that the dataset reads: its pages are copied"
    )


def run(args) -> dict:
    import torch

    torch.set_num_threads(1)
    keep_freed_memory()
    loader, model = make_loader(args, 640), make_model()
    kinds = ["watch", "plain"] if args.without_parent else ["watch", "parent", "plain"]
    warm = {kind: epoch(loader, model, kind)[0] for kind in [*kinds, "plain"]}
    loader = make_loader(args, max(640, round(640 * args.seconds / warm["plain"])))
    rng = random.Random(0)
    pairs = [("watch()", "watch", "plain"), ("workers followed", "watch", "parent")][: len(kinds) - 1]
    ratios = {f"{name}, {clock}": [] for name, *_ in pairs for clock in ("clock", "processor")}
    seconds = []
    for _ in range(args.pairs):
        rng.shuffle(kinds)
        times = {kind: epoch(loader, model, kind) for kind in kinds}
        seconds.append(times["plain"])
        for name, kind, base in pairs:
            for i, clock in enumerate(("clock", "processor")):
                ratios[f"{name}, {clock}"].append(times[kind][i] / times[base][i])
    rows = {name: summary(values) for name, values in ratios.items()}
    clock, processor = (statistics.median(s[i] for s in seconds) for i in (0, 1))
    about = {
        "torch": torch.__version__,
        "cores": os.cpu_count(),
        "batches": len(loader),
        "plain_s": round(clock, 2),
        "plain_processor_s": round(processor, 2),
    }
    return {
        "benchmark": "workers",
        "machine": machine() | about,
        "rows": rows,
        "geometric_mean": {},
        "pairs": ratios,
    }


def summary(values) -> dict:
    rng = random.Random(1)
    medians = sorted(statistics.median(rng.choices(values, k=len(values))) for _ in range(4000))
    return {"ratio": statistics.median(values), "low": medians[100], "high": medians[-100]}


def make_loader(args, items: int):
    import numpy as np
    from PIL import Image
    from torch.utils.data import DataLoader, Dataset

    class Images(Dataset):
        def __init__(self):
            self.files = [jpeg(k) for k in range(64)]
            self.texts = ["%0100d" % k for k in range(args.texts)]

        def __len__(self):
            return items

        def __getitem__(self, k):
            image = Image.open(io.BytesIO(self.files[k % 64])).convert("RGB")
            left, top = k % 60, k % 20
            image = image.crop((left, top, left + 224, top + 192)).resize((32, 32), Image.Resampling.BILINEAR)
            pixels = np.asarray(image, np.float32)[:, :: 1 if k % 2 else -1]
            pixels = (pixels / 255 - pixels.mean() / 255) / (pixels.std() / 255 + 1e-6)
            record = {
                "id": k,
                "tags": [str(k + i) for i in range(5)],
                "text": len(self.texts[k]) if self.texts else 0,
            }
            return np.ascontiguousarray(pixels.transpose(2, 0, 1)), len(record["tags"]) % 10

    def jpeg(k: int) -> bytes:
        """Smooth shapes and some noise, as photographs have."""
        rng = np.random.default_rng(k)
        coarse = Image.fromarray(rng.integers(0, 255, (12, 16, 3), dtype=np.uint8)).resize(
            (320, 240), Image.Resampling.BICUBIC
        )
        noisy = np.clip(np.asarray(coarse, np.int16) + rng.integers(-8, 8, (240, 320, 3)), 0, 255).astype(
            np.uint8
        )
        file = io.BytesIO()
        Image.fromarray(noisy).save(file, "JPEG", quality=90)
        return file.getvalue()

    return DataLoader(
        Images(), batch_size=32, shuffle=True, num_workers=args.workers, multiprocessing_context="fork"
    )


def make_model():
    import torch
    from torch import nn

    net = nn.Sequential(
        nn.Conv2d(3, 16, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 16, 3),
        nn.ReLU(),
        nn.Flatten(),
        nn.LazyLinear(10),
    )
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
    return sum(
        u.ru_utime + u.ru_stime
        for u in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )
