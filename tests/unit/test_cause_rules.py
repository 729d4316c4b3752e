"""The rules see types, edges and provenance: names that a user gives change nothing.

Every path here is written with user-made names in braces, and judged with each of NAMES in their place.
"""

import pytest

from leakprobe.judge.causes import RULES, Case, cause_of
from leakprobe.model.entry import Holder, PathNode

#: Words that rules once looked for, or may be tempted to.
NAMES = ("hook", "cache", "queue", "logger", "grad", "_forward_hooks", "traceback", "Pickler", "saved_base")

LRU = ("functools._lru_cache_wrapper",)
MODULE = ("torch.nn.modules.module.Module",)
OPTIMIZER = ("torch.optim.optimizer.Optimizer",)


def node(text, edge, kind=None, bases=()):
    return PathNode(text, edge, kind, (kind, *bases) if kind and bases else ())


START = node("__main__", "module", "module")
LIBRARY = node("matplotlib._pylab_helpers", "module", "module")
TENSOR = node("[0] Tensor", "index", "torch.Tensor", ("torch._C.TensorBase",))
BUFFER = node("buffer (cpu, 4000 bytes)", "buffer", "buffer")
LIST = node("{n} (list, 60 items)", "global", "list")
OWN_LIST = node(".{n} (list, 60 items)", "attribute", "list")
OWN = node("{n} {n}", "global", "__main__.{n}", ("object",))
NET = node("{n} {n}", "global", "__main__.{n}", MODULE)
OBJECT = node("[0] {n}", "index", "__main__.{n}", ("object",))

METHOD = (
    node("{n} class {n}", "global", "type"),
    node(".{n} _lru_cache_wrapper", "class attribute", LRU[0]),
)
GROUPS = (
    START,
    node("{n} {n}", "global", "__main__.{n}", OPTIMIZER),
    node(".param_groups (list, 60 items)", "attribute", "list"),
)
GRADIENT = (
    node("[0] Parameter", "index", "torch.nn.parameter.Parameter", ("torch.Tensor",)),
    node(".grad Tensor", "grad", "torch.Tensor"),
)
TASK = node("item Task", "set item", "_asyncio.Task")
EPOCH = node("[1] (list, 10 items)", "index", "list")
ARRAY = node("{n} ndarray", "global", "numpy.ndarray")

