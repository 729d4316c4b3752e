"""Whether a larger block takes over what the one before it had: what the lines that made it say.

``self.rows = torch.cat([self.rows, new])`` and ``text += line`` are made of what they replace;
``batch = read(size)`` and ``x = x - x.mean()`` are not, and what they make is larger only because more was
asked for.
"""

import ast
import functools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from leakprobe.judge.causes.case import ATTRIBUTE_EDGES, name_of
from leakprobe.judge.slices import (
    Function,
    Scope,
    Uses,
    arguments_of,
    filled_with,
    head_reads,
    is_chain,
    last_name,
    reads,
    receiver_of,
    statements_of,
    targets_of,
)
from leakprobe.judge.statements import NAME_EDGES, functions_at, key_of, tree_of
from leakprobe.model import inert
from leakprobe.model.entry import Path
from leakprobe.model.frames import FrameTuple, is_user_file

#: What a method calls the object that it belongs to: it is followed by its attributes.
SELVES = frozenset({"self", "cls"})


class Kept(NamedTuple):
    """Names of what keeps the block: attributes and keys; locals of ``function`` (globals where it is "")."""

    members: frozenset[str]
    variables: frozenset[str]
    function: str


class Line(NamedTuple):
    """A frame of the stack, read: the statements over its line, and the function around it."""

    statements: list[ast.stmt]
    scope: Scope
    function: str


def carries_over(stack: Sequence[FrameTuple], path: Path = ()) -> bool | None:
    """True if what the line that allocates makes is made of what the path ends at, as that was before; None
    where none of the source is known.

    Followed from the line that allocates, or the innermost of the user's own, out through the parameters of
    the functions that called it.
    """
    frames = [f for i, f in enumerate(stack) if i == 0 or is_user_file(f[0])]
    known = [line for line in map(read_line, frames) if line is not None]
    inner = ""  # the function whose parameters are followed; "" where all of a line counts
    for number, line in enumerate(known):
        uses = uses_of(line, inner)
        if is_met(kept_by(path, known, line), uses, line) or attributes_set(line) & uses.members:
            return True
        if not uses.parameters - SELVES:
            return False
        is_own = number > 0 or is_user_file(stack[0][0])
        inner = line.function if is_own else ""
    return False if known else None


def read_line(frame: FrameTuple) -> Line | None:
    filename, number, _ = frame
    scope = next(reversed(scopes_at(filename, number)), None)
    if scope is None:
        return None
    found = scope.at(number)
    name = scope.node.name if isinstance(scope.node, Function) else ""
    return Line(found, scope, name) if found else None


@functools.lru_cache
def scopes_at(filename: str, line: int) -> list[Scope]:
    """The module and the functions around a line, outermost first."""
    tree = tree_of(filename)
    return [Scope(node) for node in (tree, *functions_at(tree, line))] if tree is not None else []


def kept_by(path: Path, lines: Iterable[Line], line: Line) -> Kept:
    """The last name on the path that the program gave, and those below it that libraries did; without a path
    what the line itself assigns to, or calls a method of.
    """
    if not path:
        targets = [ast.unparse(t) for one in line.statements for t in targets_of(one) if is_chain(t)]
        every = frozenset(map(last_name, {*targets, *map(receiver_of, line.statements)} - {""}))
        return Kept(every, every, line.function)
    members: set[str] = set()
    for at in range(len(path) - 1, 0, -1):
        node, key = path[at], key_of(path[at])
        if node.edge in NAME_EDGES:
            function = path[0].text.partition("(")[0].rpartition(".")[-1] if path[0].edge == "frame" else ""
            names = copies_of(name_of(node), lines)
            return Kept(frozenset(members | names), names, function)
        if node.edge in ATTRIBUTE_EDGES or key is not None:
            members.add(str(key) if key is not None else name_of(node))
        if node.edge in ATTRIBUTE_EDGES and is_users(path[at - 1].type):
            break
    return Kept(frozenset(members), frozenset(), "")


def attributes_set(line: Line) -> set[str]:
    """Those of objects that the statements assign to: another owner than they may be on the path, as an
    optimizer is on that to a parameter.
    """
    targets = (target for one in line.statements for target in targets_of(one))
    return {target.attr for target in targets if isinstance(target, ast.Attribute)}


def is_users(type_name: str | None) -> bool:
    """True for a class of the user's own code."""
    module = (type_name or "").rpartition(".")[0]
    filename = inert.file_of_module(module)
    return module == "__main__" or (filename is not None and is_user_file(filename))


def copies_of(name: str, lines: Iterable[Line]) -> frozenset[str]:
    """The name, and what the same functions assign it to as it is: ``self.rows = rows``."""
    found = {name}
    for line in lines:
        for one in ast.walk(line.scope.node):
            if (
                isinstance(one, ast.Assign)
                and is_chain(one.value)
                and last_name(ast.unparse(one.value)) == name
            ):
                found.update(last_name(ast.unparse(t)) for t in targets_of(one) if is_chain(t))
    return frozenset(found)


def uses_of(line: Line, inner: str) -> Uses:
    """What the statements of a line are made of; of calls of ``inner`` only what they are given."""
    found = Uses()
    for one in line.statements:
        read = (
            [name for call in calls_of(one, inner) for name in given_to(call)] if inner else head_reads(one)
        )
        found.add(line.scope.uses(one, read or head_reads(one)))
        targets = [ast.unparse(target) for target in targets_of(one) if is_chain(target)]
        for later in statements_of(line.scope.node.body) if targets and not inner else ():
            if later is not one:
                found.add(line.scope.uses(later, filled_with(later, targets)))
    return found


def calls_of(one: ast.stmt, function: str) -> list[ast.Call]:
    return [
        call
        for call in ast.walk(one)
        if isinstance(call, ast.Call)
        and is_chain(call.func)
        and last_name(ast.unparse(call.func)) == function
    ]


def given_to(call: ast.Call) -> list[str]:
    return [name for part in arguments_of(call) for name in reads(part)]


def is_met(kept: Kept, uses: Uses, line: Line) -> bool:
    carried = uses.carried if line.function == kept.function else set()
    return bool(kept.members & uses.members or kept.variables & (uses.outer | carried))
