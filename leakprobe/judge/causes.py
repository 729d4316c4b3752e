"""Why something grows and how to mend it: one small rule per mechanism, by the shape of the path.

A rule looks at an Entry (types, edges and media along the retention path) and gives a
``(cause, fix)`` or None; the first that fits wins.  No rule knows names of user code.
The closed list of causes is CAUSES of leakprobe/model/causes.py.
"""

import dataclasses
import functools
import sys

from leakprobe.model.frames import is_user_file


@dataclasses.dataclass(frozen=True)
class Entry:
    """What the rules may look at."""

    kind: str  # held | outside | garbage | lost
    pattern: str
    path: tuple  # dicts with text, edge, type
    holder: dict | None
    media: frozenset
    types: frozenset
    line: str | None  # "train.py:61" where the holder grew or the growing thing was allocated
    collectable: bool | None = None  # of a cycle: whether the collector can free it
    cycle: tuple = ()  # like path
    in_library: bool = False  # the path begins in a module that is not the user's own
    has_graph: bool = False  # a tensor below the holder has a grad_fn
    steps: int = 0  # in so many steps was something born that is alive
    stack: tuple = ()  # (filename, lineno, function) of the line that grew the holder, or that allocated, innermost first
    several: bool = False  # the entry stands for several holders
    frozen: bool = False  # as many objects as are in these cycles were frozen (gc.freeze()) in the meantime

    def edges(self):
        return [str(p.get("edge") or "") for p in self.path]

    @functools.cached_property
    def depth(self) -> int:
        """The place of the holder on the path; 0 if it is not there."""
        text = str((self.holder or {}).get("text") or "")
        for i in reversed(range(len(self.path))):
            if self.path[i].get("text") == text:
                return i
            if i > 0 and f"{self.path[i].get('text')} in {self.path[i - 1].get('text')}" == text:
                return i - 1
        return 0

    @property
    def above(self) -> tuple:
        """The path down to the holder; all of it where there is none."""
        return self.path[: self.depth + 1] if self.holder else self.path

    @property
    def below(self) -> tuple:
        """The path below the holder."""
        return self.path[self.depth + 1 :] if self.holder else self.path

    def has_type(self, *names) -> bool:
        """True if something on the path has a type whose name ends so."""
        return any(str(p.get("type") or "").endswith(names) for p in self.path)

    def held_by_base(self, *names) -> bool:
        """True if the holder, or what leads to it, is an instance of such a class, given with its module."""
        return any(bases_of(str(p.get("type") or "")) & set(names) for p in self.above)

    def on_cycle(self, *names) -> bool:
        """True if the cycle goes through a type whose name ends so."""
        return any(str(p.get("type") or "").endswith(names) for p in self.cycle)


@functools.lru_cache(maxsize=256)
def bases_of(type_name: str) -> frozenset:
    """Names of a class and of its bases, found by its name without running its code; empty if it can't be found."""
    found, parts = None, type_name.split(".")
    for split in range(len(parts) - 1, 0, -1):
        found = sys.modules.get(".".join(parts[:split]))
        if found is not None:
            break
    for name in parts[split:] if found is not None else ():
        space = (
            type.__dict__["__dict__"].__get__(found)
            if isinstance(found, type)
            else getattr(found, "__dict__", {})
        )
        found = space.get(name)
    if not isinstance(found, type):
        return frozenset()
    return frozenset(
        f"{base.__module__}.{base.__qualname__}" for base in type.__dict__["__mro__"].__get__(found)
    )


def cause_of(entry: Entry) -> tuple[str, str | None]:
    """The cause (a key of CAUSES) and the fix in one sentence, or ("unknown", None)."""
    for rule in RULES:
        found = rule(entry)
        if found is not None:
            return found
    return "unknown", None


def at(entry: Entry) -> str:
    return f", {entry.line}" if entry.line else ""


# ---- cycles ----


