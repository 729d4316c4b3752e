"""leakprobe: finds what a PyTorch training loop forgets to free.

    with leakprobe.watch(warmup=5) as probe:
        for batch in probe.steps(loader):
            train_step(batch)
    probe.report().print()

Importing it imports neither torch nor numpy nor a report library.
"""

import importlib.util
import sys
import types
import typing

from leakprobe.model import renderers
from leakprobe.version import __version__ as __version__

if importlib.util.find_spec("leakprobe._core") is None:
    # A source tree that was not built in place: the compiled module is in an installed copy.
    import pkgutil

    __path__ = pkgutil.extend_path(__path__, __name__)

if typing.TYPE_CHECKING:
    from leakprobe.audit import Audit, AuditRow, audit
    from leakprobe.cycles import Cycle, find_cycles
    from leakprobe.diff import Diff, DiffRow
    from leakprobe.errors import (
        LeakprobeError,
        LeakprobeOSError,
        LeakprobeRuntimeError,
        LeakprobeValueError,
    )
    from leakprobe.graph import Dominator, Graph, TypeRow
    from leakprobe.memory import MemoryTotals, memory
    from leakprobe.memory_map import BlockRow, MemoryMap, memory_map
    from leakprobe.model.finding import Finding, Note
    from leakprobe.model.frames import Frame
    from leakprobe.model.media import ALL
    from leakprobe.model.report import Report
    from leakprobe.model.snapshot_rows import SnapshotRow
    from leakprobe.probe import Probe, is_active, start, stop, watch
    from leakprobe.retention import RetentionPath, retained_size, why
    from leakprobe.snapshot import Snapshot, diff, snapshot

#: Module => public names, loaded at their first use: every pytest session imports this package for its
#: plugin, also one where the C core can't be loaded.
_NAMES = {
    "leakprobe.audit": ("Audit", "AuditRow", "audit"),
    "leakprobe.cycles": ("Cycle", "find_cycles"),
    "leakprobe.diff": ("Diff", "DiffRow"),
    "leakprobe.errors": (
        "LeakprobeError",
        "LeakprobeOSError",
        "LeakprobeRuntimeError",
        "LeakprobeValueError",
    ),
    "leakprobe.graph": ("Dominator", "Graph", "TypeRow"),
    "leakprobe.integrations.ipython": ("load_ipython_extension",),
    "leakprobe.memory": ("MemoryTotals", "memory"),
    "leakprobe.memory_map": ("BlockRow", "MemoryMap", "memory_map"),
    "leakprobe.model.finding": ("Finding", "Note"),
    "leakprobe.model.frames": ("Frame",),
    "leakprobe.model.report": ("Report",),
    "leakprobe.model.snapshot_rows": ("SnapshotRow",),
    "leakprobe.probe": ("ALL", "Probe", "is_active", "start", "stop", "watch"),
    "leakprobe.retention": ("RetentionPath", "retained_size", "why"),
    "leakprobe.snapshot": ("Snapshot", "diff", "snapshot"),
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}

#: What the methods of a Report call => (module, function), loaded at their first use.
_RENDERERS = {
    "cycle_in_notebook": ("leakprobe.report.notebook", "of_cycle"),
    "diff_in_notebook": ("leakprobe.report.notebook", "of_diff"),
    "paths_in_notebook": ("leakprobe.report.notebook", "of_paths"),
    "report_in_notebook": ("leakprobe.report.notebook", "of_report"),
    "snapshot_in_notebook": ("leakprobe.report.notebook", "of_snapshot"),
    "diff_to_html": ("leakprobe.report.diff_html", "write_diff"),
    "from_dict": ("leakprobe.record.parse", "parse_report"),
    "print": ("leakprobe.report.diagnostic", "print_report"),
    "save": ("leakprobe.recording", "save"),
    "to_html": ("leakprobe.report.html", "write_html"),
    "to_json": ("leakprobe.report.json", "write_json"),
}


def _loaded_at_use(module: str, name: str) -> typing.Callable[..., typing.Any]:
    return lambda *args, **kwargs: getattr(importlib.import_module(module), name)(*args, **kwargs)


for _name, _where in _RENDERERS.items():
    renderers.register(_name, _loaded_at_use(*_where))


class _Package(types.ModuleType):
    """Importing leakprobe.audit, leakprobe.watch and the like does not hide the functions of the same
    names.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOME and isinstance(value, types.ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> typing.Any:
    if name not in _HOME:
        raise AttributeError(f"module 'leakprobe' has no attribute {name!r}")
    return globals().setdefault(name, getattr(importlib.import_module(_HOME[name]), name))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "ALL",
    "Audit",
    "AuditRow",
    "BlockRow",
    "Cycle",
    "Diff",
    "DiffRow",
    "Dominator",
    "Finding",
    "Frame",
    "Graph",
    "LeakprobeError",
    "LeakprobeOSError",
    "LeakprobeRuntimeError",
    "LeakprobeValueError",
    "MemoryMap",
    "MemoryTotals",
    "Note",
    "Probe",
    "Report",
    "RetentionPath",
    "Snapshot",
    "SnapshotRow",
    "TypeRow",
    "audit",
    "diff",
    "find_cycles",
    "is_active",
    "memory",
    "memory_map",
    "retained_size",
    "snapshot",
    "start",
    "stop",
    "watch",
    "why",
]
