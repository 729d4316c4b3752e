"""The statement that makes a holder grow, from the syntax trees of the user's functions on a stack.

Where a name is bound anew in each step (``self.total += loss``), or a container has no stamp of its last
growth, the heap does not tell that line; the functions that made what is kept do.
"""

import ast
import functools
import linecache
import operator
import os
from collections.abc import Iterable, Iterator, Sequence

from leakprobe.judge.causes.case import ATTRIBUTE_EDGES, KEY_EDGES, is_a, name_of
from leakprobe.judge.causes.containers import CONTAINERS, is_object_array
from leakprobe.judge.causes.hooks import HOOK_EDGES, is_hook_table
from leakprobe.judge.causes.tensors import GRAPH_EDGES
from leakprobe.model import inert
from leakprobe.model.entry import Path, PathNode
from leakprobe.model.frames import FrameTuple, is_user_file

#: Methods that add to a container.
ADDING = frozenset(
    {"append", "appendleft", "add", "insert", "extend", "setdefault", "update", "put", "put_nowait"}
)
NAME_EDGES = ("global", "local", "closure")
#: What stands before a name where it is the file's own.
OWN = frozenset({""})
Function = ast.FunctionDef | ast.AsyncFunctionDef


@functools.lru_cache(maxsize=1)
def parsed(source: str) -> ast.Module | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def tree_of(filename: str) -> ast.Module | None:
    """The syntax tree of a file, or None where its text is not at hand."""
    lines = linecache.getlines(filename)
    return parsed("".join(lines)) if lines else None


def functions_at(tree: ast.Module, line: int) -> list[Function]:
    """The functions around a line, outermost first."""
    found = [n for n in ast.walk(tree) if isinstance(n, Function) and n.lineno <= line <= (n.end_lineno or 0)]
    return sorted(found, key=lambda function: function.lineno)


def name_at(tree: ast.Module, line: int) -> str:
    """The qualified name of the innermost function around a line, or "<module>"."""
    inner = functions_at(tree, line)
    if not inner:
        return "<module>"
    around = [
        n for n in ast.walk(tree) if isinstance(n, ast.ClassDef) and n.lineno <= line <= (n.end_lineno or 0)
    ]
    names = sorted([*around, *inner], key=lambda one: one.lineno)
    names = names[: names.index(inner[-1]) + 1]
    parts = [
        f"{one.name}." if isinstance(one, ast.ClassDef) else f"{one.name}.<locals>." for one in names[:-1]
    ]
    return "".join([*parts, inner[-1].name])


def growing_frame(path: Path, depth: int, stack: Sequence[FrameTuple]) -> FrameTuple | None:
    """The user's line that makes the holder, at ``depth`` of the path, grow; None where that is not clear.

    ``stack``: where what is kept was made, innermost first; where that is not known, as of nodes of graphs,
    the modules of the holder's owner and of the path's root are read.
    """
    at = named_above(path, depth)
    if at is None:
        return None
    if not stack:
        return only_frame(path, at)
    for filename, line, function in stack:
        if not is_user_file(filename):
            continue
        tree = tree_of(filename)
        if tree is None:
            continue
        inner = functions_at(tree, line)
        found = best(statements(inner[-1] if inner else tree, path, at, prefixes(path, at, filename, tree)))
        if found is not None:
            is_same = functions_at(tree, found) == inner
            return (filename, found, function if is_same else name_at(tree, found))
    return None


def only_frame(path: Path, at: int) -> FrameTuple | None:
    """The one statement in the owner's module, or the root's, that surely makes the named element grow."""
    owner = (path[at - 1].type or "").rpartition(".")[0]
    root = path[0].text if path[0].edge == "module" else ""
    for module in (owner, root):
        filename = inert.file_of_module(module)
        tree = tree_of(filename) if filename and is_user_file(filename) else None
        if tree is None or not filename:
            continue
        before = prefixes(path, at, filename, tree)
        sure = {line for is_sure, line in statements(tree, path, at, before) if is_sure}
        if len(sure) == 1:
            line = sure.pop()
            return (filename, line, name_at(tree, line))
    return None


def named_above(path: Path, depth: int) -> int | None:
    """The place of the holder, or of what leads to it, that the program has a name for."""
    for at in range(min(depth, len(path) - 1), 0, -1):
        node = path[at]
        is_named = node.edge in ATTRIBUTE_EDGES or node.edge in NAME_EDGES or key_of(node) is not None
        if is_named or node.edge in HOOK_EDGES:
            return at
        if node.edge not in GRAPH_EDGES:
            return None
    return None


def key_of(node: PathNode) -> str | int | None:
    """The constant that an item of a dict stands under."""
    if node.edge not in KEY_EDGES or not node.text.startswith("["):
        return None
    try:
        value = ast.literal_eval(node.text[1 : node.text.index("]")])
    except (ValueError, SyntaxError):
        return None
    return value if isinstance(value, str | int) else None