#: cause, path, place of the holder on it (None: none), further facts of the case
HELD = [
    ("growing_container", [START, LIST, TENSOR, BUFFER], 1, {}),
    (
        "hook_kept",
        [
            START,
            node("{n} {n}", "global", "__main__.{n}", OPTIMIZER),
            node(".param_groups (list, 1 item)", "attribute", "list"),
            node("[0] Parameter", "index", "torch.nn.parameter.Parameter", ("torch.Tensor",)),
            node("._backward_hooks (OrderedDict, 60 items)", "_backward_hooks", "collections.OrderedDict"),
            node("[3] function {n}", "item", "function"),
        ],
        4,
        {},
    ),
    ("growing_container", [START, OWN, OWN_LIST, TENSOR, BUFFER], 2, {}),
    (
        "growing_container",
        [START, OWN, OWN_LIST, OBJECT, node(".{n} Tensor", "attribute", "torch.Tensor")],
        2,
        {},
    ),
    (
        "growing_container",
        [node("{n}() in {n}.py", "frame", "frame"), node("{n} (dict, 9 items)", "local", "dict"), TENSOR],
        1,
        {},
    ),
    (
        "growing_container",  # the stages of one pipeline are no chain
        [
            START,
            LIST,
            node("[3] generator {n}", "index", "generator"),
            node("{n}_rows generator {n}", "local", "generator"),
            node("{n}_chunks generator {n}", "local", "generator"),
            TENSOR,
        ],
        1,
        {},
    ),
    (
        "growing_chain",
        [
            START,
            OWN,
            node(".{n} generator {n}", "attribute", "generator"),
            node("{n}_rows generator {n}", "local", "generator"),
            node("{n}_rows generator {n}", "local", "generator"),
            TENSOR,
        ],
        0,
        {},
    ),
    ("growing_attribute", [START, OWN, node(".{n} Tensor", "attribute", "torch.Tensor")], 1, {}),
    ("module_attribute", [START, NET, OWN_LIST, TENSOR, BUFFER], 2, {}),
    ("graph_kept", [START, LIST, TENSOR, node(".grad_fn AddBackward0", "grad_fn", "AddBackward0")], 1, {}),
    ("graph_kept", [START, LIST, TENSOR], 1, {"has_graph": True}),
    (
        "graph_chain",
        [
            START,
            OWN,
            node(".{n} Tensor", "attribute", "torch.Tensor"),
            node(".grad_fn AddBackward0", "grad_fn", "AddBackward0"),
            node(".next_functions[0][0] AddBackward0", "next_functions", "AddBackward0"),
        ],
        1,
        {},
    ),
    (
        "view_of_large_base",
        [
            START,
            LIST,
            node("[0] ndarray", "index", "numpy.ndarray"),
            node(".base ndarray", "base", "numpy.ndarray"),
        ],
        1,
        {"media": frozenset({"numpy"})},
    ),
    ("view_of_large_base", [START, LIST, node("[0] memoryview", "index", "memoryview")], 1, {}),
    ("batch_memory_kept", [START, LIST, TENSOR, BUFFER], 1, {"media": frozenset({"shared"})}),
    (
        "batch_memory_kept",
        [START, LIST, TENSOR, node("buffer", "part", "buffer")],
        1,
        {"media": frozenset({"shared"}), "made_by": [("/home/me/{n}.py", 7, "{n}")]},
    ),
    (
        "batch_memory_kept",
        [START, LIST, TENSOR, BUFFER],
        1,
        {"media": frozenset({"shared"}), "made_by": [("/venv/torch/multiprocessing/reductions.py", 7, "f")]},
    ),
    (
        "growing_container",
        [START, LIST, TENSOR, BUFFER],
        1,
        {"media": frozenset({"shared"}), "made_by": [("/home/me/{n}.py", 7, "{n}")]},
    ),
    (
        "hook_kept",
        [
            START,
            NET,
            node(
                "._forward_hooks (OrderedDict, 60 items)", "attribute", "collections.OrderedDict", ("dict",)
            ),
            node("[3] function {n}", "item", "function"),
        ],
        2,
        {},
    ),
    (
        "hook_kept",
        [
            START,
            LIST,
            node("[0] Tensor", "index", "torch.Tensor"),
            node(".hooks (dict, 1 item)", "hooks", "dict"),
        ],
        3,
        {},
    ),
    (
        "unbounded_cache",
        [
            START,
            node("{n} _lru_cache_wrapper", "global", LRU[0]),
            node("cache entry ndarray", "cache", "numpy.ndarray"),
        ],
        1,
        {},
    ),
    (
        "lru_cache_on_method",
        [
            START,
            *METHOD,
            node("cache entry (tuple, 1 item)", "cache", "tuple"),
            node("[0] {n}", "index", "__main__.{n}", ("object",)),
        ],
        2,
        {},
    ),
    (
        "lru_cache_on_method",  # one instance, new arguments
        [
            START,
            *METHOD,
            node("cache entry ndarray", "cache", "numpy.ndarray"),
        ],
        2,
        {},
    ),
    (
        "lru_cache_on_method",
        [
            START,
            *METHOD,
            node("cache entry (tuple, 2 items)", "cache", "tuple"),
            node("[1] Tensor", "index", "torch.Tensor"),
        ],
        2,
        {},
    ),
    (
        "unbounded_cache",
        [
            START,
            node("{n} Pickler", "global", "_pickle.Pickler"),
            node("reference 1 of Pickler", "reference", "list"),
        ],
        1,
        {},
    ),
    ("task_kept", [START, LIST, node("[0] Task", "index", "_asyncio.Task")], 1, {}),
    (
        "traceback_kept",  # one that failed
        [
            START,
            LIST,
            node("[0] Future", "index", "concurrent.futures._base.Future"),
            node("._exception ValueError", "attribute", "ValueError"),
            node(".__traceback__ traceback", "attribute", "traceback"),
            node("{n} frame", "reference", "frame"),
            node("{n} bytes", "local", "bytes"),
        ],
        1,
        {},
    ),
    (
        "task_kept",
        [START, LIST, TASK, node("reference 3 of Task Tensor", "reference", "torch.Tensor")],
        1,
        {},
    ),
    (
        "never_ended",  # its coroutine has locals: it has not ended
        [
            START,
            LIST,
            TASK,
            node("reference 2 of Task coroutine {n}", "reference", "coroutine"),
            node("{n} Tensor", "local", "torch.Tensor"),
            BUFFER,
        ],
        1,
        {},
    ),
    ("never_ended", [START, LIST, node("[0] {n}", "index", "__main__.{n}", ("threading.Thread",))], 1, {}),
    (
        "never_closed",
        [START, LIST, node("[0] {n}", "index", "__main__.{n}", ("socket.socket", "_socket.socket"))],
        1,
        {},
    ),
    (
        "optimizer_state",
        [
            START,
            node("{n} {n}", "global", "__main__.{n}", OPTIMIZER),
            node(".state (defaultdict, 60 items)", "attribute", "collections.defaultdict", ("dict",)),
            TENSOR,
        ],
        2,
        {},
    ),
    ("optimizer_state", [*GROUPS, node("[3] (dict, 7 items)", "index", "dict"), TENSOR], 2, {}),
    (
        "optimizer_state",
        [
            *GROUPS,
            node("[0] (dict, 7 items)", "index", "dict"),
            node("['params'] (list)", "item", "list"),
            TENSOR,
        ],
        4,
        {},
    ),
    (
        "growing_container",  # what the program keeps in a group
        [
            *GROUPS,
            node("[0] (dict, 7 items)", "index", "dict"),
            node("['{n}'] (list)", "item", "list"),
            OBJECT,
        ],
        4,
        {},
    ),
    (
        "graph_chain",
        [
            *GROUPS,
            node("[0] (dict, 7 items)", "index", "dict"),
            node("['params'] (list)", "item", "list"),
            *GRADIENT,
            node(".grad_fn AddBackward0", "grad_fn", "AddBackward0"),
            BUFFER,
        ],
        6,
        {},
    ),
    (
        "growing_container",
        [START, node("{n} {n}", "global", "__main__.{n}", OPTIMIZER), OWN_LIST, TENSOR],
        2,
        {},
    ),
    (
        "growing_container",  # what the state of one parameter collects
        [
            START,
            node("{n} {n}", "global", "__main__.{n}", OPTIMIZER),
            node(".state (defaultdict, 1 item)", "attribute", "collections.defaultdict", ("dict",)),
            node("[<Parameter key>] (dict, 3 items)", "key", "dict"),
            node("['pairs'] (list, 382 items)", "key", "list"),
            TENSOR,
        ],
        4,
        {},
    ),
    (
        "traceback_kept",
        [
            START,
            LIST,
            node("[0] {n}", "index", "__main__.{n}", ("Exception", "BaseException")),
            node(".__traceback__ traceback", "attribute", "traceback"),
        ],
        1,
        {},
    ),
    ("class_per_step", [START, LIST, node("[0] class {n}", "index", "__main__.{n}Meta", ("type",))], 1, {}),
    (
        "queue_not_emptied",
        [
            START,
            node("{n} {n}", "global", "__main__.{n}", ("queue.Queue",)),
            node(".queue (deque, 60 items)", "attribute", "collections.deque"),
            TENSOR,
        ],
        2,
        {},
    ),
    (
        "growing_container",
        [
            START,
            node("{n} {n}", "global", "__main__.{n}", ("queue.Queue",)),
            node(".{n}s (list, 60 items)", "attribute", "list"),
            TENSOR,
        ],
        2,
        {},
    ),
    (
        "buffering_iterator",
        [
            START,
            node("{n} cycle", "global", "itertools.cycle"),
            node("reference 2 of cycle (list, 60 items)", "reference", "list"),
        ],
        2,
        {},
    ),
    (
        "cache_keyed_by_objects",
        [START, node("{n} (dict, 60 items)", "global", "dict"), node("key <Tensor>", "key", "torch.Tensor")],
        1,
        {},
    ),
    (
        "growing_container",  # a set of objects is there to be gone through
        [
            START,
            node("{n} (set, 60 items)", "global", "set"),
            node("item {n}", "set item", "__main__.{n}", ("object",)),
        ],
        1,
        {},
    ),
    (
        "cache_keyed_by_objects",
        [
            START,
            node("{n} (set, 60 items)", "global", "set"),
            node("item Tensor", "set item", "torch.Tensor"),
        ],
        1,
        {},
    ),
    (
        "growing_container",  # what a task that is still running keeps, or waits to call
        [
            node("{n}", "module", "module"),
            node("{n} Task", "global", "_asyncio.Task"),
            node(".coro coroutine {n}", "attribute", "coroutine"),
            node("{n} (list, 60 items)", "local", "list"),
            TENSOR,
        ],
        3,
        {},
    ),
    (
        "growing_container",  # the memory of torch's that comes with it is another member's
        [
            START,
            LIST,
            node("[3] (tuple, 2 items)", "index", "tuple"),
            node("[1] ndarray", "index", "numpy.ndarray"),
            node("buffer (numpy, 2400 bytes)", "buffer", "buffer"),
        ],
        1,
        {"media": frozenset({"cpu", "numpy", "python"})},
    ),
    (
        "growing_container",
        [
            START,
            LIST,
            node("[3] (tuple, 2 items)", "index", "tuple"),
            node("[0] ndarray", "index", "numpy.ndarray"),
        ],
        1,
        {"media": frozenset({"cpu", "python"})},
    ),
    (
        "view_of_large_base",
        [
            START,
            LIST,
            node("[3] ndarray", "index", "numpy.ndarray"),
            node("buffer (cpu, 2400 bytes)", "buffer", "buffer"),
        ],
        1,
        {"media": frozenset({"cpu", "python"})},
    ),
    ("growing_container", [START, ARRAY, TENSOR, BUFFER], 1, {}),
    ("growing_container", [START, OWN, ARRAY, node("[0] (list, 9 items)", "index", "list")], 2, {}),
    ("graph_kept", [START, ARRAY, TENSOR, node(".grad_fn AddBackward0", "grad_fn", "AddBackward0")], 1, {}),
    # a list for each epoch: as many as there were epochs
    ("growing_container", [START, LIST, EPOCH, TENSOR, BUFFER], 1, {"steps": 600, "item_steps": 59}),
    (
        "graph_kept",
        [START, LIST, EPOCH, TENSOR, node(".grad_fn AddBackward0", "grad_fn", "AddBackward0")],
        1,
        {"steps": 600, "item_steps": 59},
    ),
    ("growing_attribute", [START, LIST, EPOCH, TENSOR, BUFFER], 1, {"steps": 600, "item_steps": 599}),
    (
        "library_registry",
        [
            START,
            node("{n} Logger", "global", "logging.Logger", ("logging.Filterer",)),
            node(".handlers (list, 60 items)", "attribute", "list"),
            node("[3] StreamHandler", "index", "logging.StreamHandler", ("logging.Handler",)),
            node(".stream TextIOWrapper", "attribute", "_io.TextIOWrapper", ("_io._IOBase",)),
        ],
        2,
        {"types": frozenset({"_io.TextIOWrapper"})},
    ),
    (
        "library_registry",
        [
            START,
            node("{n} Logger", "global", "logging.Logger", ("logging.Filterer",)),
            node(".handlers (list, 60 items)", "attribute", "list"),
            OBJECT,
        ],
        2,
        {},
    ),
    (
        "growing_container",
        [
            START,
            node("{n} {n}", "global", "__main__.{n}", ("logging.Logger", "logging.Filterer")),
            OWN_LIST,
            OBJECT,
        ],
        2,
        {},
    ),
    (
        "library_registry",
        [LIBRARY, node("{n} (dict, 60 items)", "global", "dict"), OBJECT],
        1,
        {"in_library": True},
    ),
    (
        "growing_chain",
        [
            START,
            OWN,
            node(".{n} {n}", "attribute", "__main__.{n}", ("object",)),
            node(".{n} {n}", "attribute", "__main__.{n}", ("object",)),
            TENSOR,
        ],
        0,
        {},
    ),
    (
        "growing_chain",  # one name for a module that has the one of the step before as a part
        [
            START,
            node("{n} {n}", "global", "__main__.{n}", MODULE),
            node("._modules (dict, 3 items)", "attribute", "dict"),
            node("['{n}'] {n}", "item", "__main__.{n}", MODULE),
            node("._modules (dict, 1 item)", "attribute", "dict"),
            node("['{n}'] {n}", "item", "__main__.{n}", MODULE),
            node("._buffers (dict, 1 item)", "attribute", "dict"),
            TENSOR,
        ],
        2,
        {"steps": 130},
    ),
    (
        "module_attribute",  # as many parts as steps, with parts of their own
        [
            START,
            node("{n} {n}", "global", "__main__.{n}", MODULE),
            node("._modules (dict, 60 items)", "attribute", "dict"),
            node("['7'] {n}", "item", "__main__.{n}", MODULE),
            node("._modules (dict, 1 item)", "attribute", "dict"),
            node("['{n}'] {n}", "item", "__main__.{n}", MODULE),
            node("._buffers (dict, 1 item)", "attribute", "dict"),
            TENSOR,
        ],
        2,
        {},
    ),
    (
        "growing_buffer",
        [START, OWN, node(".{n} Tensor", "attribute", "torch.Tensor")],
        1,
        {"pattern": "replaced"},
    ),
    (
        "library_registry",
        [node("callbacks of atexit", "atexit"), node("(tuple, 1 item)", "root", "tuple"), TENSOR],
        None,
        {"kind": "outside"},
    ),
    (
        "library_registry",
        [node("handlers of signals", "signal"), node("function save", "root", "function"), TENSOR],
        None,
        {"kind": "outside"},
    ),
    (
        "growing_container",
        [
            node("state of the interpreter", "interpreter"),
            node("{n}", "root", "_contextvars.Context"),
            LIST,
            TENSOR,
        ],
        2,
        {"kind": "outside"},
    ),
    ("growing_container", [node("held outside Python", "outside"), LIST, TENSOR], 1, {"kind": "lost"}),
    ("lost_reference", [node("held outside Python", "outside"), TENSOR], None, {"kind": "lost"}),
    ("held_outside_python", [node("held outside Python", "outside"), TENSOR], None, {"kind": "outside"}),
    (
        "held_outside_python",
        [node("held outside Python", "outside"), TENSOR],
        None,
        {"kind": "outside", "unread": True},
    ),
    (
        "held_outside_python",
        [node("held outside Python", "outside"), node("buffer", "root", "buffer")],
        None,
        {"kind": "lost", "media": frozenset({"cpu"})},
    ),
    (
        "unknown",
        [node("owner not seen", "unseen"), node("buffer", "root", "buffer")],
        None,
        {"kind": "unseen", "media": frozenset({"numpy"})},
    ),
]

