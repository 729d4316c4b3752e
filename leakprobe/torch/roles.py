"""What each block of memory is for, found in the heap with no help of the program.

A Module's parameters and buffers and an Optimizer's state are read from the objects themselves; gradients and
what autograd graphs save, from the edges of the object graph.  The first that fits of:

    parameter         a tensor of a Module's _parameters or _buffers lies on the block
    optimizer state   one of an Optimizer's state
    gradient          one that is some tensor's .grad
    batch             made by torch.utils.data, or a tensor without a graph, held by Python, that a graph
    saved activation        saved by an autograd graph, or made with one
    temporary         born in this step, and nothing of the above
    unknown           the rest
"""

from collections.abc import Iterable, Iterator
from typing import Any

from leakprobe import _core
from leakprobe._core import TENSOR_HAS_GRAPH, TENSOR_IS_GRAD, TENSOR_IS_INNER, TENSOR_IS_SAVED
from leakprobe.model import bounds, inert
from leakprobe.torch.patches import with_subclasses

ROLES = ("parameter", "optimizer state", "gradient", "batch", "activation", "temporary", "unknown")
#: Containers below an optimizer's state are followed so deep.
DEPTH = bounds.STATE_DEPTH
#: Folders of code whose tensors are batches.
LOADER_CODE = "torch/utils/data/"


def find_roles() -> dict[int, str]:
    """{address of a block: role} of blocks with tensors on them; "unknown" and "temporary" are left to
    role_of().
    """
    rows = _core.tensor_blocks()
    block_of = {row.tensor: row.block for row in rows}
    roles: dict[int, str] = {}
    for tensor in parameters():
        note(roles, block_of.get(tensor), "parameter")
    for tensor in optimizer_state():
        note(roles, block_of.get(tensor), "optimizer state")
    bits: dict[int, int] = {}
    held = set()  # blocks with a tensor that Python has, and that has no graph
    for row in rows:
        bits[row.block] = bits.get(row.block, 0) | row.bits & ~TENSOR_IS_INNER
        if not row.bits & (TENSOR_HAS_GRAPH | TENSOR_IS_INNER):
            held.add(row.block)
    for block, flags in bits.items():
        if flags & TENSOR_IS_GRAD:
            note(roles, block, "gradient")
        elif flags & TENSOR_IS_SAVED and block in held and not flags & TENSOR_HAS_GRAPH:
            note(roles, block, "batch")
        elif flags & (TENSOR_IS_SAVED | TENSOR_HAS_GRAPH):
            note(roles, block, "activation")
    return roles


def note(roles: dict[int, str], block: int | None, role: str) -> None:
    if block is not None:
        roles.setdefault(block, role)


def role_of(
    roles: dict[int, str], address: int, stack: Iterable[tuple[str, int, str]], born: int, now: int
) -> str:
    """The role of a block that was born in step ``born`` by the frames ``stack``, as of step ``now``."""
    known = roles.get(address)
    if known in ("parameter", "optimizer state", "gradient"):
        return known
    if any(LOADER_CODE in frame[0].replace("\\", "/") for frame in stack):
        return "batch"
    return known or ("temporary" if born == now else "unknown")


def instances(module: str, name: str) -> Iterator[Any]:
    """Live objects of a class of a module that is imported; no code of theirs runs."""
    wanted = getattr(inert.imported(module), name, None)
    if not isinstance(wanted, type):
        return
    yield from _core.instances(with_subclasses(wanted))


def parameters() -> Iterator[int]:
    """Numbers (id) of the tensors that Modules have as parameters and buffers."""
    for module in instances("torch.nn", "Module"):
        own = inert.attributes(module)
        for name in ("_parameters", "_buffers"):
            tensors = own.get(name)
            if isinstance(tensors, dict):
                yield from (id(t) for t in tensors.values() if t is not None)


def optimizer_state() -> Iterator[int]:
    """Numbers (id) of what Optimizers keep for their parameters."""
    for optimizer in instances("torch.optim", "Optimizer"):
        yield from leaves(inert.attributes(optimizer).get("state"), DEPTH)


def leaves(container: Any, depth: int) -> Iterator[int]:
    """Numbers of all that is in nested dicts, lists and tuples, but for their keys."""
    if isinstance(container, dict):
        items = list(dict.values(container))
    elif type(container) in (list, tuple):
        items = container
    else:
        yield id(container)
        return
    if depth > 0:
        for item in items:
            yield from leaves(item, depth - 1)
