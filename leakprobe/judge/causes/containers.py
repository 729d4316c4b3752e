"""Containers and attributes that collect."""

from leakprobe.judge.causes.case import ITEM_EDGES, Case, Found, at, is_a
from leakprobe.judge.causes.hooks import MODULE
from leakprobe.model.entry import Path
from leakprobe.model.thresholds import AGREEING, HALF

CONTAINERS = frozenset(
    {
        "list",
        "dict",
        "set",
        "tuple",
        "collections.deque",
        "collections.OrderedDict",
        "collections.defaultdict",
        "collections.Counter",
        "array.array",
    }
)


def module_attribute(case: Case) -> Found:
    if not case.held_by_base(MODULE):
        return None
    return "module_attribute", f"keep only the last, detached, or empty it when the epoch ends{at(case)}"


def container(case: Case) -> Found:
    if not collects(case) or is_short(case):
        return None
    return (
        "growing_container",
        f"empty it when the epoch ends, give it a bound, or keep plain numbers{at(case)}",
    )


def attribute(case: Case) -> Found:
    if case.kind != "garbage" and case.holder is not None:
        return "growing_attribute", f"drop or detach what was kept before the next step adds to it{at(case)}"
    return None


def replaced(case: Case) -> Found:
    if case.pattern != "replaced" and not (
        case.kind == "held" and case.held_by_base("_io.BytesIO", "_io.StringIO")
    ):
        return None
    fix = "keep only the part that is needed, such as the last rows, or write the parts to disk as they come"
    return "growing_buffer", f"{fix}{at(case)}"


def collects(case: Case) -> bool:
    """True if the holder is a container, by its type or by one of its bases.

    The dict of a thread's attributes is none.
    """
    if case.depth > 0 and case.path[case.depth - 1].edge == "threads":
        return False
    if case.holder is not None and is_object_array(case.path, case.depth):
        return True
    return not case.holder_bases.isdisjoint(CONTAINERS)


def is_object_array(path: Path, at: int) -> bool:
    """True for an array that refers to what stands below it as a list does."""
    return is_a(path[at], "numpy.ndarray") and any(n.edge in ITEM_EDGES for n in path[at + 1 :][:1])


def is_short(case: Case) -> bool:
    """True for a container with far fewer items than steps made such: what these collect in turn is theirs,
    as that of a list for each epoch is.
    """
    length = case.holder.length if case.holder is not None else None
    steps = case.steps if case.item_steps is None else case.item_steps
    return length is not None and not case.several and case.steps >= AGREEING and length < HALF * steps