SELF = node("{n}", "root", "__main__.{n}", ("object",))
CYCLES = [
    ("reference_cycle", [SELF, node(".{n} {n}", "attribute", "__main__.{n}", ("object",)), SELF], {}),
    (
        "cpp_reference_cycle",
        [SELF, node(".{n} ndarray", "attribute", "numpy.ndarray"), SELF],
        {"collectable": False},
    ),
    ("frozen_garbage", [SELF, SELF], {"frozen": True}),
    ("cycle_through_frame", [SELF, node(".__traceback__ traceback", "attribute", "traceback"), SELF], {}),
    ("cycle_through_callback", [SELF, node(".{n} function {n}", "attribute", "function"), SELF], {}),
    (
        "cycle_through_hook",
        [
            node("{n}", "root", "__main__.{n}", MODULE),
            node("._forward_hooks (OrderedDict, 1 item)", "attribute", "collections.OrderedDict", ("dict",)),
            node("[1] function {n}", "item", "function"),
            node("{n} {n}", "closure", "__main__.{n}", MODULE),
        ],
        {},
    ),
]


def named(path, name):
    fill = lambda text: text.replace("{n}", name)
    return tuple(
        PathNode(fill(n.text), n.edge, n.type and fill(n.type), tuple(fill(b) for b in n.bases)) for n in path
    )


