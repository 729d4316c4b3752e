"""What is never ended or closed, and what native code keeps."""

from leakprobe.judge.causes.case import Case, Found, at, bases, bases_of, is_a


def task(case: Case) -> Found:
    if not case.has_type(
        "_asyncio.Task",
        "asyncio.tasks.Task",
        "_asyncio.Future",
        "asyncio.futures.Future",
        "concurrent.futures._base.Future",
    ):
        return None
    if case.in_library:
        return "never_ended", f"end, await or cancel the task that is begun in each step{at(case)}"
    return (
        "task_kept",
        f"take the result and drop the task: discard it when it is done (add_done_callback){at(case)}",
    )


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
    return (
        "never_ended",
        (
            "end what is begun in each step and wait for it (shutdown(), join()), or make one and use "
            f"it again{at(case)}"
        ),
    )


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
    return "never_closed", f"close it when it is done with, best by a with statement{at(case)}"


def lost(case: Case) -> Found:
    if case.kind != "lost":
        return None
    return "lost_reference", f"look for a missing Py_DECREF in the native code that met it last{at(case)}"


def outside(case: Case) -> Found:
    if case.kind != "outside":
        return None
    fix = (
        "keep what the native call takes alive only as long as it is used; if it caches by "
        "object, make the object once"
    )
    return "held_outside_python", f"{fix}{at(case)}"
