"""Which line a fix names, and what it asks to change there, where what grows is made on another line."""

import json

import forked
from native_support import needs_torch

THREADS = """
import json, threading
import numpy as np
import leakprobe

stop = threading.Event()
with leakprobe.watch() as probe:
    for _ in probe.steps(range(40)):
        batch = np.zeros(3000)
        work = threading.Thread(target=lambda batch: stop.wait(), args=(batch,), daemon=True)
        work.start()
    report = probe.report()
stop.set()
print(json.dumps(report.to_dict()))
"""
HOOK = """
import json
import torch
import leakprobe

net = torch.nn.Linear(31, 250)
seen = []
{hook}
with leakprobe.watch() as probe:
    for _ in probe.steps(range(40)):
        net(torch.ones(9, 31))
print(json.dumps(probe.report().to_dict()))
"""


def finding_of(folder, text):
    script = folder / "fit.py"
    script.write_text(text)
    done = forked.run([script])
    assert done.returncode == 0, done.stderr
    (finding,) = json.loads(done.stdout.strip().splitlines()[-1])["findings"]
    return finding


def line_of(text, part):
    return next(number for number, line in enumerate(text.splitlines(), 1) if part in line)


@needs_torch
def test_a_thread_that_never_ends_is_named_by_its_own_line(tmp_path):
    finding = finding_of(tmp_path, THREADS)
    assert finding["cause"] == "never_ended"
    assert finding["fix"].endswith(f"fit.py:{line_of(THREADS, 'threading.Thread')}")
    assert finding["allocation"]["lineno"] == line_of(THREADS, "np.zeros")


@needs_torch
def test_a_container_that_one_hook_fills_is_what_must_be_cleared(tmp_path):
    keep = "def keep(module, args, output):\n    seen.append(output.detach())\n"
    text = HOOK.format(hook=f"{keep}net.register_forward_hook(keep)")
    finding = finding_of(tmp_path, text)
    assert finding["cause"] == "hook_kept"
    assert "clear what the hook stores" in finding["fix"] and "remove()" not in finding["fix"]
    assert finding["fix"].endswith(f"fit.py:{line_of(text, 'seen.append')}")


HOOK_OF_A_TENSOR = """
import functools, json
import torch
import leakprobe

class Fit:
    def __init__(self):
        self.gain = torch.nn.Parameter(torch.ones(70))
    def update(self, rows):
        scaled = functools.partial(torch.mul, rows)
        self.gain.register_hook(scaled)
        (self.gain * rows).sum().backward()

fit = Fit()
with leakprobe.watch() as probe:
    for _ in probe.steps(range(40)):
        rows = torch.full((70,), 0.5)
        fit.update(rows)
print(json.dumps(probe.report().to_dict()))
"""


@needs_torch
def test_a_hook_of_a_tensor_is_named_by_the_line_that_registers_it(tmp_path):
    finding = finding_of(tmp_path, HOOK_OF_A_TENSOR)
    number = line_of(HOOK_OF_A_TENSOR, "register_hook")
    assert finding["cause"] == "hook_kept"
    assert finding["holder"]["grown_at"]["lineno"] == number
    assert finding["holder"]["grown_at"]["function"] == "Fit.update"
    assert f"fit.py:{number}: `self.gain.register_hook(scaled)` becomes `handle = " in finding["fix"]
