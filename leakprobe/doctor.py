"""What can be seen on this machine, as plain data: versions, and each medium's hook with its canary's
result.
"""

import os
import platform
import sys
import sysconfig
from typing import Any, TypedDict

from leakprobe import _core, preload
from leakprobe.model.media import HOOKED
from leakprobe.model.units import format_size
from leakprobe.watch import control_group
from leakprobe.watch.forecast import words_of, words_of_waiting


class Row(TypedDict):
    """ok: True, False, or None where there is nothing to judge."""

    area: str
    name: str
    value: Any
    ok: bool | None
    detail: str | None


def examine(import_libraries: bool = True) -> list[Row]:
    """Rows of {"area", "name", "value", "ok", "detail"}: ok is True, False, or None where there is nothing to
    judge.

    import_libraries: import torch and numpy where they are installed; without it only what is
    imported already is examined.
    While a watch is on, its hooks are described; otherwise each hook is installed, tried and removed.
    """
    failures = {name: try_import(name) for name in ("numpy", "torch")} if import_libraries else {}
    return [*python_rows(), *library_rows(failures), *object_rows(), *native_rows()]


def row(area: str, name: str, value: object, ok: bool | None = None, detail: str | None = None) -> Row:
    return {"area": area, "name": name, "value": value, "ok": ok, "detail": detail}


def try_import(name: str) -> str | None:
    """Why the module can't be imported, or None."""
    try:
        __import__(name)
    except Exception as error:  # a broken installation raises anything
        return f"{type(error).__name__}: {error}"
    return None


def python_rows() -> list[Row]:
    free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    return [
        row("python", "version", f"{platform.python_implementation()} {platform.python_version()}", True),
        row("python", "build", " ".join(platform.python_build()), None),
        row(
            "python",
            "free-threaded",
            free_threaded,
            not free_threaded,
            "not supported yet" if free_threaded else None,
        ),
        row("python", "allocator", os.environ.get("PYTHONMALLOC", "default"), None),
        row("system", "platform", f"{platform.system()} {platform.release()} {platform.machine()}", None),
        row("system", "preloaded", os.environ.get("LD_PRELOAD") or None, None),
        sampled_row(),
        *memory_rows(),
    ]


def sampled_row() -> Row:
    """Through what the blocks of native code are sampled, and whether `run --native` works here."""
    name = "native blocks"
    if _core.is_preloaded():
        return row("system", name, "preloaded library", True, "every call of malloc, mmap and munmap is seen")
    detail = preload.why_not() or "leakprobe run --native works here: every call is seen then"
    return row("system", name, "import slots", None, detail)


def memory_rows() -> list[Row]:
    """Which allocator serves malloc, and the memory that this process may have."""
    info, group = _core.malloc_info(), control_group.read()
    source = row(
        "system", "malloc", info["source"] if info else None, info is not None, _core.malloc_why_not()
    )
    waited = words_of_waiting(control_group.waiting(control_group.MACHINE_PRESSURE))
    available = f"{format_size(control_group.available_bytes())} available{waited}"
    machine = row("system", "memory", format_size(control_group.machine_bytes()), None, available)
    if group is None:
        return [source, machine]
    limit = f"limit {format_size(group.limit)}" if group.limit is not None else "no limit"
    detail = f"{format_size(group.current)} in use: {words_of(group)}; {group.path}"
    return [source, machine, row("system", "control group", limit, None, detail)]


def library_rows(failures: dict[str, str | None]) -> list[Row]:
    rows = [library_row(name, failures.get(name)) for name in ("numpy", "torch")]
    return [*rows, *saved_tensor_rows(), cuda_row()]


def library_row(name: str, failure: str | None) -> Row:
    module = sys.modules.get(name)
    if module is None:
        return row("library", name, None, None, failure or "not imported")
    return row("library", name, getattr(module, "__version__", None))


def saved_tensor_rows() -> list[Row]:
    """Whether torch shows what an autograd graph saves without running the hooks that unpack it."""
    autograd = getattr(getattr(sys.modules.get("torch"), "_C", None), "_autograd", None)
    if autograd is None:
        return []
    shown = hasattr(getattr(autograd, "SavedTensor", None), "data")
    why_not = (
        "this torch has no SavedTensor.data: what only an autograd graph keeps counts as held outside Python"
    )
    return [
        row(
            "library",
            "saved tensors",
            "SavedTensor.data" if shown else None,
            shown,
            None if shown else why_not,
        )
    ]


def cuda_row() -> Row:
    """The CUDA version torch was built with; asks for no device, which would start CUDA."""
    torch = sys.modules.get("torch")
    if torch is None:
        return row("library", "cuda", None, None, "torch is not imported")
    version = getattr(getattr(torch, "version", None), "cuda", None)
    return row("library", "cuda", version, None, None if version else "no CUDA build of torch")


def object_rows() -> list[Row]:
    """The hook of Python's own objects, where the core tells of it."""
    read = getattr(_core, "hook_status", None)
    if read is None:
        return []
    status = read()
    value, why_not = status.get("mechanism"), status.get("why_not")
    ok = None if why_not is None and not status.get("active") else bool(status.get("active"))
    return [row("medium", "python", value, ok, why_not)]


def native_rows() -> list[Row]:
    """One row per medium: the mechanism that passed its canary, or why there is none."""
    status = _core.native_status()
    if not any(entry["active"] for entry in status):
        _core.native_install(list(HOOKED))
        try:
            status = _core.native_status()
        finally:
            _core.native_uninstall()
    return [row("medium", e["medium"], e["mechanism"], verdict(e), canary_text(e)) for e in status]


def verdict(entry: "_core.MediumStatus") -> bool | None:
    """None where nothing failed: there is nothing of that medium, or no hook for it in this version."""
    if entry["active"]:
        return True
    harmless = (
        "not imported",
        "no CUDA build",
        "does not hook",
        "not available here",
        "not asked for",
        "is not initialised",
    )
    return None if any(text in (entry["why_not"] or "") for text in harmless) else False


def canary_text(entry: "_core.MediumStatus") -> str:
    if entry["active"]:
        return "canary passed: one block was seen being made and freed"
    return entry["why_not"] or "not active"
