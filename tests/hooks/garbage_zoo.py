"""Cycles of every kind: a function for each, which makes one and returns nothing, and a zoo of what is alive.

FINALIZED kinds have finalizers that take their cycle apart before a collector could save it: they return an
object with weak references, whose death is the test.
"""

import abc
import array
import asyncio
import collections
import contextvars
import ctypes
import dataclasses
import enum
import functools
import inspect
import io
import itertools
import operator
import queue
import random
import re
import sys
import threading
import types
import typing
import weakref


class Node:
    pass


class Slotted:
    __slots__ = ("__weakref__", "me", "other")


class Listed(list):
    pass


class Named(typing.NamedTuple):
    value: object


@dataclasses.dataclass(slots=True, eq=False)
class Data:
    me: object = None


@dataclasses.dataclass(frozen=True, eq=False)
class Frozen:
    me: list


KINDS, FINALIZED = [], []


def kind(function):
    KINDS.append(function)
    return function


def finalized(function):
    FINALIZED.append(function)
    return function


@kind
def instance():
    node = Node()
    node.me = node


@kind
def instance_with_dict():
    node = Node()
    node.__dict__["me"] = node
    node.__dict__[1] = node


@kind
def slots():
    a, b = Slotted(), Slotted()
    a.me, b.other, a.other, b.me = a, a, b, b


@kind
def nested_containers():
    rows = [Node(), (1, [Node()])]
    rows.append({"l": rows, ("t",): [rows]})


@kind
def list_subclass():
    rows = Listed()
    rows.append(rows)
    rows.name = rows


@kind
def sets():
    node = Node()
    node.frozen = frozenset([node])
    node.plain = {node, 1}


@kind
def named_tuple():
    rows = []
    rows.append(Named(rows))


@kind
def ordered_dict():
    table = collections.OrderedDict()
    table["me"], table["n"] = table, Node()


@kind
def default_dict():
    table = collections.defaultdict(list)
    table["rows"].append(table)


@kind
def chain_map():
    maps = collections.ChainMap({}, {})
    maps["me"] = maps


@kind
def user_dict():
    table = collections.UserDict()
    table["me"] = table


@kind
def counter():
    counts = collections.Counter("aab")
    counts.me = counts


@kind
def deque():
    ring = collections.deque([Node()] * 3, maxlen=70)
    for _ in range(100):
        ring.append(ring)


@kind
def deque_iterator():
    ring = collections.deque()
    ring.append(iter(ring))


@kind
def closure():
    node = Node()

    def inner():
        return inner, node


@kind
def defaults():
    def function(a=1, *, b=2):
        return a, b

    function.__defaults__ = (function,)
    function.__kwdefaults__ = {"b": [function]}
    function.me = function


@kind
def wrapped():
    @functools.wraps(len)
    def function():
        return function

    function.__wrapped__ = function


@kind
def cache():
    @functools.cache
    def cached(x):
        return [x, cached]

    cached(1)
    cached(2)


@kind
def bounded_cache():
    @functools.lru_cache(maxsize=3)
    def cached(x):
        return [x, cached]

    for i in range(5):
        cached(i)


@kind
def cached_property():
    class Holder:
        @functools.cached_property
        def value(self):
            return [self]

    Holder().value


@kind
def method():
    node = Node()
    node.init = node.__init__
    node.method = types.MethodType(lambda self: self, node)


@kind
def partial():
    rows = []
    rows.append(functools.partial(rows.append, rows, key=rows))


@kind
def built_in_method():
    rows = []
    rows.append(rows.append)


@kind
def exception():
    node = Node()
    try:
        raise ValueError(node)
    except ValueError as error:
        node.error = error


@kind
def chained_exception():
    try:
        try:
            raise KeyError(1)
        except KeyError as first:
            raise ValueError(first) from first
    except ValueError as second:
        kept = second
        kept.__context__.other = kept


@kind
def frame():
    held = sys._getframe()
    rows = [held]
    rows.append(rows)


@kind
def iterators():
    rows = []
    for made in (
        iter(rows),
        reversed([rows]),
        enumerate(rows),
        zip(rows, [rows]),
        map(len, [rows]),
        filter(None, [rows]),
    ):
        rows.append(made)


@kind
def itertools_objects():
    rows = []
    rows += [
        itertools.chain([rows]),
        itertools.cycle([rows]),
        itertools.repeat(rows),
        itertools.product([rows]),
        itertools.permutations([rows]),
        itertools.accumulate([rows]),
        itertools.count(),
        *itertools.tee(iter([rows])),
    ]


@kind
def dict_views():
    table = {}
    table["views"] = [table.keys(), table.values(), iter(table.items())]


@kind
def mapping_proxy():
    table = {}
    table["proxy"] = types.MappingProxyType(table)


@kind
def properties():
    class Holder:
        pass

    Holder.value = property(lambda self: Holder)
    Holder.static = staticmethod(lambda: Holder)
    Holder.cls = classmethod(lambda cls: Holder)


@kind
def class_():
    type("Made", (Node,), {"node": Node()})


@kind
def class_with_metaclass():
    class Meta(abc.ABCMeta):
        pass

    class Made(metaclass=Meta):
        registry = []

    Made.registry.append(Made)


@kind
def enum_():
    enum.Enum("Colour", "RED GREEN BLUE")


@kind
def generic():
    T = typing.TypeVar("T")

    class Box(typing.Generic[T]):
        item: "Box"

    Box.alias = list[Box]


@kind
def dataclass_with_slots():
    data = Data()
    data.me = data


@kind
def frozen_dataclass():
    data = Frozen([])
    data.me.append(data)


@kind
def module():
    made = types.ModuleType("made")
    made.me = made
    exec("def f(): return g\ndef g(): return f\nclass C:\n    def m(self): return __class__", made.__dict__)