def case_of(path, place, name, facts):
    path = named(path, name)
    holder = None
    if place is not None:
        holder = Holder(path[place].text, path[place].type, 60, None, 1, 0, 0, 0, 0, 0)
    given = {
        "kind": "held",
        "pattern": "per_step",
        "media": frozenset({"cpu"}),
        "types": frozenset(),
        "steps": 60,
    }
    return Case(**{**given, **facts, "path": path, "holder": holder, "line": "train.py:7"})


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("cause, path, place, facts", HELD, ids=[f"{i}-{h[0]}" for i, h in enumerate(HELD)])
def test_names_of_the_user_change_no_cause(cause, path, place, facts, name):
    found, fix = cause_of(case_of(path, place, name, facts))
    assert found == cause and fix


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("cause, cycle, facts", CYCLES, ids=[c[0] for c in CYCLES])
def test_names_on_a_cycle_change_no_cause(cause, cycle, facts, name):
    case = case_of((), None, name, {"kind": "garbage", "cycle": named(cycle, name), **facts})
    assert cause_of(case)[0] == cause


def test_every_rule_is_tried():
    cases = [case_of(path, place, "x", facts) for _, path, place, facts in HELD]
    cases += [case_of((), None, "x", {"kind": "garbage", "cycle": named(c, "x"), **f}) for _, c, f in CYCLES]
    assert [rule.__name__ for rule in RULES if not any(rule(case) for case in cases)] == []


