"""Kept objects of every common type name the line and step that made them, while another function makes and
drops the same types.  What may be recycled unseen is "unknown", never the other function's line."""

import sys

import pytest
from fresh import run

MECHANISMS = ["events", "allocator"] if sys.version_info >= (3, 13) else ["allocator"]
ROUNDS = 300

# Expressions: n is a fresh large int, x a fresh float, i the number of the round.
EXPRESSIONS = [
    "[]",
    "[i]",
    "[1, 2, 3, 4, 5, 6, 7, 8, 9]",
    "list(z)",
    "{}",
    "{'a': i}",
    "dict(a=i)",
    "{k: i for k in z}",
    "[k for k in z]",
    "set()",
    "{i}",
    "set(z)",
    "frozenset(z)",
    "n * 3",
    "x * 3.0",
    "complex(x, n)",
    "str(n)",
    "'%d' % n",
    "f'{n}'",
    "'a'.join(w)",
    "bytes(z)",
    "b'%d' % n",
    "bytearray(z)",
    "memoryview(q)",
    "Plain()",
    "Plain(i)",
    "Slotted()",
    "Sub(z)",
    "SubDict(a=1)",
    "SubTuple(z)",
    "SubFloat(x)",
    "SubInt(n)",
    "SubStr(n)",
    "Point(i, n)",
    "p.method",
    "z.append",
    "len.__call__",
    "Plain.make",
    "lambda: i",
    "outer(i)",
    "(k for k in z)",
    "agen()",
    "agen().__anext__()",
    "ag.asend(None)",
    "coroutine()",
    "Plain(i).__dict__",
    "ValueError(i)",
    "MemoryError()",
    "KeyError(n)",
    "StopIteration(n)",
    "Error(n)",
    "slice(n, i)",
    "range(n)",
    "iter(z)",
    "iter(t)",
    "iter(range(n))",
    "iter(range(5))",
    "iter({1: 2})",
    "iter(w[0])",
    "{1: 2}.items()",
    "enumerate(z)",
    "zip(z, z)",
    "map(str, z)",
    "reversed(z)",
    "contextvars.copy_context()",
    "var.set(i)",
    "weakref.ref(Plain, print)",
    "weakref.WeakSet()",
    "collections.deque(z)",
    "collections.OrderedDict(a=1)",
    "collections.defaultdict(list)",
    "collections.Counter(z)",
    "array.array('d', [x])",
    "functools.partial(len, i)",
    "functools.lru_cache(outer)",
    "itertools.count(n)",
    "itertools.chain(z)",
    "datetime.timedelta(i + 1, i)",
    "decimal.Decimal(n)",
    "fractions.Fraction(n, 7)",
    "threading.Lock()",
    "types.SimpleNamespace(a=i)",
    "type('T', (), {})",
    "sys._getframe()",
    "raised()",
    "traceback_of()",
    "property(len)",
    "staticmethod(len)",
    "super(Plain, p)",
    "re.match('a', 'ab')",
    "operator.itemgetter(n)",
    "object()",
    "scan('[1.5, {\"a\": [2]}]', 0)",
    "copy.copy(t * 2)",
    "struct.Struct('dd')",
    "types.ModuleType('m')",
    "types.MappingProxyType(d)",
    "z + z",
    "t + t",
    "t[1:]",
    "z[1:]",
    "z * 2",
    "tuple(z)",
    "sorted(z)",
    "d | d",
    "d.copy()",
    "z.copy()",
    "{1} | {2}",
    "pickle.loads(b)",
    "w[0].split()",
    "w[0] + w[1]",
    "w[0].upper()",
    "x.as_integer_ratio()",
    "divmod(n, 7)",
    "float(n)",
    "n.to_bytes(9, 'little')",
    "int.from_bytes(q, 'little')",
    "round(x * n)",
    "n << 70",
    "-x",
    "abs(-x)",
    *[f"({'x, ' * size})" for size in range(1, 23)],
]

