"""Twelve loops of plain Python that do little but allocate.  Each takes a size and returns nothing."""

import json


class Plain:
    def __init__(self, a, b):
        self.a, self.b = a, b


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a, b):
        self.a, self.b = a, b


def tuples(n):
    return [(i, i + 1, "x") for i in range(n)]


def dicts(n):
    return [{"a": i, "b": None} for i in range(n)]


def lists(n):
    return [[i, None, None] for i in range(n)]


def strings(n):
    return ["key-%d" % i for i in range(n)]


def closures(n):
    return [lambda i=i: i for i in range(n)]


def instances(n):
    return [Plain(i, None) for i in range(n)]


def slotted(n):
    return [Slotted(i, None) for i in range(n)]


def floats(n):
    return [i * 0.5 for i in range(n)]


TEXT = json.dumps([{"id": i, "name": "n%d" % i, "tags": ["a", "b"], "v": i / 7} for i in range(60)])


def parse_json(n):
    for _ in range(n // 600):
        json.loads(TEXT)


def append(n):
    for _ in range(n // 1000):
        out = []
        for i in range(2000):
            out.append(None)


def sets(n):
    return [{i, i + 1} for i in range(n // 2)]


def fib(n):
    """Allocates almost nothing: the control, which must stay at 1.00."""

    def inner(k):
        return k if k < 2 else inner(k - 1) + inner(k - 2)

    for _ in range(max(1, n // 20000)):
        inner(16)


ALL = [tuples, dicts, lists, strings, closures, instances, slotted, floats, parse_json, append, sets, fib]