def cpp_cycle(entry):
    if entry.kind != "garbage" or entry.collectable is not False:
        return None
    if hooked(entry.cycle):
        fix = "let the hook take a detached tensor or a weak reference instead of the tensor it is registered on"
    elif any(is_array(p) for p in entry.cycle):
        fix = "keep the objects in lists instead of an object array, or let them refer to their owner weakly"
    else:
        fix = "break the cycle by hand when the step ends (x.grad = None, or detach what is kept): the collector can't"
    return "cpp_reference_cycle", f"{fix}{at(entry)}"


def frozen_cycle(entry):
    if entry.kind != "garbage" or not entry.frozen:
        return None
    return "frozen_garbage", f"call gc.collect() before gc.freeze(), and freeze only once{at(entry)}"


def frame_cycle(entry):
    if entry.kind != "garbage" or not entry.on_cycle("traceback", "frame"):
        return None
    return (
        "cycle_through_frame",
        f"del the local that holds the exception when it is done with (try: ... finally: del err){at(entry)}",
    )


def hook_cycle(entry):
    if entry.kind != "garbage" or not hooked(entry.cycle):
        return None
    return "cycle_through_hook", f"remove the hook's handle, or let the hook take a weak reference{at(entry)}"


def callback_cycle(entry):
    if entry.kind != "garbage" or not entry.on_cycle("function", "method", "functools.partial", "cell"):
        return None
    return (
        "cycle_through_callback",
        f"give the callback the value it needs, or a weak reference, instead of the object itself{at(entry)}",
    )


def cycle(entry):
    if entry.kind != "garbage":
        return None
    return (
        "reference_cycle",
        f"break the cycle when the step ends, or hold one of its references weakly{at(entry)}",
    )


def hooked(path) -> bool:
    return any("hook" in str(p.get("text") or "").lower().split(" ")[0] for p in path)


def is_torch(element) -> bool:
    return str(element.get("type") or "").startswith("torch.") or str(element.get("type") or "").endswith(
        "Backward0"
    )


def is_array(element) -> bool:
    return str(element.get("type") or "").endswith("ndarray")


# ---- what is never ended or closed ----


def task(entry):
    if not (entry.has_type("_asyncio.Task", "asyncio.tasks.Task", "futures._base.Future", "_asyncio.Future")):
        return None
    if entry.in_library:
        return "never_ended", f"end, await or cancel the task that is begun in each step{at(entry)}"
    return (
        "task_kept",
        f"take the result and drop the task: discard it when it is done (add_done_callback){at(entry)}",
    )


def thread(entry):
    ends = (
        "threading.Thread",
        "threading.Timer",
        "multiprocessing.process.BaseProcess",
        "subprocess.Popen",
        "concurrent.futures.thread.ThreadPoolExecutor",
        "concurrent.futures.process.ProcessPoolExecutor",
        "torch.utils.data.dataloader._MultiProcessingDataLoaderIter",
    )
    if not any(bases_of(str(p.get("type") or "")) & set(ends) for p in entry.below):
        return None
    return (
        "never_ended",
        f"end what is begun in each step and wait for it (shutdown(), join()), or make one and use it again{at(entry)}",
    )


def closing(entry):
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
    below = [*(str(p.get("type") or "") for p in entry.below), *entry.types]
    memory = {"_io.BytesIO", "_io.StringIO"}
    if not any(bases_of(t) & set(files) and not bases_of(t) & memory for t in below):
        return None
    return "never_closed", f"close it when it is done with, best by a with statement{at(entry)}"


# ---- tables, caches, registries ----


def lru(entry):
    if not entry.has_type("_lru_cache_wrapper"):
        return None
    if on_method(entry):
        fix = "cache per instance (functools.cached_property, a dict of the instance), not on the method"
        return "lru_cache_on_method", f"{fix}{at(entry)}"
    return (
        "unbounded_cache",
        f"give the cache a maxsize, or key it by values rather than by objects{at(entry)}",
    )


def on_method(entry) -> bool:
    """True for a cache that is an attribute of a class."""
    for before, element in zip(entry.path, entry.path[1:]):
        if str(element.get("type") or "").endswith("_lru_cache_wrapper"):
            return (
                element.get("edge") == "class attribute" or str(before.get("text") or "").find("class ") >= 0
            )
    return False


