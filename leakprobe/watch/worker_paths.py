"""Paths within a DataLoader worker: while its loop runs they begin at the loop's frame, and once that is over
at torch's own word of the worker, or at the process object that has its arguments, or at the parent's frame.
What keeps a leak is the dataset, at any time.
"""

import dataclasses

from leakprobe.model.entry import Entry, PathNode

WORKER = "DataLoader worker"
#: Frames of torch's and of multiprocessing, also those in which the parent forked (on Python 3.14 the process
#: object gives its arguments up), and the modules that refer to the dataset of a worker.
LOOPS = (" in worker.py", " in process.py", " in dataloader.py")
MODULES = ("torch.utils.data._utils.worker", "multiprocessing.process")


def from_dataset(entry: Entry, dataset: str | None) -> Entry:
    """The entry with a path that begins at the worker and its dataset, if one leads there.

    dataset: the name of its type.
    """
    at = next((i for i, node in enumerate(entry.path) if node.type == dataset), 0)
    if dataset is None or not at or not is_of_loop(entry.path[0]):
        return entry
    root = dataclasses.replace(entry.path[0], text=WORKER, edge="frame")
    first = dataclasses.replace(entry.path[at], text=f"dataset {dataset.rpartition('.')[-1]}", edge="local")
    return dataclasses.replace(entry, path=(root, first, *entry.path[at + 1 :]))


def is_of_loop(root: PathNode) -> bool:
    return root.text in MODULES if root.edge == "module" else root.text.endswith(LOOPS)
