"""Training scripts with DataLoader workers, each run in a process of its own."""

import glob
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import forked

DATASET = """
import functools, gc, glob, json, multiprocessing, os, signal, sys, tempfile
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset
import leakprobe

class Cached(Dataset):
    def __init__(self, n=4000): self.n, self.cache = n, {}
    def __len__(self): return self.n
    def __getitem__(self, k):
        image = np.ones(3000, np.float32)
        self.cache[len(self.cache)] = image
        return float(image[0])

class Plain(Cached):
    def __getitem__(self, k):
        self.cache[k % 4] = np.ones(3000, np.float32)
        return torch.zeros(1000)

class Stream(IterableDataset):
    def __init__(self, n=4000): self.n, self.seen = n, []
    def __iter__(self):
        for k in range(self.n):
            self.seen.append(bytearray(3000))
            yield float(k)

def train(loader, probe, epochs=1, most=10**9):
    for _ in range(epochs):
        for i, batch in enumerate(probe.steps(loader)):
            if i >= most: break

def left_over():
    gc.collect()  # an exception's frames may keep an iterator, with or without leakprobe
    return {"children": len(multiprocessing.active_children()), "files": glob.glob(tempfile.gettempdir() + "/leakprobe-*")}

def tell(probe, **more):
    print(json.dumps({"report": probe.report().to_dict(), "left": left_over(), **more}))
"""
#: Line of DATASET's text in which each thing is allocated.
LINES = {
    name: next(i for i, line in enumerate(DATASET.splitlines(), 1) if text in line)
    for name, text in {"cache": "image = np.ones(3000", "stream": "self.seen.append"}.items()
}


def run_forked(script, temporary, timeout) -> tuple:
    """(exit code, what it printed, its errors) of a script in a child of a process that has imported what the
    scripts need.
    """
    done = forked.run([script], env={**os.environ, "TMPDIR": str(temporary)}, timeout=timeout)
    return done.returncode, done.stdout, done.stderr


def run_alone(script, temporary, timeout) -> tuple:
    """The same in a process of its own, which processes that are spawned need."""
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, "TMPDIR": str(temporary)},
    )
    return done.returncode, done.stdout, done.stderr


def run_script(folder, main, *, timeout=900, alone=False, code=0) -> dict:
    """The JSON that a script prints last, whose main part is ``main``; run with an own folder for temporary
    files.
    """
    script = pathlib.Path(folder, "train.py")
    body = "\n".join("    " + line for line in main.strip("\n").splitlines())
    script.write_text(f"{DATASET}\nif __name__ == '__main__':\n{body}\n")
    with tempfile.TemporaryDirectory(
        prefix="lp-"
    ) as temporary:  # pytest's own folders are too deep for the sockets of workers
        ended, out, err = (run_alone if alone else run_forked)(script, temporary, timeout)
        files_after = glob.glob("leakprobe-*", root_dir=temporary)
    assert ended == code, f"exit {ended}\n{err[-3000:]}"
    result = json.loads(out.strip().splitlines()[-1])
    return {**result, "stderr": err, "files_after": files_after}


def worker_findings(result) -> list:
    return [f for f in result["report"]["findings"] if f["kind"] == "worker_growth"]
