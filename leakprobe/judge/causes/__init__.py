"""Why something grows and how to fix it: one small rule per mechanism, by the shape of the path.

A rule looks at a Case (types, edges and media along the retention path) and gives a
``(cause, fix)`` or None; the first that fits wins.  No rule sees a name that a user can give.
The closed list of causes is CAUSES of leakprobe/model/causes.py.
"""

from collections.abc import Callable

from leakprobe.judge.causes import chains, containers, cycles, endings, hooks, tables, tensors
from leakprobe.judge.causes.case import Case, Found

__all__ = ["RULES", "Case", "cause_of"]

RULES: list[Callable[[Case], Found]] = [
    cycles.cpp_cycle,
    cycles.frozen_cycle,
    cycles.frame_cycle,
    cycles.hook_cycle,
    cycles.callback_cycle,
    cycles.cycle,
    containers.replaced,
    tables.lru,
    tables.memo,
    endings.task,
    endings.thread,
    tables.handlers,
    endings.closing,
    hooks.hook,
    tensors.graph_of_gradients,
    tables.optimizer,
    chains.chain,
    tables.kept_traceback,
    endings.registered,
    tables.classes,
    tables.queue,
    tables.iterator,
    tables.keyed,
    tensors.graph,
    tensors.kept_tensor_with_graph,
    tensors.view,
    tables.registry,
    endings.unseen,
    endings.owned_by_cpp,
    endings.lost,
    containers.module_attribute,
    containers.container,
    containers.attribute,
    endings.unread,
    endings.outside,
]


def cause_of(case: Case) -> tuple[str, str | None]:
    """The cause (a key of CAUSES) and the fix in one sentence, or ("unknown", None)."""
    for rule in RULES:
        found = rule(case)
        if found is not None:
            cause, fix = found
            return cause, f"{fix}; {case.collector}" if case.collector else fix
    return "unknown", None
