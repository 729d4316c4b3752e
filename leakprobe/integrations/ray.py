"""Ray Train: each worker of a TorchTrainer watches itself and records into one folder.

from leakprobe.integrations.ray import watched

loop = watched(train_loop, record="/shared/leaks")
TorchTrainer(loop, scaling_config=ScalingConfig(num_workers=2)).fit()
leakprobe.recording.load_merged(["/shared/leaks"]).report.print()     # or: leakprobe report /shared/leaks

Nothing of Ray is imported: what it calls in its workers is a plain function.
"""

import functools
import os
from collections.abc import Callable
from typing import Any

from leakprobe.integrations.session import Session, called_under

Loop = Callable[..., Any]


def watched(
    train_loop: Loop, *, record: str | os.PathLike[str], warmup: int = 5, show: bool = False, **options: Any
) -> Loop:
    """``train_loop`` under a watch: a step is an optimizer step, else a batch of a DataLoader.

    record: a folder that all workers reach; each writes rank-NNNNN.leak there, and `leakprobe report` merges
        them and names the rank that stands out.  A relative path is taken from where this is called.
    warmup, options: those of leakprobe.watch().  show: print each worker's report too.
    Errors: those of leakprobe.watch(), here for wrong options, in the workers for a folder that can't be
    written to.
    """
    folder = os.path.abspath(record)
    Session(warmup, show=show, record=folder, **options)  # wrong options are an error of the driver

    @functools.wraps(train_loop)
    def loop(*args: Any, **kwargs: Any) -> Any:
        session = Session(warmup, show=show, record=folder, **options)
        session.begin()
        return called_under(session, train_loop, *args, **kwargs)

    return loop
