"""Why something grows and how to mend it: one small rule per mechanism, by the shape of the path.

A rule looks at a Case (types, edges and media along the retention path) and gives a
``(cause, fix)`` or None; the first that fits wins.  No rule knows names of user code.
The closed list of causes is CAUSES of leakprobe/model/causes.py.
"""

import dataclasses
import functools
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from leakprobe.model.entry import Holder, Kind, Path, PathNode
from leakprobe.model.frames import FrameTuple, is_user_file


@dataclasses.dataclass(frozen=True)
class Case:
    """What the rules may look at."""

    kind: Kind
    pattern: str
    path: Path
    holder: Holder | None
    media: frozenset[str]
    types: frozenset[str]
    line: str | None  # "train.py:61" where the holder grew or the growing thing was allocated
    collectable: bool | None = None  # of a cycle: whether the collector can free it
    cycle: Path = ()
    in_library: bool = False  # the path begins in a module that is not the user's own
    has_graph: bool = False  # a tensor below the holder has a grad_fn
    steps: int = 0  # in so many steps was something born that is alive
    stack: Sequence[FrameTuple] = ()  # of the line that grew the holder, or that allocated, innermost first
    several: bool = False  # the entry stands for several holders
    frozen: bool = False  # as many objects as are in these cycles were frozen (gc.freeze()) in the meantime

    @property
    def edges(self) -> list[str]:
        return [node.edge for node in self.path]

    @functools.cached_property
    def depth(self) -> int:
        """The place of the holder on the path; 0 if it is not there."""
        text = self.holder.text if self.holder is not None else ""
        for i in reversed(range(len(self.path))):
            if self.path[i].text == text:
                return i
            if i > 0 and f"{self.path[i].text} in {self.path[i - 1].text}" == text:
                return i - 1
        return 0

    @property
    def above(self) -> Path:
        """The path down to the holder; all of it where there is none."""
        return self.path[: self.depth + 1] if self.holder is not None else self.path

    @property
    def below(self) -> Path:
        """The path below the holder."""
        return self.path[self.depth + 1 :] if self.holder is not None else self.path

    @property
    def type_below(self) -> str | None:
        """The type of what the holder itself refers to, where the holder is known."""
        return self.below[0].type if self.holder is not None and self.below else None

    @property
    def holder_type(self) -> str:
        return self.holder.type if self.holder is not None else ""

    def has_type(self, *names: str) -> bool:
        """True if something on the path has a type whose name ends so."""
        return any(type_name(node).endswith(names) for node in self.path)

    def held_by_base(self, *names: str) -> bool:
        """True if the holder, or what leads to it, is an instance of such a class, given with its module."""
        return any(bases_of(type_name(node)) & set(names) for node in self.above)

    def on_cycle(self, *names: str) -> bool:
        """True if the cycle goes through a type whose name ends so."""
        return any(type_name(node).endswith(names) for node in self.cycle)


#: What a rule gives: the cause and the fix, or None.
Found = tuple[str, str] | None


def type_name(node: PathNode) -> str:
    return node.type or ""


@functools.lru_cache(maxsize=256)
def bases_of(name: str) -> frozenset[str]:
    """Names of a class and of its bases, found by its name without running its code; empty if it can't be
    found.
    """
    parts = name.split(".")
    found: Any = None
    for split in range(len(parts) - 1, 0, -1):
        found = sys.modules.get(".".join(parts[:split]))
        if found is not None:
            break
    for part in parts[split:] if found is not None else ():
        space = (
            type.__dict__["__dict__"].__get__(found)
            if isinstance(found, type)
            else getattr(found, "__dict__", {})
        )
        found = space.get(part)
    if not isinstance(found, type):
        return frozenset()
    return frozenset(
        f"{base.__module__}.{base.__qualname__}" for base in type.__dict__["__mro__"].__get__(found)
    )


