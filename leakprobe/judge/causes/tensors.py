"""Tensors and arrays: graphs, views, batches."""

import itertools

from leakprobe.judge.causes.case import Case, Found, at, is_a
from leakprobe.judge.causes.containers import collects, is_short
from leakprobe.judge.causes.hooks import MODULE

#: References inside of autograd graphs.
GRAPH_EDGES = frozenset({"grad_fn", "next_functions", "saved"})
#: References of a view to what it was cut from, unless it is most of that ("alias").
VIEW_EDGES = frozenset({"base", "_base", "part"})
#: Code that makes batches, and that receives what workers send.
LOADER_CODE = ("torch/utils/data/", "torch/multiprocessing/")


def graph(case: Case) -> Found:
    if not passes_graph(case):
        return None
    if collects(case) and not is_short(case):
        return "graph_kept", f"keep loss.item() or tensor.detach(), not the tensor with its graph{at(case)}"
    return "graph_chain", f"add loss.item(), or detach() the state before the next step{at(case)}"


def graph_of_gradients(case: Case) -> Found:
    """Gradients that have a graph: where they accumulate, that of each step is added to it."""
    if collects(case) and not is_short(case):
        return None
    pairs = itertools.pairwise(case.path)
    if not any(grad.edge == "grad" and node.edge in GRAPH_EDGES for grad, node in pairs):
        return None
    fix = (
        "set gradients to None in each step (zero_grad(set_to_none=True)), or use torch.autograd.grad: "
        "backward(create_graph=True) keeps every step's graph in .grad"
    )
    return "graph_chain", f"{fix}{at(case)}"


def kept_tensor_with_graph(case: Case) -> Found:
    """A growing tensor has a grad_fn although the path shown does not go through it.

    What a module keeps of its own outputs is theirs first: without the graph most of it would still grow.
    """
    if case.kind == "held" and not case.held_by_base(MODULE) and case.has_graph:
        return "graph_kept", f"keep loss.item() or tensor.detach(), not the tensor with its graph{at(case)}"
    return None


def passes_graph(case: Case) -> bool:
    return any(node.edge in GRAPH_EDGES for node in case.path)


def view(case: Case) -> Found:
    edges = [node.edge for node in case.path]
    if case.media & {"shared", "pinned"} and is_of_batch(case):
        fix = (
            "copy what you keep of a batch (x.clone(), x.copy()): .cpu() and .numpy() of a CPU "
            "tensor do not copy"
        )
        return "batch_memory_kept", f"{fix}{at(case)}"
    if any(e in VIEW_EDGES for e in edges):
        return (
            "view_of_large_base",
            f"copy what is needed (x.copy(), x.clone()) instead of keeping a view{at(case)}",
        )
    if any(is_a(node, "memoryview") for node in case.below[:1]):
        return (
            "view_of_large_base",
            (
                "keep bytes(view) of the part you need: a memoryview keeps everything it was cut "
                f"from{at(case)}"
            ),
        )
    # an array of objects may be the holder: it owns none of the memory of its items
    has_array = any(is_a(node, "numpy.ndarray") for node in case.below)
    if has_array and ends_in_cpu(case) and "alias" not in edges:
        return (
            "view_of_large_base",
            f"copy what is needed (x.copy(), x.clone()) instead of keeping a view{at(case)}",
        )
    return None


def ends_in_cpu(case: Case) -> bool:
    """True for memory of torch's at the end of the path: of other members it says nothing."""
    last = case.path[-1]
    return last.type == "buffer" and last.text.startswith("buffer (cpu,")


def is_of_batch(case: Case) -> bool:
    """True for a part of a larger block, and for what a loader made or a worker sent: a whole tensor that the
    program itself puts into such memory is none.
    """
    if not case.made_by or any(node.edge in VIEW_EDGES for node in case.path):
        return True
    files = (filename.replace("\\", "/") for filename, _, _ in case.made_by)
    return any(code in filename for filename in files for code in LOADER_CODE)
