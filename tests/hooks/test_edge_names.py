"""Each kind of reference has a name and a word for its kind in the paths of why()."""

import collections
import contextvars
import functools
import types
import weakref

import pytest

import leakprobe


class Node:
    pass


class Slotted:
    __slots__ = ("first", "kept")


HELD: dict = {}


def attribute(node):
    made = Node()
    made.total = node
    return made


def slot(node):
    made = Slotted()
    made.kept = node
    return made


def closure(node):
    def inner():
        return node

    return inner


def closure_of_two(node):
    other = Node()

    def inner():
        return other, node

    return inner


def default(node):
    def function(a, rows=node):
        pass

    return function


def keyword_default(node):
    def function(a, *, rows=node):
        pass

    return function


def entry_of_a_default_dict(node):
    table = collections.defaultdict(Node)
    table["k"].inner = node
    return table


def entry_by_key(node):
    table = collections.defaultdict(lambda: node)
    table["k"]
    return dict(table=table)


def callback(node):
    HELD["o"] = Node()
    return weakref.ref(HELD["o"], functools.partial(print, node))


def callback_itself(node):
    node.__class__ = type("Call", (Node,), {"__call__": lambda self, r: None})
    HELD["o"] = Node()
    return weakref.ref(HELD["o"], node)


def local(node):
    def generate():
        mine = node
        yield mine

    running = generate()
    next(running)
    return running


def traceback(node):
    given = [node]
    del node  # the frame of fail() alone keeps it

    def fail():
        mine = given.pop()
        raise ValueError(mine is None)

    try:
        fail()
    except ValueError as error:
        return error


def argument_of_an_exception(node):
    return ValueError(node)


def cached(node):
    function = functools.lru_cache(lambda *x: 1)
    function(node, 2)
    return function


def module(node):
    made = types.ModuleType("made")
    made.kept = node
    return made


def context(node):
    made = contextvars.copy_context()
    made.run(contextvars.ContextVar("v").set, node)
    return made


#: What makes the reference => (the end of the path, the word for the last reference but those after it).
EXPECTED = {
    attribute: (["['x'] Node", ".total Node"], "attribute"),
    slot: (["['x'] Slotted", ".kept Node"], "slot"),
    (lambda node: {"k": node}): (["['x'] (dict, 1 item)", "['k'] Node"], "item"),
    (lambda node: {node: 1}): (["['x'] (dict, 1 item)", "key <Node key> Node"], "key"),
    (lambda node: [0, node]): (["['x'] (list, 2 items)", "[1] Node"], "index"),
    (lambda node: (0, 1, node)): (["['x'] (tuple, 3 items)", "[2] Node"], "index"),
    (lambda node: collections.deque([0, node])): (["['x'] (deque, 2 items)", "[1] Node"], "index"),
    (lambda node: {node}): (["['x'] (set, 1 item)", "item Node"], "set item"),
    (lambda node: collections.OrderedDict(a=node)): (["['x'] (OrderedDict, 1 item)", "['a'] Node"], "item"),
    closure: (["['x'] function closure.<locals>.inner", "node Node"], "closure"),
    closure_of_two: (["['x'] function closure_of_two.<locals>.inner", "node Node"], "closure"),
    default: (["['x'] function default.<locals>.function", "default of rows Node"], "default argument"),
    keyword_default: (
        ["['x'] function keyword_default.<locals>.function", "default of rows Node"],
        "default argument",
    ),
    entry_of_a_default_dict: (["['x'] (defaultdict, 1 item)", "['k'] Node", ".inner Node"], "attribute"),
    entry_by_key: (["['table'] (defaultdict, 1 item)", "['k'] Node"], "default dict entry"),
    callback: (["weakref callback partial", ".args (tuple, 1 item)", "[0] Node"], "index"),
    callback_itself: (["['x'] ReferenceType", "weakref callback Call"], "callback"),
    local: (["['x'] generator local.<locals>.generate", "mine Node"], "local"),
    traceback: ([".__traceback__ traceback", ".tb_next traceback", ".tb_frame frame", "mine Node"], "local"),
    argument_of_an_exception: (["['x'] ValueError", ".args (tuple, 1 item)", "[0] Node"], "index"),
    cached: (
        ["['x'] (_lru_cache_wrapper, 1 of 128 items)", "cache entry (tuple, 2 items)", "[0] Node"],
        "index",
    ),
    module: (["['x'] module", ".kept Node"], "global"),
    (lambda node: types.MethodType(print, node)): (["['x'] method", ".__self__ Node"], "attribute"),
    (lambda node: property(node)): (["['x'] property", ".fget Node"], "attribute"),
    (lambda node: type("Made", (), {"kept": node})): (["['x'] class Made", ".kept Node"], "class attribute"),
    (lambda node: types.SimpleNamespace(a=node)): (["['x'] SimpleNamespace", ".a Node"], "attribute"),
}


@pytest.mark.parametrize("make", EXPECTED, ids=lambda f: f.__name__ if f.__name__ != "<lambda>" else None)
def test_a_reference_has_a_name(make):
    HELD.clear()
    node = Node()
    found = weakref.ref(node)
    HELD["x"] = make(node)
    del node
    texts, edge = EXPECTED[make]
    paths = [
        [e for e in p.elements]
        for p in leakprobe.why(found())
        if p.elements[0]["text"].endswith("test_edge_names")
    ]
    assert any(
        [e["text"] for e in path][-len(texts) :] == texts and path[-1]["edge"] == edge for path in paths
    ), paths


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def ends(op):
    return [[(e["text"], e["edge"]) for e in p.elements] for p in leakprobe.why(op)]


def test_autograd(torch):
    weight = torch.ones(100, requires_grad=True)
    weak = weakref.ref(weight)
    HELD["x"] = (weight * weight).sum()
    del weight
    (path,) = [p for p in ends(weak()) if ("HELD (dict" in str(p)) and "saved" in str(p)]
    assert [edge for _text, edge in path][-4:] == ["item", "grad_fn", "next_functions", "saved"]
    assert (
        path[-1][0] in ("._saved_self Tensor", "._saved_other Tensor")
        and path[-2][0] == ".next_functions[0][0] MulBackward0"
    )


def test_gradient_base_and_hook(torch):
    HELD.clear()
    base = torch.ones(10)
    HELD["leaf"] = torch.ones(3, requires_grad=True)
    HELD["leaf"].grad = torch.zeros(3)
    HELD["leaf"].register_hook(functools.partial(print, base))
    views = [base[2:]]
    found = ends(base)
    assert len(views) == 1
    assert any(p[-1] == ("._base Tensor", "alias") for p in found), found  # a view of most of it
    assert any("._backward_hooks" in str(p) and "partial" in str(p) for p in found), found
    assert any(p[-1] == (".grad Tensor", "grad") for p in ends(HELD["leaf"].grad))