def test_a_collector_that_is_off_is_told():
    cycle = named(CYCLES[0][1], "node")
    facts = {"kind": "garbage", "cycle": cycle, "collector": "the garbage collector is switched off"}
    cause, fix = cause_of(case_of((), None, "node", facts))
    assert cause == "reference_cycle" and fix.endswith("train.py:7; the garbage collector is switched off")


TABLE = node("._forward_hooks (OrderedDict, 60 items)", "attribute", "collections.OrderedDict", ("dict",))
HANDLE = node("[0] RemovableHandle", "index", "torch.utils.hooks.RemovableHandle")


@pytest.mark.parametrize(
    "path, place, is_registered_again",
    [
        ([START, NET, TABLE, node("[3] function {n}", "item", "function")], 2, True),
        ([START, LIST, HANDLE], 1, True),
        ([START, LIST, TENSOR, node(".hooks (dict, 1 item)", "hooks", "dict")], 3, True),
        (
            [
                START,
                NET,
                TABLE,
                node("[0] function {n}", "item", "function"),
                node("{n} (list, 60 items)", "closure", "list"),
                TENSOR,
            ],
            4,
            False,
        ),
    ],
)
def test_a_handle_is_to_be_removed_only_where_hooks_pile_up(path, place, is_registered_again):
    cause, fix = cause_of(case_of(path, place, "x", {}))
    assert cause == "hook_kept"
    assert ("handle.remove()" in fix) is is_registered_again
    assert ("what the hook stores" in fix) is not is_registered_again


