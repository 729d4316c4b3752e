"""What torch calls by itself: its tables of hooks, and who calls a function."""

import itertools
import linecache
import re
from collections.abc import Sequence

from leakprobe.judge.causes.case import Case, Found, at, is_a, is_attribute, name_of
from leakprobe.model import inert
from leakprobe.model.entry import Path, PathNode
from leakprobe.model.frames import FrameTuple, is_user_file

#: References of tensors and autograd nodes to hooks: edges of the graph, not names of attributes.
HOOK_EDGES = frozenset(
    {"hooks", "_backward_hooks", "_post_accumulate_grad_hooks", "pack_hook", "unpack_hook"}
)
MODULE = "torch.nn.modules.module.Module"
OPTIMIZER = "torch.optim.optimizer.Optimizer"
#: Attributes that torch gives every Module and Optimizer for its hooks.
MODULE_TABLES = frozenset(
    {
        "_backward_hooks",
        "_backward_pre_hooks",
        "_forward_hooks",
        "_forward_hooks_with_kwargs",
        "_forward_hooks_always_called",
        "_forward_pre_hooks",
        "_forward_pre_hooks_with_kwargs",
        "_state_dict_hooks",
        "_state_dict_pre_hooks",
        "_load_state_dict_pre_hooks",
        "_load_state_dict_post_hooks",
    }
)
OPTIMIZER_TABLES = frozenset(
    {
        "_optimizer_step_pre_hooks",
        "_optimizer_step_post_hooks",
        "_optimizer_state_dict_pre_hooks",
        "_optimizer_state_dict_post_hooks",
        "_optimizer_load_state_dict_pre_hooks",
        "_optimizer_load_state_dict_post_hooks",
    }
)
#: Globals of torch's own modules with the hooks of all modules and optimizers.
GLOBAL_TABLES = {
    "torch.nn.modules.module": frozenset(
        {
            "_global_backward_hooks",
            "_global_backward_pre_hooks",
            "_global_forward_hooks",
            "_global_forward_hooks_always_called",
            "_global_forward_pre_hooks",
            "_global_module_registration_hooks",
            "_global_parameter_registration_hooks",
            "_global_buffer_registration_hooks",
        }
    ),
    "torch.optim.optimizer": frozenset({"_global_optimizer_pre_hooks", "_global_optimizer_post_hooks"}),
}


def is_hook_table(owner: PathNode, node: PathNode) -> bool:
    if not is_a(node, "dict"):
        return False
    if owner.edge == "module" and node.edge == "global":
        return name_of(node) in GLOBAL_TABLES.get(owner.text, ())
    return is_attribute(owner, node, MODULE_TABLES, MODULE) or is_attribute(
        owner, node, OPTIMIZER_TABLES, OPTIMIZER
    )


def passes_hook(path: Path) -> bool:
    """True if the path goes through a table of hooks, or a hook of a tensor or autograd node."""
    return any(node.edge in HOOK_EDGES for node in path) or any(
        is_hook_table(owner, node) for owner, node in itertools.pairwise(path)
    )


def hook(case: Case) -> Found:
    if is_registered_again(case):
        return "hook_kept", f"keep the handle and call handle.remove(), or register the hook once{at(case)}"
    if passes_hook(case.above) or is_called_as_hook(case.stack):
        fix = (
            "clear what the hook stores at the end of each step, or let it keep only the last value, detached"
        )
        return "hook_kept", f"{fix}{at(case)}"
    return None


def is_registered_again(case: Case) -> bool:
    """True if the hooks themselves pile up, or their handles; else one hook fills a container of its own."""
    if any(is_a(node, "torch.utils.hooks.RemovableHandle") for node in case.path):
        return True
    node = case.holding
    if node is None:
        return passes_hook(case.above)
    is_table = case.depth > 0 and is_hook_table(case.path[case.depth - 1], node)
    return is_table or any(one.edge in HOOK_EDGES for one in (node, *case.below[:1]))


def is_called_as_hook(stack: Sequence[FrameTuple]) -> bool:
    """True if torch calls the user's innermost functions as a hook: its own line says so, or they run inside
    of the backward engine.
    """
    own = list(itertools.takewhile(lambda frame: is_user_file(frame[0]), stack))
    if not own or len(own) == len(stack):
        return False
    caller = stack[len(own)]
    if is_of_module(caller, "torch.utils.hooks"):
        return True  # it calls nothing else of the user's
    if any(is_of_module(caller, name) for name in GLOBAL_TABLES):
        return re.search(r"\b\w*hook\(", linecache.getline(caller[0], caller[1])) is not None
    return is_of_module(caller, "torch.autograd.graph") and short_name(caller) == "_engine_run_backward"


def is_of_module(frame: FrameTuple, module: str) -> bool:
    return frame[0] == inert.file_of_module(module)


def short_name(frame: FrameTuple) -> str:
    *_, function = frame
    *_, name = function.rpartition(".")
    return name
