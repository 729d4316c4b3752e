"""What a statement's value is made of: names that had their values before it ran.

Upward-exposed uses by reaching definitions (Aho, Lam, Sethi and Ullman, Compilers, second edition, 9.2),
within one function, from the syntax tree.  What only decides whether a statement runs is no part of its
value.
"""

import ast
import dataclasses
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeGuard

Function = ast.FunctionDef | ast.AsyncFunctionDef
Chain = ast.Name | ast.Attribute | ast.Subscript
LOOPS = (ast.For, ast.AsyncFor, ast.While)
WITHS = (ast.With, ast.AsyncWith)
#: Attributes of arrays and tensors that have none of their content.
ABOUT = frozenset({"shape", "dtype", "device", "ndim", "layout", "itemsize", "nbytes"})


class Place(NamedTuple):
    """Where a statement stands: at ``number`` in its block."""

    block: list[ast.stmt]
    number: int
    parent: ast.stmt | None  # None: the scope itself


@dataclasses.dataclass
class Uses:
    """Names that the slice ends at.

    carried: of a loop around the statement, which gives them a value for its next turn.  members: attributes
    and keys.  outer: globals and what encloses the function.  parameters: of the function.
    """

    carried: set[str] = dataclasses.field(default_factory=set)
    members: set[str] = dataclasses.field(default_factory=set)
    outer: set[str] = dataclasses.field(default_factory=set)
    parameters: set[str] = dataclasses.field(default_factory=set)

    def add(self, other: "Uses") -> None:
        self.carried |= other.carried
        self.members |= other.members
        self.outer |= other.outer
        self.parameters |= other.parameters


class Scope:
    """A function or a module."""

    def __init__(self, node: Function | ast.Module):
        self.node = node
        self._places: dict[int, Place] = {}
        self._note(node.body, None)
        self.parameters = parameters_of(node)
        own = (
            name for one in statements_of(node.body) for target in targets_of(one) for name in bare(target)
        )
        declared = (
            one.names for one in statements_of(node.body) if isinstance(one, ast.Global | ast.Nonlocal)
        )
        self._own = {*self.parameters, *own}.difference(*declared)

    def _note(self, block: list[ast.stmt], parent: ast.stmt | None) -> None:
        for number, one in enumerate(block):
            self._places[id(one)] = Place(block, number, parent)
            for inner in blocks_of(one):
                self._note(inner, one)

    def at(self, line: int) -> list[ast.stmt]:
        """The statements over a line: without a body, else those whose head is there."""
        found = [one for one in statements_of(self.node.body) if one.lineno <= line <= (one.end_lineno or 0)]
        simple = [one for one in found if not hasattr(one, "body")]
        return simple or [one for one in found if one.lineno == line]

    def uses(self, statement: ast.stmt, read: Iterable[str]) -> Uses:
        """What these chains ("x", "self.rows", "state['h']") are made of as the statement reads them."""
        found = Uses()
        pending = [(statement, chain) for chain in read]
        seen: set[tuple[int, str]] = set()
        while pending:
            at, chain = pending.pop()
            if (id(at), chain) not in seen:
                seen.add((id(at), chain))
                pending += self._definitions(at, chain, found)
        return found

    def _definitions(self, at: ast.stmt, chain: str, found: Uses) -> Iterator[tuple[ast.stmt, str]]:
        """What the value of a chain before ``at`` comes from; where that is no statement, it is added to
        ``found``.
        """
        while True:
            place = self._places[id(at)]
            for one in reversed(place.block[: place.number]):
                if defines(one, chain):
                    yield from ((one, name) for name in value_reads(one, chain))
                    return
                for inner in may_define(one, chain):
                    yield from ((inner, name) for name in value_reads(inner, chain))
            parent = place.parent
            if parent is None:
                self._expose(chain, found)
                return
            if is_headed(parent, chain):
                yield from ((parent, name) for name in head_reads(parent))
                return
            if isinstance(parent, LOOPS) and any(defines(one, chain) for one in statements_of(parent.body)):
                (found.members if is_member(chain) else found.carried).add(last_name(chain))
            at = parent

    def _expose(self, chain: str, found: Uses) -> None:
        root = first_name(chain)
        if is_member(chain):
            found.members |= members_of(chain)
        if root in self.parameters:
            found.parameters.add(root)
        elif root not in self._own or isinstance(self.node, ast.Module):
            found.outer.add(root)


