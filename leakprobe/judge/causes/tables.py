"""Tables, caches and registries that get an entry a step."""

import itertools
from collections.abc import Iterable

from leakprobe.judge.causes.case import (
    NAMED_EDGES,
    Case,
    Found,
    at,
    bases,
    bases_of,
    is_a,
    is_attribute,
    is_one,
    name_of,
)
from leakprobe.judge.causes.containers import is_short
from leakprobe.judge.causes.hooks import OPTIMIZER
from leakprobe.model.entry import Path, PathNode

LRU = "functools._lru_cache_wrapper"
ARRAYS = ("torch.Tensor", "numpy.ndarray")
TEES = ("itertools._tee", "itertools._tee_dataobject", "itertools.tee")
#: What leads from an optimizer's groups to the parameters of one.
ROW = ("group", "parameters")
#: Values that make good keys.
PLAIN = ("str", "bytes", "int", "float", "complex", "frozenset", "NoneType")


def lru(case: Case) -> Found:
    if not case.has_type(LRU):
        return None
    if is_on_method(case):
        fix = "give the cache a maxsize; on a method it also keeps each instance that it was called on"
        if keeps_instances(case):
            fix = "cache per instance (functools.cached_property, a dict on the instance), not on the method"
        return "lru_cache_on_method", f"{fix}{at(case)}"
    return (
        "unbounded_cache",
        f"give the cache a maxsize, or key it by values rather than by objects{at(case)}",
    )


def place_of_cache(case: Case) -> int:
    """The index of the cache in the path; 0 if none is in it, or at its root."""
    return next((i for i, node in enumerate(case.path) if is_a(node, LRU)), 0)


def is_on_method(case: Case) -> bool:
    """True for a cache that is an attribute of a class."""
    at_cache = place_of_cache(case)
    if not at_cache:
        return False
    owner, cache = case.path[at_cache - 1 : at_cache + 1]
    return cache.edge == "class attribute" or is_a(owner, "type")


def keeps_instances(case: Case) -> bool:
    """True if what grows in the cache of a method are instances of its class.

    New arguments of one instance fill a cache as those of a function do.
    """
    owner, cache, *below = case.path[place_of_cache(case) - 1 :]
    name = owner.text.rpartition("class ")[-1]
    key, *arguments = below or [cache]
    if is_a(key, "tuple") and arguments:
        return is_instance(bases(arguments[0]), name)
    # the path shown leads to a value: then instances are among what grows
    return not is_instance(bases(key), name) and any(is_instance(bases_of(t), name) for t in case.types)


def is_instance(names: Iterable[str], class_name: str) -> bool:
    """True if one of the names, with their modules, is that of the class."""
    return any(name == class_name or name.endswith(f".{class_name}") for name in names)


def optimizer(case: Case) -> Found:
    """A row for each parameter, in its groups or in its state; what one parameter's state collects is a
    container like another.
    """
    pairs = list(itertools.pairwise(case.above))
    in_state = bool(pairs) and is_attribute(*pairs[-1], ("state",), OPTIMIZER)
    if not in_state and (not is_of_groups(case.above) or is_short(case)):
        return None
    return (
        "optimizer_state",
        f"create a new optimizer, or delete the group and its state, when parameters are replaced{at(case)}",
    )


def is_of_groups(path: Path) -> bool:
    """True if a path ends at the groups of an optimizer, at one of them, or at the parameters of one: what a
    parameter keeps is its own.
    """
    pairs = list(itertools.pairwise(path))
    at = next((i for i, pair in enumerate(pairs, 1) if is_attribute(*pair, ("param_groups",), OPTIMIZER)), 0)
    below = path[at + 1 :]
    is_row = [is_a(node, "dict") for node in below[:1]] + [
        name_of(node) == "['params']" for node in below[1:]
    ]
    return at > 0 and len(below) <= len(ROW) and all(is_row)


def kept_traceback(case: Case) -> Found:
    if not (
        case.has_type("traceback", "traceback.TracebackException", "traceback.FrameSummary")
        or any(is_one(t, ("traceback",)) for t in case.types)
    ):
        return None
    return (
        "traceback_kept",
        (
            "keep str(error), or clear the frames with traceback.clear_frames(), not the exception "
            f"itself{at(case)}"
        ),
    )


