"""A long training loop under the probe: recording, DataLoader workers, evaluations, checkpoints and random
exceptions; is the probe's own memory flat?

    python tests/soak/soak.py [--minutes 30] [--pause-ms 0] [--leak-after PART] [--json FILE]

Prints a row a minute. An epoch starts new workers and ends with an evaluation and a checkpoint, of which
three are kept; about one epoch in five ends with an exception of the dataset (raised in a worker) and
one step in a hundred fails in the forward pass, its exception kept until the next one. Exit status 1 if
the probe's memory, that of the process or the number of Python's blocks rose from the second quarter of
the time to the last, if something was found to grow, or if the recording can't be read back. With
--leak-after 0.75 the loop keeps a history from the last quarter on, and exit status 1 means that this
alone was not found.
"""

import argparse
import json
import os
import pathlib
import platform
import random
import statistics
import sys
import tempfile
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import leakprobe
from leakprobe import _core
from leakprobe.recording import load

#: What "flat" allows from the second quarter to the last: a part and a number of bytes (or blocks).
ALLOWED = {"overhead": (0.02, 256 << 10), "rss": (0.02, 4 << 20), "blocks": (0.02, 2000)}


class Noise(Dataset):
    """Made-up images; in some epochs one of them can't be read."""

    def __init__(self, count: int, broken: int | None):
        self.count, self.broken = count, broken

    def __len__(self):
        return self.count

    def __getitem__(self, k):
        if k == self.broken:
            raise ValueError(f"image {k} can't be read")
        return torch.full((1, 16, 16), k / self.count), k % 10


class Trainer:
    """The loop; ``counts`` tells what happened in it."""

    def __init__(self, seed: int, pause_s: float, folder: pathlib.Path):
        self.random, self.pause_s, self.folder = random.Random(seed), pause_s, folder
        self.net = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 14 * 14, 10))
        self.optimizer = torch.optim.Adam(self.net.parameters())
        self.counts = {"steps": 0, "epochs": 0, "failed_steps": 0, "failed_loaders": 0}
        self.counts["evaluations"] = 0
        self.last_error = None
        self.leaking, self.history = False, []

    def step(self, images, labels):
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.net(images), labels)
        if self.random.random() < 0.01:
            raise RuntimeError("a step that fails")
        loss.backward()
        self.optimizer.step()
        if self.leaking:
            self.history.append([loss.item()] * 40)

    @torch.no_grad()
    def evaluate(self):
        self.net.eval()
        losses = [
            nn.functional.cross_entropy(self.net(images), labels).item()
            for images, labels in DataLoader(Noise(256, None), batch_size=64)
        ]
        self.net.train()
        self.counts["evaluations"] += 1
        return statistics.mean(losses)

    def checkpoint(self):
        state = {"model": self.net.state_dict(), "optimizer": self.optimizer.state_dict()}
        torch.save(state, self.folder / f"{self.counts['epochs']}.pt")
        (self.folder / f"{self.counts['epochs'] - 3}.pt").unlink(missing_ok=True)

    def epoch(self, probe):
        broken = self.random.randrange(2048) if self.random.random() < 0.2 else None
        loader = DataLoader(Noise(2048, broken), batch_size=16, num_workers=2, shuffle=True)
        self.counts["epochs"] += 1
        try:
            for images, labels in probe.steps(loader):
                self.counts["steps"] += 1
                try:
                    self.step(images, labels)
                except RuntimeError as error:
                    self.counts["failed_steps"] += 1
                    self.last_error = error
                time.sleep(self.pause_s)
        except ValueError:
            self.counts["failed_loaders"] += 1
        self.evaluate()
        self.checkpoint()


def measure(began: float, trainer: Trainer, recording: pathlib.Path) -> dict:
    return {
        "minute": (time.monotonic() - began) / 60,
        **trainer.counts,
        "overhead": _core.overhead_bytes(),
        "rss": _core.rss_bytes(),
        "blocks": sys.getallocatedblocks(),
        "recording": recording.stat().st_size,
    }


def quarters(rows, key):
    """Medians over the second and over the last quarter of the time."""
    minutes = rows[-1]["minute"]
    inside = [
        [r[key] for r in rows if low * minutes <= r["minute"] <= high * minutes]
        for low, high in ((0.25, 0.5), (0.75, 1))
    ]
    return [statistics.median(part) for part in inside]


def run(options, recording: pathlib.Path):
    """The measured rows and the report as plain data."""
    trainer = Trainer(options.seed, options.pause_ms / 1000, recording.parent)
    rows: list[dict] = []
    began = time.monotonic()
    every_s = min(60.0, options.minutes * 60 / 16)
    with leakprobe.watch(record=recording) as probe:
        while (now := time.monotonic() - began) < options.minutes * 60:
            trainer.leaking = now >= options.minutes * 60 * options.leak_after
            trainer.epoch(probe)
            if now >= len(rows) * every_s:
                rows.append(measure(began, trainer, recording))
                print(
                    "  ".join(f"{k} {v:.1f}" if k == "minute" else f"{k} {v}" for k, v in rows[-1].items()),
                    flush=True,
                )
    return rows, probe.report().to_dict()


def wrong_findings(findings, leaks: bool) -> list[str]:
    """The history where it leaks, and nothing else."""
    others = [f for f in findings if "history" not in json.dumps(f["holder"])]
    wrong = [f"found {f['kind']} {f['type']}: {f['evidence']}" for f in (others if leaks else findings)]
    return wrong + ["the history was not found"] * (leaks and len(others) == len(findings))


def judge(rows, report, recording, leaks: bool) -> tuple[dict, list[str]]:
    """What is written, and what is wrong."""
    wrong = wrong_findings(report["findings"], leaks)
    flat = {}
    for key, (part, least) in ALLOWED.items():
        second, last = quarters(rows, key)
        flat[key] = {"second_quarter": second, "last_quarter": last}
        if (not leaks or key == "overhead") and last > second * (1 + part) + least:
            wrong.append(f"{key} rose from {second:.0f} to {last:.0f}")
    steps = load(recording).report.steps["measured"]
    if steps != report["steps"]["measured"]:
        wrong.append(f"the recording tells {steps} steps, the report {report['steps']['measured']}")
    facts = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cpus": os.cpu_count(),
        **rows[-1],
    }
    return {
        "facts": facts,
        "flat": flat,
        "verdict": report["verdict"],
        "notes": [n["text"] for n in report["notes"]],
        "rows": rows,
    }, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument(
        "--pause-ms", type=float, default=0, help="sleep after each step, to leave the processor to others"
    )
    parser.add_argument(
        "--leak-after",
        type=float,
        default=1,
        metavar="PART",
        help="the part of the time after which it leaks",
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        recording = pathlib.Path(folder, "soak.leak")
        rows, report = run(options, recording)
        result, wrong = judge(rows, report, recording, options.leak_after < 1)
    if options.json:
        options.json.write_text(json.dumps({**result, "wrong": wrong}, indent=1) + "\n")
    print(json.dumps(result["flat"]), result["verdict"], *wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