def cause_of(case: Case) -> tuple[str, str | None]:
    """The cause (a key of CAUSES) and the fix in one sentence, or ("unknown", None)."""
    for rule in RULES:
        found = rule(case)
        if found is not None:
            return found
    return "unknown", None


def at(case: Case) -> str:
    return f", {case.line}" if case.line else ""


# ---- cycles ----


def cpp_cycle(case: Case) -> Found:
    if case.kind != "garbage" or case.collectable is not False:
        return None
    if hooked(case.cycle):
        fix = "let the hook take a detached tensor or a weak reference instead of the tensor it is registered on"
    elif any(is_array(p) for p in case.cycle):
        fix = "keep the objects in lists instead of an object array, or let them refer to their owner weakly"
    else:
        fix = "break the cycle by hand when the step ends (x.grad = None, or detach what is kept): the collector can't"
    return "cpp_reference_cycle", f"{fix}{at(case)}"


def frozen_cycle(case: Case) -> Found:
    if case.kind != "garbage" or not case.frozen:
        return None
    return "frozen_garbage", f"call gc.collect() before gc.freeze(), and freeze only once{at(case)}"


def frame_cycle(case: Case) -> Found:
    if case.kind != "garbage" or not case.on_cycle("traceback", "frame"):
        return None
    return (
        "cycle_through_frame",
        f"del the local that holds the exception when it is done with (try: ... finally: del err){at(case)}",
    )


def hook_cycle(case: Case) -> Found:
    if case.kind != "garbage" or not hooked(case.cycle):
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


def hooked(path: Iterable[PathNode | Holder]) -> bool:
    return any("hook" in p.text.lower().split(" ")[0] for p in path)


def is_torch(node: PathNode) -> bool:
    return type_name(node).startswith("torch.") or type_name(node).endswith("Backward0")


def is_array(node: PathNode) -> bool:
    return type_name(node).endswith("ndarray")


# ---- what is never ended or closed ----


