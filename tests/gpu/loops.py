"""Loops over memory of a CUDA device and pinned memory: their source, and how one is run."""

import json
import pathlib
import random
import sys

import forked

#: How a block of 64 KiB is made, by medium.
MAKE = {
    "cuda:0": 'def make(): return torch.empty(1 << 16, dtype=torch.uint8, device="cuda")\n',
    "pinned": "def make(): return torch.empty(1 << 16, dtype=torch.uint8, pin_memory=True)\n",
}
BYTES = 1 << 16
#: How many of 200 steps keep a block, a step: what the loop below draws.
SEVEN_OF_TEN = sum(draw() < 0.7 for draw in [random.Random(5).random] * 200) / 200
#: Loops that grow => (source, bytes a step since the onset, the onset).
GROWING = {
    "each step": ("kept = []\ndef step(i):\n    kept.append(make())\n", BYTES, 0),
    "seven of ten": (
        "import random\nrng, kept = random.Random(5), []\ndef step(i):\n    if rng.random() < 0.7:\n"
        "        kept.append(make())\n",
        SEVEN_OF_TEN * BYTES,
        0,
    ),
    "late": ("kept = []\ndef step(i):\n    if i >= 100:\n        kept.append(make())\n", BYTES, 100),
    "backlog": (  # the oldest go, but three come for each two
        "import collections\nkept = collections.deque()\ndef step(i):\n"
        "    kept.extend(make() for _ in range(3))\n"
        "    kept.popleft()\n    kept.popleft()\n",
        BYTES,
        0,
    ),
}
#: Loops that do not.
LEVEL = {
    "ring": "import collections\nkept = collections.deque(maxlen=20)\n"
    "def step(i):\n    kept.append(make())\n",
    "cache": "kept = {}\ndef step(i):\n    kept.setdefault(i * 7 % 32, make())\n",
    "temporary": "def step(i):\n    make()\n",
    "sawtooth": "kept = []\ndef step(i):\n    kept.append(make())\n"
    "    if len(kept) == 12:\n        kept.clear()\n",
}
RUN = """
import json, sys
import torch, leakprobe
torch.cuda.init()  # pinned memory alone does not say that CUDA is started
import loop
options = json.loads(sys.argv[2])
with leakprobe.watch(**options) as probe:
    for i in range(int(sys.argv[1])):
        loop.step(i)
        probe.step()
    vars(loop).get("end", int)()
print(json.dumps(probe.report().to_dict()))
"""


def report_of(source: str, folder: pathlib.Path, steps: int = 200, **options) -> dict:
    """The report of a loop over the step() of ``source``, a module of its own, in a process of its own;
    end(), where there is one, comes behind the loop and before the end of the watch.
    """
    (folder / "loop.py").write_text("import torch\n" + source)
    command = ["-c", RUN, str(steps), json.dumps({"warmup": 5, **options})]
    done = forked.run(command, cwd=folder, path=[str(folder), *filter(None, sys.path)], timeout=300)
    assert done.returncode == 0, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
    return json.loads(done.stdout.splitlines()[-1])


def line_of(report_frame: dict, folder: pathlib.Path) -> str:
    """The text of the line that a frame names."""
    return (folder / "loop.py").read_text().splitlines()[report_frame["lineno"] - 1].strip()