def optimizer(entry):
    if not entry.held_by_base("torch.optim.optimizer.Optimizer"):
        return None
    return (
        "optimizer_state",
        f"make the optimizer anew, or delete the group and its state, when parameters are replaced{at(entry)}",
    )


def hook(entry):
    if not (
        hooked(entry.above)
        or hooked([entry.holder or {}])
        or entry.has_type("RemovableHandle")
        or is_called_as_hook(entry.stack)
    ):
        return None
    return "hook_kept", f"keep the handle and call handle.remove(), and let the hook store nothing{at(entry)}"


def is_called_as_hook(stack) -> bool:
    """True if torch calls the innermost function beside a module's forward, or from inside of a backward pass."""
    if (
        len(stack) < 2
        or not is_user_file(stack[0][0])
        or stack[0][2].rpartition(".")[2] in ("forward", "backward")
    ):
        return False
    caller, function = stack[1][0].replace("\\", "/"), stack[1][2].rpartition(".")[2]
    by_module = caller.endswith("torch/nn/modules/module.py") and function in ("_call_impl", "inner")
    return by_module or (caller.endswith("torch/autograd/graph.py") and function == "_engine_run_backward")


def kept_traceback(entry):
    if not (
        entry.has_type("traceback", "TracebackException") or any(t.endswith("traceback") for t in entry.types)
    ):
        return None
    return (
        "traceback_kept",
        f"keep str(error), or clear the frames with traceback.clear_frames(), not the exception itself{at(entry)}",
    )


def classes(entry):
    if entry.holder is None or not entry.below or entry.below[0].get("type") != "type":
        return None
    return "class_per_step", f"define the class once, at the top of the module{at(entry)}"


def queue(entry):
    queues = (
        "queue.Queue",
        "queue.LifoQueue",
        "queue.PriorityQueue",
        "_queue.SimpleQueue",
        "queue.SimpleQueue",
        "multiprocessing.queues.Queue",
        "asyncio.queues.Queue",
    )
    if not entry.held_by_base(*queues):
        return None
    return "queue_not_emptied", f"take out what is put in, or give the queue a maxsize{at(entry)}"


def iterator(entry):
    if not entry.has_type(
        "itertools.cycle", "itertools._tee", "itertools._tee_dataobject", "itertools.tee", "itertools.groupby"
    ):
        return None
    return (
        "buffering_iterator",
        f"begin the iterator anew (for ... in loader) instead of itertools.cycle or tee, which keep every item{at(entry)}",
    )


def memo(entry):
    if not entry.has_type("Pickler", "Unpickler"):
        return None
    return (
        "unbounded_cache",
        f"call clear_memo() after each dump, or make a pickler anew: its memo keeps every object{at(entry)}",
    )


def keyed(entry):
    """The growing thing is the key itself, and is no plain value."""
    edge = "set item" if (entry.holder or {}).get("type") == "set" else "key"
    key = entry.below[0] if entry.holder and entry.below and entry.below[0].get("edge") == edge else {}
    is_plain = key.get("type") in PLAIN or (
        key.get("type") == "tuple" and not any(is_torch(p) for p in entry.below[1:2])
    )
    if not key.get("type") or is_plain:
        return None
    return (
        "cache_keyed_by_objects",
        f"use a plain value as the key (x.item(), a name, an index), not the tensor or object{at(entry)}",
    )


def handlers(entry):
    if not entry.held_by_base("logging.Logger"):
        return None
    return (
        "library_registry",
        f"add a handler or filter to a logger once, or take it back (removeHandler, removeFilter){at(entry)}",
    )


def registry(entry):
    if not entry.in_library and not any("__warningregistry__" in str(p.get("text")) for p in entry.path):
        return None
    if entry.kind != "held" or entry.path[0].get("edge") != "module":
        return None
    table = str((entry.holder or {}).get("text") or entry.path[0].get("text")).split(" ")[0].lstrip(".")
    fix = f"register once, with a constant name, or take the entry back: '{table}' of {entry.path[0].get('text')} keeps one of each step"
    return "library_registry", f"{fix}{at(entry)}"