def test_a_cache_of_a_method_needs_a_bound_where_its_instances_do_not_grow():
    named_class = [n for n in named((START, *METHOD), "Scene")]
    path = [*named_class, node("cache entry ndarray", "cache", "numpy.ndarray")]
    advices = ({"__main__.Scene"}, "cache per instance"), ({"__main__.Row"}, "give the cache a maxsize")
    for types, advice in advices:
        cause, fix = cause_of(case_of(path, 2, "x", {"types": frozenset(types)}))
        assert cause == "lru_cache_on_method" and fix.startswith(advice)


def test_gradients_with_a_graph_are_to_be_set_to_none():
    path = [START, NET, *GRADIENT, node(".grad_fn AddBackward0", "grad_fn", "AddBackward0"), BUFFER]
    cause, fix = cause_of(case_of(path, 3, "x", {}))
    assert cause == "graph_chain" and "create_graph=True" in fix
    kept = [START, LIST, TENSOR, *path[2:]]  # a list of what leads there is what grows
    assert "create_graph" not in cause_of(case_of(kept, 1, "x", {}))[1]


def test_what_never_ends_is_named_by_the_line_that_starts_it():
    path = [START, LIST, node("[0] Thread", "index", "threading.Thread")]
    assert cause_of(case_of(path, 1, "x", {"made": "train.py:5"}))[1].endswith(", train.py:5")
    assert cause_of(case_of(path, 1, "x", {}))[1].endswith(", train.py:7")


def test_what_a_finalizer_keeps_is_told_as_such():
    path = [
        node("weakref", "module", "module"),
        node("finalize class finalize", "global", "type"),
        node("._registry (dict, 60 items)", "class attribute", "dict"),
        node("[<finalize key>] _Info", "item", "weakref.finalize._Info"),
        node(".args (tuple, 1 item)", "slot", "tuple"),
    ]
    cause, fix = cause_of(case_of(path, 2, "x", {"in_library": True}))
    assert cause == "library_registry" and "weakref.finalize()" in fix and fix.endswith("train.py:7")
    cause, fix = cause_of(case_of([*path[:3], OBJECT], 2, "x", {"in_library": True}))
    assert cause == "library_registry" and "'_registry' of weakref" in fix


def test_the_iterator_of_a_tee_that_is_behind_is_named():
    block = node("reference 1 of _tee _tee_dataobject", "reference", "itertools._tee_dataobject")
    item = node("reference 20 of _tee_dataobject Tensor", "reference", "torch.Tensor")
    named_one = [START, node("ahead _tee", "global", "itertools._tee"), block, item]
    nameless = [START, LIST, node("[0] _tee", "index", "itertools._tee"), block, item]
    for path, words in ((named_one, "what 'ahead' has not"), (nameless, "what one of its iterators has not")):
        cause, fix = cause_of(case_of(path, len(path) - 2, "x", {}))
        assert cause == "buffering_iterator" and words in fix
