"""A log file for each step

Opened, written, and kept open, since the loggers never close their files.
"""

import os
import tempfile

import leakprobe

folder = tempfile.mkdtemp()
logs = {}


def log(step, text):
    logs[step] = open(os.path.join(folder, f"{step}.txt"), "w")
    logs[step].write(text)


with leakprobe.watch() as probe:
    for step in probe.steps(range(60)):
        log(step, "loss 0.5")
probe.report().print()
