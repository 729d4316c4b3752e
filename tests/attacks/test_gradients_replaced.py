"""Walks beside threads that replace gradients: while the old one dies, its parameter still refers to it."""

import subprocess
import sys

import pytest

pytest.importorskip("torch", reason="needs torch")

PROGRAM = """
import sys, threading
import torch
import leakprobe

torch.set_num_threads(1)
ended = threading.Event()

def replace():
    layer = torch.nn.Linear(8, 8)
    while not ended.is_set():
        for parameter in layer.parameters():
            parameter.grad = torch.ones_like(parameter)
        for parameter in layer.parameters():
            parameter.grad = None

threads = [threading.Thread(target=replace) for _ in range(3)]
for thread in threads:
    thread.start()
walk = {"cycles": leakprobe.find_cycles, "snapshot": lambda: leakprobe.snapshot(graph=True)}[sys.argv[1]]
for _ in range(30):
    walk()
    ended.wait(0.001)
ended.set()
for thread in threads:
    thread.join()
print("ended")
"""


@pytest.mark.parametrize("walk", ["cycles", "snapshot"])
def test_gradients_that_other_threads_replace(walk):
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", PROGRAM, walk],
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0 and done.stdout == "ended\n", done.stderr[-2000:]