def task(case: Case) -> Found:
    if not (case.has_type("_asyncio.Task", "asyncio.tasks.Task", "futures._base.Future", "_asyncio.Future")):
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
    if not any(bases_of(type_name(p)) & set(ends) for p in case.below):
        return None
    return (
        "never_ended",
        f"end what is begun in each step and wait for it (shutdown(), join()), or make one and use it again{at(case)}",
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
    below = [*(type_name(p) for p in case.below), *case.types]
    memory = {"_io.BytesIO", "_io.StringIO"}
    if not any(bases_of(t) & set(files) and not bases_of(t) & memory for t in below):
        return None
    return "never_closed", f"close it when it is done with, best by a with statement{at(case)}"


# ---- tables, caches, registries ----


def lru(case: Case) -> Found:
    if not case.has_type("_lru_cache_wrapper"):
        return None
    if on_method(case):
        fix = "cache per instance (functools.cached_property, a dict of the instance), not on the method"
        return "lru_cache_on_method", f"{fix}{at(case)}"
    return (
        "unbounded_cache",
        f"give the cache a maxsize, or key it by values rather than by objects{at(case)}",
    )


def on_method(case: Case) -> bool:
    """True for a cache that is an attribute of a class."""
    for before, node in zip(case.path, case.path[1:]):
        if type_name(node).endswith("_lru_cache_wrapper"):
            return node.edge == "class attribute" or "class " in before.text
    return False


def optimizer(case: Case) -> Found:
    if not case.held_by_base("torch.optim.optimizer.Optimizer"):
        return None
    return (
        "optimizer_state",
        f"make the optimizer anew, or delete the group and its state, when parameters are replaced{at(case)}",
    )


def hook(case: Case) -> Found:
    if not (
        hooked(case.above)
        or (case.holder is not None and hooked([case.holder]))
        or case.has_type("RemovableHandle")
        or is_called_as_hook(case.stack)
    ):
        return None
    return "hook_kept", f"keep the handle and call handle.remove(), and let the hook store nothing{at(case)}"


def is_called_as_hook(stack: Sequence[FrameTuple]) -> bool:
    """True if torch calls the innermost function beside a module's forward, or from inside of a backward
    pass.
    """
    if (
        len(stack) < 2
        or not is_user_file(stack[0][0])
        or stack[0][2].rpartition(".")[2] in ("forward", "backward")
    ):
        return False
    caller, function = stack[1][0].replace("\\", "/"), stack[1][2].rpartition(".")[2]
    by_module = caller.endswith("torch/nn/modules/module.py") and function in ("_call_impl", "inner")
    return by_module or (caller.endswith("torch/autograd/graph.py") and function == "_engine_run_backward")


def kept_traceback(case: Case) -> Found:
    if not (
        case.has_type("traceback", "TracebackException") or any(t.endswith("traceback") for t in case.types)
    ):
        return None
    return (
        "traceback_kept",
        f"keep str(error), or clear the frames with traceback.clear_frames(), not the exception itself{at(case)}",
    )


def classes(case: Case) -> Found:
    if case.type_below != "type":
        return None
    return "class_per_step", f"define the class once, at the top of the module{at(case)}"


def queue(case: Case) -> Found:
    queues = (
        "queue.Queue",
        "queue.LifoQueue",
        "queue.PriorityQueue",
        "_queue.SimpleQueue",
        "queue.SimpleQueue",
        "multiprocessing.queues.Queue",
        "asyncio.queues.Queue",
    )
    if not case.held_by_base(*queues):
        return None
    return "queue_not_emptied", f"take out what is put in, or give the queue a maxsize{at(case)}"


def iterator(case: Case) -> Found:
    if not case.has_type(
        "itertools.cycle", "itertools._tee", "itertools._tee_dataobject", "itertools.tee", "itertools.groupby"
    ):
        return None
    return (
        "buffering_iterator",
        f"begin the iterator anew (for ... in loader) instead of itertools.cycle or tee, which keep every item{at(case)}",
    )


def memo(case: Case) -> Found:
    if not case.has_type("Pickler", "Unpickler"):
        return None
    return (
        "unbounded_cache",
        f"call clear_memo() after each dump, or make a pickler anew: its memo keeps every object{at(case)}",
    )


def keyed(case: Case) -> Found:
    """The growing thing is the key itself, and is no plain value."""
    kind = case.type_below
    if not kind or case.below[0].edge != ("set item" if case.holder_type == "set" else "key"):
        return None
    if kind in PLAIN or (kind == "tuple" and not any(is_torch(p) for p in case.below[1:2])):
        return None
    return (
        "cache_keyed_by_objects",
        f"use a plain value as the key (x.item(), a name, an index), not the tensor or object{at(case)}",
    )


def handlers(case: Case) -> Found:
    if not case.held_by_base("logging.Logger"):
        return None
    return (
        "library_registry",
        f"add a handler or filter to a logger once, or take it back (removeHandler, removeFilter){at(case)}",
    )


def registry(case: Case) -> Found:
    if not case.in_library and not any("__warningregistry__" in p.text for p in case.path):
        return None
    if case.kind != "held" or case.path[0].edge != "module":
        return None
    root = case.path[0].text
    table = ((case.holder.text if case.holder is not None else "") or root).split(" ")[0].lstrip(".")
    fix = f"register once, with a constant name, or take the entry back: '{table}' of {root} keeps one of each step"
    return "library_registry", f"{fix}{at(case)}"


# ---- tensors and arrays ----


def graph(case: Case) -> Found:
    if not passes_graph(case):
        return None
    if collects(case) and not is_short(case):
        return "graph_kept", f"keep loss.item() or tensor.detach(), not the tensor with its graph{at(case)}"
    return "graph_chain", f"add loss.item(), or detach() the state before the next step{at(case)}"


def kept_tensor_with_graph(case: Case) -> Found:
    """A growing tensor has a grad_fn although the path shown does not go through it.

    What a module keeps of its own outputs is theirs first: without the graph most of it would still grow.
    """
    if (
        case.kind == "held"
        and not case.held_by_base("torch.nn.modules.module.Module")
        and (case.has_graph or any(t.endswith("Backward0") for t in case.types))
    ):
        return "graph_kept", f"keep loss.item() or tensor.detach(), not the tensor with its graph{at(case)}"
    return None


def view(case: Case) -> Found:
    edges = case.edges
    if any(e == "base" or e.endswith("_base") for e in edges):
        if case.media & {"shared", "pinned"}:
            fix = "copy what is kept of a batch (x.clone(), x.copy()): .cpu() and .numpy() of a CPU tensor copy nothing"
            return "batch_memory_kept", f"{fix}{at(case)}"
        return (
            "view_of_large_base",
            f"copy what is needed (x.copy(), x.clone()) instead of keeping a view{at(case)}",
        )
    if case.media & {"shared", "pinned"}:
        fix = "copy what is kept of a batch (x.clone(), x.copy()): .cpu() and .numpy() of a CPU tensor copy nothing"
        return "batch_memory_kept", f"{fix}{at(case)}"
    if case.below and case.below[0].type == "memoryview":
        return (
            "view_of_large_base",
            f"keep bytes(view) of the part that is needed: a memoryview keeps all that it was cut from{at(case)}",
        )
    if case.has_type("ndarray") and "cpu" in case.media:
        return (
            "view_of_large_base",
            f"copy what is needed (x.copy(), x.clone()) instead of keeping a view{at(case)}",
        )
    return None


def replaced(case: Case) -> Found:
    if case.pattern != "replaced" and not (
        case.kind == "held" and case.held_by_base("_io.BytesIO", "_io.StringIO")
    ):
        return None
    return "growing_buffer", f"collect the parts outside, or write them to disk as they come{at(case)}"


# ---- containers ----


def module_attribute(case: Case) -> Found:
    if not case.held_by_base("torch.nn.modules.module.Module"):
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
    if case.kind == "held" and case.holder is not None:
        return "growing_attribute", f"drop or detach what was kept before the next step adds to it{at(case)}"
    return None


def lost(case: Case) -> Found:
    if case.kind != "lost":
        return None
    return "lost_reference", f"look for a missing Py_DECREF in the native code that met it last{at(case)}"


def outside(case: Case) -> Found:
    if case.kind != "outside":
        return None
    fix = "keep what the native call takes alive only as long as it is used; if it caches by object, make the object once"
    return "held_outside_python", f"{fix}{at(case)}"


CONTAINERS = {
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
PLAIN = {"str", "bytes", "int", "float", "bool", "complex", "frozenset", "NoneType"}


def collects(case: Case) -> bool:
    """True if the holder is a container, by its type or by one of its bases."""
    kind = case.holder_type
    return kind in CONTAINERS or bool(
        bases_of(kind) & {f"builtins.{n}" for n in CONTAINERS} | bases_of(kind) & CONTAINERS
    )


def is_short(case: Case) -> bool:
    """True for a container with far fewer items than steps left something below it."""
    length = case.holder.length if case.holder is not None else None
    return length is not None and not case.several and case.steps >= 4 and 2 * length < case.steps


def passes_graph(case: Case) -> bool:
    return any("grad_fn" in e or "next_functions" in e or "saved" in e for e in case.edges)


RULES: list[Callable[[Case], Found]] = [
    lost,
    cpp_cycle,
    frozen_cycle,
    frame_cycle,
    hook_cycle,
    callback_cycle,
    cycle,
    replaced,
    lru,
    memo,
    task,
    thread,
    closing,
    optimizer,
    kept_traceback,
    hook,
    classes,
    queue,
    iterator,
    keyed,
    graph,
    kept_tensor_with_graph,
    view,
    handlers,
    registry,
    module_attribute,
    container,
    attribute,
    outside,
]
