"""Why something grows and how to mend it: one small rule per mechanism, by the shape of the path.

A rule looks at an Entry (types, edges and media along the retention path) and gives a
``(cause, fix)`` or None; the first that fits wins.  No rule knows names of user code.
The closed list of causes is CAUSES.
"""

import dataclasses

CAUSES = {
    "graph_kept": "a tensor is kept with its autograd graph",
    "graph_chain": "a running total or state is carried from step to step with its graph",
    "view_of_large_base": "a small view keeps the whole buffer it was cut from",
    "reference_cycle": "objects refer to each other in a cycle that waits for the garbage collector",
    "cpp_reference_cycle": "a cycle that goes through C++ and that the garbage collector cannot free",
    "unbounded_cache": "a cache without a bound keeps every entry",
    "lru_cache_on_method": "an lru_cache on a method keeps every instance it was called on",
    "hook_kept": "a hook is registered again and again, or keeps what it saw",
    "growing_container": "a container gets new items in every step and loses none",
    "growing_attribute": "an attribute collects what each step makes",
    "growing_buffer": "one buffer is replaced by a larger one in every step",
    "held_outside_python": "native code keeps it",
    "lost_reference": "nothing that is known refers to it: native code keeps it or has lost a reference",
    "never_closed": "a file, socket or segment is opened in each step and never closed",
    "never_ended": "a thread or process is begun in each step and never ends",
    "native_growth": "native code allocates memory that it does not free",
    "unknown": "unknown",
}


@dataclasses.dataclass(frozen=True)
class Entry:
    """What the rules may look at."""

    kind: str  # held | outside | garbage | lost
    pattern: str
    path: tuple  # dicts with text, edge, type
    holder: dict | None
    media: frozenset
    types: frozenset
    steps: int  # birth steps of what was traced
    line: str | None  # "train.py:61" where the holder grew or the growing thing was allocated

    def edges(self):
        return [str(p.get("edge") or "") for p in self.path]

    def has_type(self, *names) -> bool:
        return any(str(p.get("type") or "").endswith(names) for p in self.path)


def cause_of(entry: Entry) -> tuple[str, str | None]:
    """The cause (a key of CAUSES) and the fix in one sentence, or ("unknown", None)."""
    for rule in RULES:
        found = rule(entry)
        if found is not None:
            return found
    return "unknown", None


def at(entry: Entry) -> str:
    return f", {entry.line}" if entry.line else ""


def cycle(entry):
    if entry.kind != "garbage":
        return None
    return "reference_cycle", f"break the cycle when the step ends, or hold one of its references weakly{at(entry)}"


def lru_method(entry):
    if not entry.has_type("_lru_cache_wrapper"):
        return None
    return (
        "lru_cache_on_method" if any("instance" in e or "self" in e for e in entry.edges()) else "unbounded_cache",
        f"give the cache a maxsize, or key it by values rather than by objects{at(entry)}",
    )


def graph_chain(entry):
    if not passes_graph(entry):
        return None
    holder = entry.holder or {}
    if holder.get("type") in CONTAINERS and (holder.get("length") or 0) >= entry.steps:
        return "graph_kept", f"keep loss.item() or tensor.detach(), not the tensor with its graph{at(entry)}"
    return "graph_chain", f"add loss.item(), or detach() the state before the next step{at(entry)}"


def kept_tensor_with_graph(entry):
    """Every growing tensor has a grad_fn although the sampled path did not go through it."""
    if any(str(t).endswith("Backward0") for t in entry.types):
        return "graph_kept", f"keep loss.item() or tensor.detach(), not the tensor with its graph{at(entry)}"
    return None


def view(entry):
    edges = entry.edges()
    if any(e == "base" or e.endswith("_base") for e in edges) or (
        entry.has_type("ndarray") and "cpu" in entry.media or "shared" in entry.media
    ):
        return "view_of_large_base", f"copy what is needed (x.copy(), x.clone()) instead of keeping a view{at(entry)}"
    return None


def replaced(entry):
    if entry.pattern != "replaced":
        return None
    return "growing_buffer", f"collect the parts outside, or write them to disk as they come{at(entry)}"


def hook(entry):
    if any("hook" in str(p.get("text") or "").lower() for p in entry.path):
        return "hook_kept", f"keep the handle and call handle.remove(), and let the hook store nothing{at(entry)}"
    return None


def container(entry):
    holder = entry.holder or {}
    if holder.get("type") not in CONTAINERS:
        return None
    return "growing_container", f"empty it when the epoch ends, give it a bound, or keep plain numbers{at(entry)}"


def attribute(entry):
    if entry.kind == "held" and entry.holder is not None:
        return "growing_attribute", f"drop or detach what was kept before the next step adds to it{at(entry)}"
    return None


def outside(entry):
    if entry.kind == "lost":
        return "lost_reference", f"look for a missing Py_DECREF in the native code that met it last{at(entry)}"
    return ("held_outside_python", None) if entry.kind == "outside" else None


CONTAINERS = {"list", "dict", "set", "tuple", "collections.deque", "collections.OrderedDict", "collections.defaultdict",
              "collections.Counter"}


def passes_graph(entry) -> bool:
    return any("grad_fn" in e or "next_functions" in e or "saved" in e for e in entry.edges())


RULES = [cycle, replaced, lru_method, hook, graph_chain, kept_tensor_with_graph, view, container, attribute, outside]