# ---- tensors and arrays ----


def graph(entry):
    if not passes_graph(entry):
        return None
    if collects(entry) and not is_short(entry):
        return "graph_kept", f"keep loss.item() or tensor.detach(), not the tensor with its graph{at(entry)}"
    return "graph_chain", f"add loss.item(), or detach() the state before the next step{at(entry)}"


def kept_tensor_with_graph(entry):
    """A growing tensor has a grad_fn although the path shown does not go through it.

    What a module keeps of its own outputs is theirs first: without the graph most of it would still grow.
    """
    if (
        entry.kind == "held"
        and not entry.held_by_base("torch.nn.modules.module.Module")
        and (entry.has_graph or any(t.endswith("Backward0") for t in entry.types))
    ):
        return "graph_kept", f"keep loss.item() or tensor.detach(), not the tensor with its graph{at(entry)}"
    return None


def view(entry):
    edges = entry.edges()
    if any(e == "base" or e.endswith("_base") for e in edges):
        if entry.media & {"shared", "pinned"}:
            fix = "copy what is kept of a batch (x.clone(), x.copy()): .cpu() and .numpy() of a CPU tensor copy nothing"
            return "batch_memory_kept", f"{fix}{at(entry)}"
        return (
            "view_of_large_base",
            f"copy what is needed (x.copy(), x.clone()) instead of keeping a view{at(entry)}",
        )
    if entry.media & {"shared", "pinned"}:
        fix = "copy what is kept of a batch (x.clone(), x.copy()): .cpu() and .numpy() of a CPU tensor copy nothing"
        return "batch_memory_kept", f"{fix}{at(entry)}"
    if entry.below and entry.below[0].get("type") == "memoryview":
        return (
            "view_of_large_base",
            f"keep bytes(view) of the part that is needed: a memoryview keeps all that it was cut from{at(entry)}",
        )
    if entry.has_type("ndarray") and "cpu" in entry.media:
        return (
            "view_of_large_base",
            f"copy what is needed (x.copy(), x.clone()) instead of keeping a view{at(entry)}",
        )
    return None


def replaced(entry):
    if entry.pattern != "replaced" and not (
        entry.kind == "held" and entry.held_by_base("_io.BytesIO", "_io.StringIO")
    ):
        return None
    return "growing_buffer", f"collect the parts outside, or write them to disk as they come{at(entry)}"


# ---- containers ----


def module_attribute(entry):
    if not entry.held_by_base("torch.nn.modules.module.Module"):
        return None
    return "module_attribute", f"keep only the last, detached, or empty it when the epoch ends{at(entry)}"


def container(entry):
    if not collects(entry) or is_short(entry):
        return None
    return (
        "growing_container",
        f"empty it when the epoch ends, give it a bound, or keep plain numbers{at(entry)}",
    )


def attribute(entry):
    if entry.kind == "held" and entry.holder is not None:
        return "growing_attribute", f"drop or detach what was kept before the next step adds to it{at(entry)}"
    return None


def lost(entry):
    if entry.kind != "lost":
        return None
    return "lost_reference", f"look for a missing Py_DECREF in the native code that met it last{at(entry)}"


def outside(entry):
    if entry.kind != "outside":
        return None
    fix = "keep what the native call takes alive only as long as it is used; if it caches by object, make the object once"
    return "held_outside_python", f"{fix}{at(entry)}"


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


def collects(entry) -> bool:
    """True if the holder is a container, by its type or by one of its bases."""
    kind = str((entry.holder or {}).get("type") or "")
    return kind in CONTAINERS or bool(
        bases_of(kind) & {f"builtins.{n}" for n in CONTAINERS} | bases_of(kind) & CONTAINERS
    )


def is_short(entry) -> bool:
    """True for a container with far fewer items than steps left something below it."""
    length = (entry.holder or {}).get("length")
    return length is not None and not entry.several and entry.steps >= 4 and 2 * length < entry.steps


def passes_graph(entry) -> bool:
    return any("grad_fn" in e or "next_functions" in e or "saved" in e for e in entry.edges())


RULES = [
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