def prefixes(path: Path, at: int, filename: str, tree: ast.Module) -> frozenset[str]:
    """What stands before the element's name in this file, "" for nothing: a global is named so in its own
    module and where it is imported from there, and as an attribute where its module is.
    """
    node, owner = path[at], path[at - 1].text
    if node.edge != "global":
        return OWN
    home = inert.file_of_module(owner)
    found = {""} if home is None or os.path.abspath(home) == os.path.abspath(filename) else set()
    for one in ast.walk(tree):
        if isinstance(one, ast.Import):
            found.update(alias.asname or alias.name for alias in one.names if alias.name == owner)
        elif isinstance(one, ast.ImportFrom):
            module = one.module or ""
            is_named_here = any(alias.name in (name_of(node), "*") for alias in one.names)
            if is_named_here and is_module(owner, module, one.level):
                found.add("")
            ends = [(f"{module}.{alias.name}".lstrip("."), alias) for alias in one.names]
            found.update(
                alias.asname or alias.name for end, alias in ends if is_module(owner, end, one.level)
            )
    return frozenset(found)


def is_module(owner: str, name: str, level: int) -> bool:
    """True if a module is the one of a name in an import; of a relative one only the end of it is known."""
    return owner == name or (level > 0 and f".{owner}".endswith(f".{name}" if name else ""))


def nodes_in_scope(tree: ast.AST, node: PathNode) -> Iterator[ast.AST]:
    """The syntax nodes below ``tree``; of a global, without the functions in which its name is a local's."""
    queue = [tree]
    while queue:
        one = queue.pop()
        if node.edge == "global" and isinstance(one, Function) and binds(one, name_of(node)):
            continue
        yield one
        queue += ast.iter_child_nodes(one)


def binds(function: Function, name: str) -> bool:
    """True if a name is a parameter or a local variable of a function."""
    every = function.args
    given = [*every.posonlyargs, *every.args, *every.kwonlyargs, every.vararg, every.kwarg]
    if any(one is not None and one.arg == name for one in given):
        return True
    found = False
    queue: list[ast.AST] = [*function.body]
    while queue:
        one = queue.pop()
        if isinstance(one, ast.Global) and name in one.names:
            return False
        found = found or (isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Store))
        if not isinstance(one, Function | ast.Lambda | ast.ClassDef):
            queue += ast.iter_child_nodes(one)
    return found


def statements(tree: ast.AST, path: Path, at: int, before: frozenset[str]) -> Iterator[tuple[bool, int]]:
    """(whether it surely makes it grow, line) of each statement that may; ``before``: prefixes()."""
    node = path[at]
    if node.edge in HOOK_EDGES or is_hook_table(path[at - 1], node):
        calls = (one for one in ast.walk(tree) if isinstance(one, ast.Call))
        yield from ((True, call.lineno) for call in calls if registers_hook(call))
        return
    container = is_a(node, *CONTAINERS) or is_object_array(path, at)
    for one in nodes_in_scope(tree, node):
        if isinstance(one, ast.AugAssign) and is_named(one.target, node, before):
            yield True, one.lineno
        elif isinstance(one, ast.Assign | ast.AnnAssign) and one.value is not None:
            yield from assignments(one, node, container, before)
        elif container and isinstance(one, ast.Call) and adds_to(one, node, before):
            yield True, one.lineno


def assignments(
    one: ast.Assign | ast.AnnAssign, node: PathNode, container: bool, before: frozenset[str]
) -> Iterator[tuple[bool, int]]:
    for target in one.targets if isinstance(one, ast.Assign) else [one.target]:
        if container and isinstance(target, ast.Subscript) and is_named(target.value, node, before):
            yield True, one.lineno
        elif is_named(target, node, before) and one.value is not None:
            yield any(is_named(part, node, before) for part in ast.walk(one.value)), one.lineno


def adds_to(call: ast.Call, node: PathNode, before: frozenset[str]) -> bool:
    method = call.func
    if not isinstance(method, ast.Attribute) or method.attr not in ADDING:
        return False
    return is_named(method.value, node, before)


def registers_hook(call: ast.Call) -> bool:
    """A call of one of torch's methods that register hooks."""
    if not isinstance(call.func, ast.Attribute):
        return False
    return call.func.attr.startswith("register_") and call.func.attr.endswith("hook")


def is_named(expression: ast.AST, node: PathNode, before: frozenset[str]) -> bool:
    """True if the expression is the name that the path has for the node."""
    key = key_of(node)
    if key is not None:
        return (
            isinstance(expression, ast.Subscript)
            and isinstance(expression.slice, ast.Constant)
            and expression.slice.value == key
        )
    if isinstance(expression, ast.Attribute):
        is_global = node.edge == "global" and ast.unparse(expression.value) in before
        return expression.attr == name_of(node) and (is_global or node.edge in ATTRIBUTE_EDGES)
    is_variable = "" in before and node.edge in NAME_EDGES
    return is_variable and isinstance(expression, ast.Name) and expression.id == name_of(node)


def best(found: Iterable[tuple[bool, int]]) -> int | None:
    """The first line that surely makes it grow; else the only one that may."""
    every = sorted(set(found), key=operator.itemgetter(1))
    sure = [line for is_sure, line in every if is_sure]
    maybe = [line for is_sure, line in every if not is_sure]
    if sure:
        return sure[0]
    return maybe[0] if len(maybe) == 1 else None
