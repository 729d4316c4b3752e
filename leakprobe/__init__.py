"""leakprobe: finds what a PyTorch training loop forgets to free.

    with leakprobe.watch(warmup=5) as probe:
        for batch in probe.steps(loader):
            train_step(batch)
    probe.report().print()

Importing it imports neither torch nor numpy nor a report library.
"""

import importlib.util

if importlib.util.find_spec("leakprobe._core") is None:
    # A source tree that was not built in place: the compiled module is in an installed copy.
    import pkgutil

    __path__ = pkgutil.extend_path(__path__, __name__)

from leakprobe.errors import LeakprobeError
from leakprobe.probe import ALL, Probe, is_active, start, stop, watch
from leakprobe.snapshot import Snapshot, snapshot
from leakprobe.diff import Diff, DiffRow, diff

__version__ = "0.1.0"

__all__ = [
    "ALL",
    "Diff",
    "DiffRow",
    "LeakprobeError",
    "Probe",
    "Snapshot",
    "diff",
    "is_active",
    "snapshot",
    "start",
    "stop",
    "watch",
]