def classes(case: Case) -> Found:
    """Each item is a class, or an instance of a class of its own."""
    if case.holder is None or not any(is_a(node, "type") for node in case.below):
        return None
    return "class_per_step", f"define the class once, at the top of the module{at(case)}"


def queue(case: Case) -> Found:
    queues = (
        "queue.Queue",
        "queue.LifoQueue",
        "queue.PriorityQueue",
        "multiprocessing.queues.Queue",
        "asyncio.queues.Queue",
    )
    inner = ("queue", "_queue", "_buffer")
    # a deque that a thread was given is taken from there, as multiprocessing's feeder does
    of_thread = ("_args", "_kwargs")
    if not (
        case.held_by_base("_queue.SimpleQueue", "queue._PySimpleQueue")
        or any(is_attribute(owner, node, inner, *queues) for owner, node in itertools.pairwise(case.above))
        or (
            case.held_by_base("collections.deque")
            and any(
                is_attribute(a, b, of_thread, "threading.Thread") for a, b in itertools.pairwise(case.above)
            )
        )
    ):
        return None
    fix = "take items out as fast as they are put in, or give the queue a maxsize"
    return "queue_not_emptied", f"{fix}{at(case)}"


def iterator(case: Case) -> Found:
    behind = next((node for node in case.path if is_a(node, *TEES)), None)
    if behind is not None:
        name = f"'{name_of(behind)}'" if behind.edge in NAMED_EDGES else "one of its iterators"
        fix = (
            "drop the iterator that is behind, or read it as far as the others: itertools.tee keeps what "
            f"{name} has not produced yet"
        )
        return "buffering_iterator", f"{fix}{at(case)}"
    if not case.has_type("itertools.cycle", "itertools.groupby", "itertools._grouper"):
        return None
    return (
        "buffering_iterator",
        (
            "start a new iterator (for ... in loader) instead of using itertools.cycle or groupby, which "
            f"keep every item{at(case)}"
        ),
    )


def memo(case: Case) -> Found:
    if not case.has_type("_pickle.Pickler", "_pickle.Unpickler", "pickle._Pickler", "pickle._Unpickler"):
        return None
    return (
        "unbounded_cache",
        f"call clear_memo() after each dump, or create a new pickler: its memo keeps every object{at(case)}",
    )


def keyed(case: Case) -> Found:
    """The growing thing is the key itself, and is no plain value; a set of objects is none for look-ups,
    one of tensors never finds the same again.
    """
    if case.holder is None or not case.below:
        return None
    key = case.below[0]
    if key.edge not in ("set item", "key") or is_a(key, *PLAIN):
        return None
    if key.edge == "set item" and not is_a(key, "tuple", *ARRAYS):
        return None
    if is_a(key, "tuple") and not any(is_a(p, *ARRAYS) for p in case.below[1:][:1]):
        return None
    return (
        "cache_keyed_by_objects",
        f"use a plain value as the key (x.item(), a name, an index), not the tensor or object{at(case)}",
    )


def handlers(case: Case) -> Found:
    """The list itself grows, not what one handler keeps."""
    names = ("handlers", "filters")
    last = list(itertools.pairwise(case.above))[-1:]
    if not any(is_attribute(owner, node, names, "logging.Filterer") for owner, node in last):
        return None
    return (
        "library_registry",
        f"add a handler or filter to a logger once, or remove it (removeHandler, removeFilter){at(case)}",
    )


def registry(case: Case) -> Found:
    if case.kind != "held" or not case.path or case.path[0].edge != "module":
        return None
    if not case.in_library and not any(is_warning_registry(p) for p in case.path):
        return None
    if any(is_a(node, "weakref.finalize._Info") for node in case.below[:1]):
        fix = (
            "give weakref.finalize() neither what a step makes nor a method of the object itself, or call or "
            "detach() the finalizer: it keeps its function and arguments until the object dies"
        )
        return "library_registry", f"{fix}{at(case)}"
    root = case.path[0].text
    table = ((case.holder.text if case.holder is not None else "") or root).split(" ")[0].lstrip(".")
    fix = (
        f"do this once, before the loop, or under a name that comes back, or remove the entry: '{table}' of "
        f"{root} keeps one from each step"
    )
    return "library_registry", f"{fix}{at(case)}"


def is_warning_registry(node: PathNode) -> bool:
    """The table that the warnings machinery makes in each module's globals."""
    return node.edge == "global" and name_of(node) == "__warningregistry__"