@kind
def namespace():
    made = types.SimpleNamespace()
    made.me = made


@kind
def weak_callback():
    node = Node()
    node.ref = weakref.ref(node, lambda r, n=node: n)


@kind
def weak_containers():
    node = Node()
    node.by_key, node.values, node.set = (
        weakref.WeakKeyDictionary(),
        weakref.WeakValueDictionary(),
        weakref.WeakSet(),
    )
    node.by_key[node], node.values["n"] = [node], node
    node.set.add(node)


@kind
def weak_method():
    class Holder:
        def m(self):
            pass

    holder = Holder()
    holder.weak = weakref.WeakMethod(holder.m)
    holder.proxy = weakref.proxy(holder)
    holder.me = holder


@kind
def context():
    variable = contextvars.ContextVar("v")
    made = contextvars.copy_context()
    made.run(variable.set, [made, variable])


@kind
def memory_view():
    class Buffer(bytearray):
        pass

    data = Buffer(10)
    data.view = memoryview(data)[2:]
    data.me = data


@kind
def ctypes_objects():
    class Struct(ctypes.Structure):
        _fields_ = [("x", ctypes.py_object), ("p", ctypes.POINTER(ctypes.c_int))]

    struct = Struct()
    rows = [struct]
    struct.x = rows
    struct.p = ctypes.pointer(ctypes.c_int(3))
    rows.append(rows)


@kind
def ctypes_callback():
    made = None
    rows = [ctypes.CFUNCTYPE(ctypes.c_int)(lambda: len(rows)), made]


@kind
def streams():
    raw = io.BytesIO(b"abc")
    text = io.TextIOWrapper(io.BufferedReader(raw))
    raw.me = text


@kind
def string_io():
    stream = io.StringIO()
    stream.me = stream


@kind
def locks_and_queues():
    waiting = queue.Queue()
    waiting.put(waiting)
    waiting.event = threading.Event()
    waiting.event.me = waiting


@kind
def thread_local():
    local = threading.local()
    local.me = local


@kind
def regular_expression():
    rows = []
    rows.append(re.compile("a(b)").match("ab"))
    rows.append([rows, re.compile("x").scanner("y")])


@kind
def operators():
    rows = []
    rows += [operator.itemgetter(rows and 0, 1), operator.attrgetter("a.b"), operator.methodcaller("m", rows)]
    rows.append(rows)


@kind
def slice_and_range():
    rows = []
    rows += [slice(rows, None), range(10**20), iter(range(10**20))]


@kind
def super_object():
    class Base:
        pass

    class Derived(Base):
        def __init__(self):
            self.up = super()

    Derived()


@kind
def random_state():
    made = random.Random(3)
    made.me = made


@kind
def arrays():
    class Array(array.array):
        pass

    made = Array("d", [1.0])
    made.me = [made]


@kind
def signature():
    def function(a, b: int = 3):
        return function

    function.__signature__ = inspect.signature(function)


@kind
def futures():
    loop = asyncio.new_event_loop()
    future = loop.create_future()
    future.me = future
    future.add_done_callback(lambda f: future)
    loop.close()


@finalized
def generator():
    node = Node()

    def generate():
        local = [node]
        yield local

    node.g = generate()
    next(node.g)
    return node


@finalized
def generator_delegating():
    node = Node()

    def inner():
        yield node

    def outer():
        yield from inner()

    node.g = outer()
    next(node.g)
    return node


@finalized
def unstarted_generator():
    node = Node()
    node.g = (x for x in [node])
    return node


@finalized
def coroutine():
    node = Node()

    @types.coroutine
    def wait():
        yield node

    async def run():
        await wait()
        return node

    node.c = run()
    node.c.send(None)
    return node


@finalized
def async_generator():
    node = Node()

    async def generate():
        yield node

    node.a = generate()
    try:
        node.a.asend(None).send(None)
    except StopIteration:
        pass
    return node


@finalized
def with_finalizer():
    class Holder:
        def __del__(self):
            self.me = None

    holder = Holder()
    holder.me = holder
    return holder


def make_zoo():
    """What is alive in odd places; returns a function that ends the threads."""
    go, ready = threading.Event(), []

    def blocked(begun):
        local = Node()
        local.me = local
        made = generator_of(local)
        next(made)
        begun.set()
        go.wait()

    def generator_of(local):
        inner = Node()
        inner.me = inner
        yield inner
        yield local

    async def suspended(node):
        inner = Node()
        inner.me = inner
        await Later()

    class Later:
        def __await__(self):
            deep = Node()
            deep.me = deep
            yield deep

    @functools.cache
    def cached(i):
        node = Node()
        node.me = node
        return node

    async def asynchronous():
        node = Node()
        node.me = node
        yield node

    kept = [
        generator_of(1),
        suspended(Node()),
        (Node() for _ in range(3)),
        asynchronous(),
        cached,
        iter([Node()]),
        map(cached, [90]),
    ]
    for i in range(50):
        cached(i)
    next(kept[0]), kept[1].send(None), next(kept[2])
    try:
        kept[3].asend(None).send(None)
    except StopIteration:
        pass
    context = contextvars.copy_context()
    node = Node()
    node.me = node
    context.run(contextvars.ContextVar("alive").set, node)
    kept += [context, weakref.WeakValueDictionary(a=node), make_only_weakly_known(node)]
    for _ in range(3):
        begun = threading.Event()
        ready.append(threading.Thread(target=blocked, args=(begun,), daemon=True))
        ready[-1].start()
        begun.wait()

    def end():
        go.set()
        for thread in ready:
            thread.join()

    end.kept = kept
    return end


def make_only_weakly_known(node):
    return weakref.ref(node, functools.partial(print, node))
