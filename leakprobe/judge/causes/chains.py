"""Chains that get one link a step: each wraps, or refers to, what the step before left."""

import itertools

from leakprobe.judge.causes.case import ITEM_EDGES, NAMED_EDGES, Case, Found, at, is_a, is_attribute, name_of
from leakprobe.judge.causes.containers import collects, is_short
from leakprobe.judge.causes.hooks import MODULE
from leakprobe.judge.causes.tensors import GRAPH_EDGES
from leakprobe.model.bounds import LONGEST_LINK
from leakprobe.model.entry import Path, PathNode

#: Types of a link => what to do about such a chain; the first that fits.
FIXES = (
    (
        ("function", "method", "functools.partial", "builtin_function_or_method"),
        "wrap the original function once, before the loop, not the previous step's wrapper",
    ),
    (
        (
            "generator",
            "coroutine",
            "map",
            "filter",
            "zip",
            "enumerate",
            "itertools.chain",
            "itertools.islice",
        ),
        "create the iterator from its source in each step, not from the previous step's iterator",
    ),
    (
        ("BaseException",),
        "raise a new error (raise ... from None), so that it does not keep the previous step's error",
    ),
    (
        (MODULE,),
        "wrap the original module once, or merge or remove the earlier wrapper before it is wrapped again",
    ),
)
OTHERWISE = "cut the link to the previous step's object, or keep a bounded list instead of a chain"


def chain(case: Case) -> Found:
    """An object below the holder refers to one of its own type in the same way, and that again."""
    if case.kind not in ("held", "outside", "lost"):
        return None
    is_alone = is_short(case) or not collects(case)
    links = repeated(case.path[case.depth :], of_containers=is_alone)
    links = links or outermost(case) or (wrapped(case.below) if is_alone else ())
    if not links:
        return None
    fix = next((words for types, words in FIXES if any(is_a(n, *types) for n in links)), OTHERWISE)
    return "growing_chain", f"{fix}{at(case)}"


def outermost(case: Case) -> Path:
    """The callable or iterator that a name stands for, where what several steps made lies below it, and no
    container: the steps before are reached through the one that it wraps.
    """
    named = case.path[case.depth + 1 :][:1]
    if (
        case.holder is None
        or not named
        or case.holder.text != f"{named[0].text} in {case.path[case.depth].text}"
    ):
        return ()
    wrappers = (name for types, _ in FIXES for name in types)
    return named if case.steps > 1 and is_a(named[0], *wrappers) else ()


def wrapped(path: Path) -> Path:
    """A module that has one of its own class as a part: where one name stands for the latest, the earlier
    ones are parts of it.
    """
    for (first, table), (_, second) in itertools.pairwise(itertools.pairwise(path)):
        if (
            is_a(first, MODULE)
            and first.type == second.type
            and is_attribute(first, table, ("_modules",), MODULE)
        ):
            return (first,)
    return ()


def repeated(path: Path, *, of_containers: bool = False) -> Path:
    """One link of the first chain on the path, or nothing: the same edges to the same types twice in a row,
    outside of autograd graphs, where not all are containers.

    of_containers: they may all be, where each refers to the next at the same place: ``state = (new, state)``.
    """
    for size in range(1, LONGEST_LINK + 1):
        for start in range(1, len(path) - size - size + 1):
            first, second = path[start : start + size], path[start + size : start + size + size]
            before = path[start - 1]
            if (
                [link_of(n) for n in first] == [link_of(n) for n in second]
                and before.type == first[-1].type
                and (any(is_link(n) for n in first) or (of_containers and is_same_place(first, second)))
            ):
                return first
    return ()


def link_of(node: PathNode) -> tuple[str, str | None, str]:
    """What links of one chain share.  The stages of one pipeline have other names for what they wrap."""
    return node.edge, node.type, name_of(node) if node.edge in NAMED_EDGES else ""


def is_same_place(first: Path, second: Path) -> bool:
    """True for tuples and dicts in their like under one key or index."""
    return all(
        is_a(n, "tuple", "dict") and n.edge in ITEM_EDGES and name_of(n) == name_of(m)
        for n, m in zip(first, second, strict=True)
    )


def is_link(node: PathNode) -> bool:
    """Containers in containers are no chain, and graphs have rules of their own."""
    return node.edge not in GRAPH_EDGES and not is_a(
        node,
        "list",
        "dict",
        "tuple",
        "set",
        "collections.deque",
        MODULE,
        "traceback",
        "frame",  # those of one stack are no links
    )
