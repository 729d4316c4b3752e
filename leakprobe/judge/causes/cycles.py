"""Causes of garbage that only the collector can free, or that it cannot."""

from leakprobe.judge.causes.case import Case, Found, at
from leakprobe.judge.causes.hooks import passes_hook


def cpp_cycle(case: Case) -> Found:
    if case.kind != "garbage" or case.collectable is not False:
        return None
    if passes_hook(case.cycle):
        fix = (
            "let the hook take a detached tensor or a weak reference instead of the tensor it "
            "is registered on"
        )
    elif case.on_cycle("numpy.ndarray"):
        fix = "keep the objects in lists instead of an object array, or let them refer to their owner weakly"
    else:
        fix = (
            "break the cycle by hand when the step ends (x.grad = None, or detach what is "
            "kept): the collector can't"
        )
    return "cpp_reference_cycle", f"{fix}{at(case)}"


def frozen_cycle(case: Case) -> Found:
    if case.kind != "garbage" or not case.frozen:
        return None
    return "frozen_garbage", f"call gc.collect() before gc.freeze(), and freeze only once{at(case)}"


def frame_cycle(case: Case) -> Found:
    if case.kind != "garbage" or not case.on_cycle("traceback", "frame"):
        return None
    fix = "del the local that holds the exception when you are done with it (try: ... finally: del err)"
    return "cycle_through_frame", f"{fix}{at(case)}"


def hook_cycle(case: Case) -> Found:
    if case.kind != "garbage" or not passes_hook(case.cycle):
        return None
    return "cycle_through_hook", f"remove the hook's handle, or let the hook take a weak reference{at(case)}"


def callback_cycle(case: Case) -> Found:
    if case.kind != "garbage" or not case.on_cycle("function", "method", "functools.partial", "cell"):
        return None
    return (
        "cycle_through_callback",
        f"give the callback the value it needs, or a weak reference, instead of the object itself{at(case)}",
    )


def cycle(case: Case) -> Found:
    if case.kind != "garbage":
        return None
    return (
        "reference_cycle",
        f"break the cycle when the step ends, or hold one of its references weakly{at(case)}",
    )