HEAD = """
import array, collections, contextvars, copy, datetime, decimal, fractions, functools, gc, itertools, json, operator, pickle, re, struct, sys
import threading, types, warnings, weakref
from leakprobe import _core
warnings.simplefilter("ignore")
class Plain:
    def __init__(self, a=None): self.a = a
    def method(self): pass
    @classmethod
    def make(cls): pass
class Slotted: __slots__ = ("a",)
class Sub(list): pass
class SubDict(dict): pass
class SubTuple(tuple): pass
class SubFloat(float): pass
class SubInt(int): pass
class SubStr(str): pass
class Error(Exception): pass
Point = collections.namedtuple("Point", "a b")
def outer(i): return lambda: i
async def agen():
    yield 1
async def coroutine(): pass
def raised():
    try: 1 / 0
    except ZeroDivisionError as error: return error.with_traceback(None)
def traceback_of():
    try: 1 / 0
    except ZeroDivisionError as error: return error.__traceback__
var = contextvars.ContextVar("var")
z, t, w, q, p, d = [1, 2, 3], (1, [2], 3), ["one two", "three"], b"12345678901", Plain(), {"a": 1}
scan = json.decoder.JSONDecoder().scan_once
ag, b = agen(), pickle.dumps([1.5, {"a": 2}])
kept = []
def churn(i, n, x):
    for _ in range(3):
CHURN
def leak(i, n, x):
LEAK
"""

BODY = """
# Comprehensions are functions until 3.12, and have no qualified name on 3.10.
NAMELESS = ("<listcomp>", "<dictcomp>", "<genexpr>", "<lambda>")
_core.start(8, "/nowhere/")
for i in range(ROUNDS):
    churn(i, 10 ** 12 + i, i + 0.25)
    leak(i, 10 ** 12 + i, i + 0.25)
    churn(i, 10 ** 12 + i, i + 0.75)
    if i % 60 == 30:
        gc.collect(i % 3)
    _core.mark()
def line_of(site):
    # Some are made in a function that ours calls.
    frames = [(frame[2].split(".")[0], frame[1]) for frame in _core.site_frames(site)]
    ours = [line for name, line in frames if name in ("churn", "leak")] or [line for name, line in frames if name in NAMELESS]
    return ours[0] if ours else None
births = [_core.site_of(op) for op in kept]
print(json.dumps([[(line_of(birth[0]) if birth[0] > 15 else -birth[0], birth[1]) if birth else None for birth in births],
                  leak.__code__.co_firstlineno + 1, churn.__code__.co_firstlineno + 1]))
"""


def program(expressions, rounds):
    churn = "\n".join(f"        a = {text}" for text in expressions)
    keep = "\n".join(f"    kept.append({text})" for text in expressions)
    return HEAD.replace("CHURN", churn).replace("LEAK", keep).lstrip("\n") + BODY.replace(
        "ROUNDS", str(rounds)
    )


def may_be_unknown(expression, mechanism):
    """What a free list, which stays in use, may have handed out unseen."""
    if mechanism == "events":
        return False
    kinds = ["MemoryError"]
    if sys.version_info < (3, 14):
        kinds += ["slice(", "copy_context", "__anext__", "asend"]
    if sys.version_info < (3, 11):
        kinds += ["_getframe"]
    return any(kind in expression for kind in kinds)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kept_objects_of_every_type_name_their_line_while_others_churn(mechanism):
    births, first, churned = run(program(EXPRESSIONS, ROUNDS), env={"LEAKPROBE_MECHANISM": mechanism})
    count = len(EXPRESSIONS)
    assert len(births) == ROUNDS * count
    wrong = []
    for place, birth in enumerate(births):
        step, at = divmod(place, count)
        is_unknown = birth is None or birth[0] in (None, -3)
        if is_unknown and may_be_unknown(EXPRESSIONS[at], mechanism):
            continue
        if birth != [first + at, step]:
            wrong.append(
                (EXPRESSIONS[at], "expected", first + at, step, "got", birth, "churned at", churned + 1 + at)
            )
    assert not wrong, f"{len(wrong)} wrong: {wrong[:5]}"
