"""Tables, caches and registries that get an entry a step."""

import itertools

from leakprobe.judge.causes.case import NAMED_EDGES, Case, Found, at, is_a, is_attribute, is_one, name_of
from leakprobe.judge.causes.hooks import OPTIMIZER
from leakprobe.model.entry import PathNode

LRU = "functools._lru_cache_wrapper"
ARRAYS = ("torch.Tensor", "numpy.ndarray")
TEES = ("itertools._tee", "itertools._tee_dataobject", "itertools.tee")
#: Values that make good keys.
PLAIN = ("str", "bytes", "int", "float", "complex", "frozenset", "NoneType")


def lru(case: Case) -> Found:
    if not case.has_type(LRU):
        return None
    if on_method(case):
        fix = "cache per instance (functools.cached_property, a dict on the instance), not on the method"
        return "lru_cache_on_method", f"{fix}{at(case)}"
    return (
        "unbounded_cache",
        f"give the cache a maxsize, or key it by values rather than by objects{at(case)}",
    )


def on_method(case: Case) -> bool:
    """True for a cache that is an attribute of a class."""
    for before, node in itertools.pairwise(case.path):
        if is_a(node, LRU):
            return node.edge == "class attribute" or is_a(before, "type")
    return False


def optimizer(case: Case) -> Found:
    """A row for each parameter, in its groups or in its state; what one parameter's state collects is a
    container like another.
    """
    pairs = list(itertools.pairwise(case.above))
    in_groups = any(is_attribute(owner, node, ("param_groups",), OPTIMIZER) for owner, node in pairs)
    if not in_groups and not (pairs and is_attribute(*pairs[-1], ("state",), OPTIMIZER)):
        return None
    return (
        "optimizer_state",
        f"create a new optimizer, or delete the group and its state, when parameters are replaced{at(case)}",
    )


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