# ---- statements ----


def parameters_of(node: Function | ast.Module) -> list[str]:
    if isinstance(node, ast.Module):
        return []
    given = node.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    return [one.arg for one in every if one is not None]


def blocks_of(one: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The bodies of a statement, but for those of functions and classes, which have scopes of their own."""
    if isinstance(one, (*Function.__args__, ast.ClassDef)):
        return
    for name in ("body", "orelse", "finalbody"):
        block = getattr(one, name, None)
        if block:
            yield block
    for part in (*getattr(one, "handlers", ()), *getattr(one, "cases", ())):
        yield part.body


def statements_of(block: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    for one in block:
        yield one
        for inner in blocks_of(one):
            yield from statements_of(inner)


def targets_of(one: ast.stmt) -> list[ast.expr]:
    """What a statement itself assigns to, those of tuples one by one."""
    if isinstance(one, ast.Assign):
        targets = one.targets
    elif isinstance(one, ast.AugAssign | ast.For | ast.AsyncFor) or (
        isinstance(one, ast.AnnAssign) and one.value is not None
    ):
        targets = [one.target]
    elif isinstance(one, WITHS):
        targets = [item.optional_vars for item in one.items if item.optional_vars is not None]
    else:
        return []
    return [part for target in targets for part in parts_of(target)]


def parts_of(target: ast.expr) -> list[ast.expr]:
    if isinstance(target, ast.Tuple | ast.List):
        return [part for element in target.elts for part in parts_of(element)]
    return [target.value] if isinstance(target, ast.Starred) else [target]


def defines(one: ast.stmt, chain: str) -> bool:
    """True if the chain has its value from this statement, wherever it is run; a with runs its body."""
    if isinstance(one, WITHS) and any(defines(inner, chain) for inner in one.body):
        return True
    if isinstance(one, ast.For | ast.AsyncFor):  # it may have no turn
        return False
    return any(is_chain(target) and is_start(ast.unparse(target), chain) for target in targets_of(one))


def may_define(one: ast.stmt, chain: str) -> Iterator[ast.stmt]:
    """Statements that are not always run, or change what the chain leads to: ``parts.append(rows)``."""
    for inner in (one, *(more for block in blocks_of(one) for more in statements_of(block))):
        if (
            (inner is not one and defines(inner, chain))
            or is_start(receiver_of(inner), chain)
            or (isinstance(inner, ast.For | ast.AsyncFor) and is_headed(inner, chain))
        ):
            yield inner


def is_headed(parent: ast.stmt, chain: str) -> bool:
    """True if a loop or a with gives the chain its value in its head."""
    if not isinstance(parent, (ast.For, ast.AsyncFor, *WITHS)):
        return False
    return any(is_chain(target) and is_start(ast.unparse(target), chain) for target in targets_of(parent))


def receiver_of(one: ast.stmt) -> str:
    """ "self.parts" of ``self.parts.append(rows)``; "" of other statements."""
    call = one.value if isinstance(one, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and is_chain(call.func.value):
        return ast.unparse(call.func.value)
    return ""


def filled_with(one: ast.stmt, chains: Iterable[str]) -> list[str]:
    """What a statement writes into the contents of one of the chains: ``new[:n] = old``, ``new.copy_(old)``,
    ``copyto(new, old)``.
    """
    if isinstance(one, ast.Assign | ast.AugAssign):
        inside = [ast.unparse(t) for t in targets_of(one) if isinstance(t, ast.Subscript) and is_chain(t)]
        return reads(one.value) if is_any_start(chains, inside) else []
    if not isinstance(one, ast.Expr) or not isinstance(one.value, ast.Call):
        return []
    given = arguments_of(one.value)
    written = [receiver_of(one), *(ast.unparse(value) for value in given if is_chain(value))]
    others = [name for value in given for name in reads(value) if not is_any_start(chains, [name])]
    return others if is_any_start(chains, written) else []


def is_any_start(chains: Iterable[str], targets: Iterable[str]) -> bool:
    return any(is_start(chain, target) for chain in chains for target in targets)


# ---- what is read ----


def value_reads(one: ast.stmt, chain: str) -> list[str]:
    """What a statement that defines a chain, or changes it, makes it of."""
    if isinstance(one, WITHS) and not is_headed(one, chain):
        return [name for inner in one.body if defines(inner, chain) for name in value_reads(inner, chain)]
    if isinstance(one, ast.Expr) and isinstance(one.value, ast.Call):
        return [chain, *(name for value in arguments_of(one.value) for name in reads(value))]
    if isinstance(one, ast.AugAssign):
        return [chain, *reads(one.value)]
    if isinstance(one, ast.Assign):
        return reads(part_of(one, chain))
    return head_reads(one)


def part_of(one: ast.Assign, chain: str) -> ast.expr:
    """The value, or the part of a tuple that the chain gets of it."""
    for target in one.targets:
        if isinstance(target, ast.Tuple) and isinstance(one.value, ast.Tuple):
            if len(target.elts) == len(one.value.elts):
                for left, right in zip(target.elts, one.value.elts, strict=True):
                    if is_chain(left) and is_start(ast.unparse(left), chain):
                        return right
    return one.value


def head_reads(one: ast.stmt) -> list[str]:
    """What a statement without a body reads, or the head of one that has one."""
    if isinstance(one, ast.AugAssign):
        return [*reads(one.target), *reads(one.value)]
    if isinstance(one, WITHS):
        return [name for item in one.items for name in reads(item.context_expr)]
    value = next(
        (getattr(one, name) for name in ("value", "iter", "test", "subject") if hasattr(one, name)), None
    )
    return reads(value) if value is not None else []


def reads(value: ast.AST) -> list[str]:
    """The chains of an expression; of a method's call the object, not the method."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        return [name for part in (value.func.value, *arguments_of(value)) for name in reads(part)]
    if is_chain(value):
        return [*([] if is_about(value) else [ast.unparse(value)]), *indices(value)]
    return [name for part in ast.iter_child_nodes(value) for name in reads(part)]


def is_about(chain: Chain) -> bool:
    """True for what says how an array is made, and has none of its content."""
    return any(isinstance(one, ast.Attribute) and one.attr in ABOUT for one in ast.walk(chain))


def arguments_of(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def indices(chain: Chain) -> list[str]:
    """What a chain's indices read, and the chains that one which is no name stands for."""
    found: list[str] = []
    at: ast.expr = chain
    while isinstance(at, ast.Attribute | ast.Subscript):
        if isinstance(at, ast.Subscript) and not isinstance(at.slice, ast.Constant):
            found += reads(at.slice)
        at = at.value
    return found


# ---- chains ----


def is_chain(value: ast.AST | None) -> TypeGuard[Chain]:
    """True for a name with attributes and indices."""
    while isinstance(value, ast.Attribute | ast.Subscript):
        value = value.value
    return isinstance(value, ast.Name)


def is_start(target: str, chain: str) -> bool:
    """True if what assigns to ``target`` gives the chain another value: "x" of "x" and of "x.shape"."""
    return bool(target) and (chain == target or chain.startswith((f"{target}.", f"{target}[")))


def is_member(chain: str) -> bool:
    return last_name(chain) != first_name(chain) or "." in chain


def first_name(chain: str) -> str:
    return chain.partition(".")[0].partition("[")[0]


def last_name(chain: str) -> str:
    """ "rows" of "self.rows" and of "self.rows[0]", "h" of "state['h']"."""
    tree = ast.parse(chain, mode="eval").body
    while isinstance(tree, ast.Subscript):
        if isinstance(tree.slice, ast.Constant) and isinstance(tree.slice.value, str):
            return tree.slice.value
        tree = tree.value
    return tree.attr if isinstance(tree, ast.Attribute) else first_name(chain)


def members_of(chain: str) -> set[str]:
    """The attributes and keys that it goes through: what "self.table.weight.data" has is a part of each."""
    tree = ast.parse(chain, mode="eval").body
    found = {last_name(chain)}
    while isinstance(tree, ast.Attribute | ast.Subscript):
        found.add(last_name(ast.unparse(tree)))
        tree = tree.value
    return found


def bare(target: ast.expr) -> list[str]:
    return [target.id] if isinstance(target, ast.Name) else []
