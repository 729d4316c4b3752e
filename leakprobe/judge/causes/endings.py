"""What is never ended or closed, and what native code keeps."""

import itertools

from leakprobe.judge.causes.case import Case, Found, at, bases, bases_of, is_a
from leakprobe.model.media import TORCH, family

#: Edges from tables of CPython's own.
TABLES = frozenset({"atexit", "signal", "interpreter"})


def task(case: Case) -> Found:
    """Steps have left tasks: one that is older and runs may lead to anything, or be waited for."""
    tasks = (
        "_asyncio.Task",
        "asyncio.tasks.Task",
        "_asyncio.Future",
        "asyncio.futures.Future",
        "concurrent.futures._base.Future",
    )
    if not any(is_a(node, *tasks) for node in case.below):
        return None
    if case.in_library or is_pending(case, *tasks):
        return "never_ended", f"end, await or cancel the task that each step starts{at(case)}"
    if any(is_a(node, "traceback") for node in case.below):  # it failed: what its frames had is kept
        return None
    return (
        "task_kept",
        f"take the result and drop the task: discard it when it is done (add_done_callback){at(case)}",
    )


def is_pending(case: Case, *tasks: str) -> bool:
    """True if the path leads on to a local variable of a task's coroutine: one that has ended has none."""
    for i, (node, below) in enumerate(itertools.pairwise(case.below), 1):
        if is_a(node, *tasks) and is_a(below, "coroutine"):
            return any(one.edge == "local" for one in case.below[i:])
    return False


def thread(case: Case) -> Found:
    ends = (
        "threading.Thread",
        "threading.Timer",
        "multiprocessing.process.BaseProcess",
        "subprocess.Popen",
        "concurrent.futures.thread.ThreadPoolExecutor",
        "concurrent.futures.process.ProcessPoolExecutor",
        "torch.utils.data.dataloader._MultiProcessingDataLoaderIter",
    )
    if not any(is_a(p, *ends) for p in case.below):
        return None
    fix = (
        "end the thread, process or pool that each step starts and wait for it (join(), shutdown()), or "
        "create one and reuse it"
    )
    return "never_ended", f"{fix}, {case.made}" if case.made else f"{fix}{at(case)}"


def closing(case: Case) -> Found:
    files = (
        "_io._IOBase",
        "socket.socket",
        "_socket.socket",
        "mmap.mmap",
        "zipfile.ZipFile",
        "numpy.lib.npyio.NpzFile",
        "numpy.lib._npyio_impl.NpzFile",
        "multiprocessing.shared_memory.SharedMemory",
        "sqlite3.Connection",
        "h5py._hl.files.File",
    )
    below = [*(bases(p) for p in case.below), *(bases_of(t) for t in case.types)]
    memory = {"_io.BytesIO", "_io.StringIO"}
    if not any(one & set(files) and not one & memory for one in below):
        return None
    return "never_closed", f"close it when you are done with it, ideally in a with statement{at(case)}"


def lost(case: Case) -> Found:
    """What each step makes has a reference too many.  Where an older object holds it, only that one has: then
    native code keeps it on purpose, and the other rules explain what grows.
    """
    if case.kind != "lost" or case.holder is not None:
        return None
    fix = (
        "find the native code that last used the object: it keeps the object on purpose, or has lost a "
        "reference (a missing Py_DECREF); no object, frame or interpreter table that leakprobe can read "
        "refers to it"
    )
    return "lost_reference", f"{fix}{at(case)}"


def unseen(case: Case) -> Found:
    """The cause stays open: any object may own the block."""
    if case.kind != "unseen":
        return None
    unowned = ", ".join(sorted(case.media))
    fix = (
        "drop the objects that own what this line allocates: leakprobe can't see which objects own "
        f"{unowned} memory{at(case)}"
    )
    return "unknown", fix


def unread(case: Case) -> Found:
    """The cause stays open: other native code may keep a tensor too."""
    if not case.unread:
        return None
    fix = (
        "if a loss or a model's output is kept, keep loss.item() or tensor.detach() instead: this version of "
        "torch does not show what an autograd graph has saved, so it is not known what keeps this (torch "
        "2.13 shows it)"
    )
    return "held_outside_python", f"{fix}{at(case)}"


def owned_by_cpp(case: Case) -> Found:
    """Memory of torch's to which no Python object leads: a reference that Python code has lost would have
    left the tensor's object.
    """
    if case.kind != "lost" or case.holder is not None:
        return None
    if not any(family(medium) in TORCH for medium in case.media):
        return None
    if any(node.type not in (None, "buffer") for node in case.path):
        return None
    fix = (
        "clear what keeps it in C++, such as an attribute of a scripted or compiled module, or an extension: "
        "no Python object refers to this tensor"
    )
    return "held_outside_python", f"{fix}{at(case)}"


def outside(case: Case) -> Found:
    if case.kind != "outside":
        return None
    fix = (
        "unregister or release what was given to native code when it is no longer needed; if that code "
        "caches by object, create the object once"
    )
    return "held_outside_python", f"{fix}{at(case)}"


def registered(case: Case) -> Found:
    """A table of CPython's own has it, and nothing between that and what grows is the user's container."""
    if case.kind != "outside" or not case.path or case.path[0].edge not in TABLES:
        return None
    if case.holder is not None and case.depth > 1:
        return None
    if any(is_a(node, "_contextvars.Context") for node in case.above):
        fix = (
            "reset the context variable (var.reset(token)), or set it to a value that does not keep the last"
        )
        return "growing_attribute", f"{fix}{at(case)}"
    if case.path[0].edge == "atexit":
        fix = "register the callback once, with nothing that a step makes, or remove it (atexit.unregister)"
    elif case.path[0].edge == "signal":
        fix = "set the handler once, with nothing that a step makes, and let none keep the one before it"
    else:
        fix = "register the handler once, with nothing that a step makes: the interpreter keeps it to its end"
    return "library_registry", f"{fix}{at(case)}"
