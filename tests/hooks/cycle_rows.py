"""The table "Which cycles really leak": a function for each row, which makes the cycle and returns a
member.
"""

import torch


class Box:
    pass


class KeepOutput(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x * 2
        ctx.out = y
        return y

    @staticmethod
    def backward(ctx, g):
        return g


class KeepInput(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.inp = x
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g


class SaveInput(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g


class SaveOutput(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x * 2
        ctx.save_for_backward(y)
        ctx.box = Box()
        ctx.box.ctx = ctx
        return y

    @staticmethod
    def backward(ctx, g):
        return g


def leaf():
    return torch.ones(3, requires_grad=True)


def leaf_hook():
    x = leaf()
    x.register_hook(lambda g: x)
    return x


def attribute():
    t = torch.ones(3)
    t.me = t
    return t


def ctx_out():
    return KeepOutput.apply(leaf())


def ctx_out_below():
    y = KeepOutput.apply(leaf())
    (y * 2).sum()
    return y


def ctx_saved_output():
    return SaveOutput.apply(leaf())


def module_backward_hook():
    m = torch.nn.Linear(3, 3)
    m.register_full_backward_hook(lambda *a: m)
    return m


def module_hook():
    m = torch.nn.Linear(3, 3)
    m.register_forward_hook(lambda *a: m)
    return m


def parameter_to_module():
    m = torch.nn.Linear(3, 3)
    m.weight.m = m
    return m.weight


def non_leaf_hook():
    y = leaf() * 2
    y.register_hook(lambda g: y)
    return y


def downstream_hook():
    y = leaf() * 2
    z = (y * 3).exp()
    y.register_hook(lambda g: z)
    return z


def python_node_hook():
    y = KeepInput.apply(leaf())
    y.grad_fn.register_hook(lambda *g: y)
    return y


def ctx_inp_leaf():
    x = leaf()
    x.y = KeepInput.apply(x)
    return x


def ctx_saved_input():
    x = leaf()
    x.y = SaveInput.apply(x)
    return x


def ctx_saved_input_further():
    x = leaf() * 1
    x.y = SaveInput.apply(x).exp().sum()
    return x


def node_hook():
    y = leaf() * 2
    y.grad_fn.register_hook(lambda *g: y)
    return y


def node_prehook():
    y = leaf() * 2
    y.grad_fn.register_prehook(lambda *g: y)
    return y


def metadata():
    y = leaf() * 2
    y.grad_fn.metadata["y"] = y
    return y


def post_accumulate():
    p = torch.nn.Parameter(torch.ones(3))
    p.register_post_accumulate_grad_hook(lambda q: p)
    return p


def grad_back():
    x = leaf()
    x.grad = torch.ones(3)
    x.grad.back = x
    return x


def create_graph():
    x = leaf()
    (x**2).sum().backward(create_graph=True)
    return x


def ctx_inp_further():
    x = leaf() * 1
    x.y = KeepInput.apply(x).sum()
    return x


def saved_tensors_hooks():
    box = Box()

    def pack(t):
        packed = Box()
        packed.t, packed.box = t.detach(), box
        return packed

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda p: p.t):
        y = leaf().exp()
    box.y = y
    return y


def base_and_view():
    b = torch.ones(5)
    b.v = b[2:]
    return b


def storage():
    t = torch.ones(3)
    t.untyped_storage().x = t
    return t


COLLECTED = [
    leaf_hook,
    attribute,
    ctx_out,
    ctx_out_below,
    ctx_saved_output,
    module_hook,
    module_backward_hook,
    parameter_to_module,
]
#: Row => the edges that the collector lacks.
LEAKS = {
    non_leaf_hook: {"hooks", "_backward_hooks"},
    downstream_hook: {"hooks", "_backward_hooks"},
    python_node_hook: {"hooks"},
    ctx_inp_leaf: {"variable", "next_functions"},
    ctx_saved_input: {"saved", "variable", "next_functions"},
    ctx_saved_input_further: {"next_functions", "saved"},
    node_hook: {"hooks"},
    node_prehook: {"hooks"},
    metadata: {"metadata"},
    post_accumulate: {"_post_accumulate_grad_hooks"},
    grad_back: {"grad"},
    create_graph: {"grad"},
    ctx_inp_further: {"next_functions"},
    saved_tensors_hooks: {"saved", "pack_hook", "unpack_hook"},
    base_and_view: {"_base", "alias"},
    storage: {"untyped_storage()"},
}
