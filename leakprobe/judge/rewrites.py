"""The change that a cause asks for, shown on the source line itself: `history.append(loss)` becomes
`history.append(loss.item())`.

From the syntax tree of that line; no file is written.  Where the line is no simple case, nothing is shown.
"""

import ast
import dataclasses
import linecache
from collections.abc import Callable, Iterable, Iterator, Sequence

from leakprobe.judge.causes.case import Case, is_a, name_of
from leakprobe.judge.causes.hooks import is_registered_again
from leakprobe.judge.slices import arguments_of
from leakprobe.judge.statements import ADDING, functions_at, registers_hook, tree_of
from leakprobe.model.entry import Path
from leakprobe.model.frames import FrameTuple

ARRAY, TENSOR = "numpy.ndarray", "torch.Tensor"
#: What takes a deque where it takes a list, by the name that it is called by.
TAKING_ANY = frozenset(
    {
        "len",
        "sum",
        "min",
        "max",
        "any",
        "all",
        "iter",
        "list",
        "tuple",
        "set",
        "sorted",
        "enumerate",
        "reversed",
    }
)
#: Functions that join parts, one below the other unless they are told otherwise.
JOINING = frozenset({"cat", "concat", "concatenate", "vstack", "append"})
#: Methods that add the items of what they are given, which one name does not show.
ADDING_ALL = frozenset({"extend", "extendleft", "update"})
#: A bound that is shown where the program's own is not known.
SOME_BOUND = "1000"


@dataclasses.dataclass(frozen=True)
class Change:
    """This expression, on one line, becomes that text; shown with the code it is a part of, if not alone."""

    old: ast.expr | ast.stmt
    new: str
    inside: ast.stmt | None = None
    sign: str = ""  # that stands before the expression, and is none of it


@dataclasses.dataclass(frozen=True)
class Place:
    """The statement that makes the holder grow, with what lies around it."""

    source: list[str]
    tree: ast.Module
    statement: ast.stmt
    case: Case

    def text(self, node: ast.AST) -> str:
        return ast.get_source_segment("".join(self.source), node) or ""


def shown_change(cause: str, case: Case, frame: FrameTuple | None) -> str:
    """ "`A` becomes `B`" for a cause and the user's line; "" where there is no such change to show."""
    rule = REWRITES.get(cause)
    if rule is None or frame is None:
        return ""
    for place in places(case, frame):
        found = rule(place)
        before, after = applied(place, found) if found is not None else ("", "")
        if before != after:
            return f"`{before}` becomes `{after}`"
    return ""


def places(case: Case, frame: FrameTuple) -> Iterator[Place]:
    """The simple statements on a line; of several those that name the holder, if any do."""
    filename, line, _ = frame
    tree = tree_of(filename)
    if tree is None:
        return
    every = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and not hasattr(node, "body") and spans(node, line)
    ]
    naming = [node for node in every if case.holding is not None and names(node, name_of(case.holding))]
    for node in naming or every:
        yield Place(linecache.getlines(filename), tree, node, case)


def names(statement: ast.stmt, name: str) -> bool:
    return any(
        (isinstance(one, ast.Name) and one.id == name)
        or (isinstance(one, ast.Attribute) and one.attr == name)
        for one in ast.walk(statement)
    )


def spans(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or 0)


def applied(place: Place, change: Change) -> tuple[str, str]:
    """The code before and after the change; empty where it spans lines."""
    old, around = change.old, change.inside or change.old
    if around.lineno != around.end_lineno or around.end_col_offset is None or old.end_col_offset is None:
        return "", ""
    line = place.source[around.lineno - 1].encode()  # columns count bytes
    before = line[around.col_offset : around.end_col_offset]
    from_, to = old.col_offset - around.col_offset, old.end_col_offset - around.col_offset
    after = before[:from_] + change.new.encode() + before[to:]
    return change.sign + before.decode(), change.sign + after.decode()


# ---- what is kept ----


def kept(place: Place) -> Iterator[ast.expr]:
    """The expressions that a statement puts into a container, or binds to a name."""
    one = place.statement
    if isinstance(one, ast.Expr) and isinstance(one.value, ast.Call):
        call = one.value
        if isinstance(call.func, ast.Attribute) and call.func.attr in ADDING and call.args:
            given = list(parts_of(call.args[-1]))
            if call.func.attr not in ADDING_ALL or given != [call.args[-1]]:
                yield from given
    elif isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Subscript):
        yield from parts_of(one.value)


def parts_of(expression: ast.expr) -> Iterator[ast.expr]:
    if isinstance(expression, ast.Tuple | ast.List):
        yield from expression.elts
    elif isinstance(expression, ast.Dict):
        yield from expression.values
    else:
        yield expression


def tensor_kept(place: Place) -> ast.expr | None:
    """The one of them that may be a tensor: the one that the path names, else the last that is no constant;
    of an object that keeps one, what it is made with.
    """
    given = list(kept(place))
    found = named(given, place.case.below) or last_of(given)
    items = (node for node in place.case.below if not is_a(node, "tuple", "list", "dict"))
    item = next(items, None)
    if item is None or is_a(item, ARRAY, TENSOR, "memoryview"):
        return found
    return last_of(arguments_of(found)) if isinstance(found, ast.Call) else None


def named(given: Sequence[ast.expr], below: Path) -> ast.expr | None:
    """The item of a tuple or list that is kept, by its index on the path below the holder."""
    is_known = len(below) > 1 and is_a(below[0], "tuple", "list")
    if not is_known or any(isinstance(one, ast.Starred) for one in given):
        return None
    index = name_of(below[1]).strip("[]")
    return given[int(index)] if index.isdecimal() and len(given) > 1 and int(index) < len(given) else None


def last_of(expressions: Iterable[ast.expr]) -> ast.expr | None:
    kinds = ast.Name | ast.Attribute | ast.Call | ast.Subscript
    *_, last = None, *(one for one in expressions if isinstance(one, kinds))
    return last


def is_scalar(place: Place, expression: ast.expr) -> bool:
    """True if backward() is called on it without a gradient: it has one element."""
    around = next(reversed(functions_at(place.tree, place.statement.lineno)), place.tree)
    return any(
        isinstance(one, ast.Call)
        and isinstance(one.func, ast.Attribute)
        and one.func.attr == "backward"
        and not one.args
        and same(one.func.value, expression)
        for one in ast.walk(around)
    )


def same(left: ast.AST, right: ast.AST) -> bool:
    """True if both read the same, whether one is assigned to or not."""
    return ast.unparse(left) == ast.unparse(right)


def plain(place: Place, expression: ast.expr) -> Change:
    """The value without its graph."""
    text = place.text(expression)
    if isinstance(expression, ast.BinOp | ast.UnaryOp | ast.Lambda | ast.IfExp):
        text = f"({text})"
    method = "item" if is_scalar(place, expression) else "detach"
    return Change(expression, f"{text}.{method}()", place.statement)


# ---- rules: one for each cause that a line can show ----


def without_graph(place: Place) -> Change | None:
    expression = tensor_kept(place) or scalar_given(place)
    return plain(place, expression) if expression is not None else None


def scalar_given(place: Place) -> ast.expr | None:
    """The one argument of any other call that backward() is called on: ``log.debug("loss %s", loss)``."""
    one = place.statement
    if not isinstance(one, ast.Expr) or not isinstance(one.value, ast.Call):
        return None
    given = arguments_of(one.value)
    found = [part for part in given if isinstance(part, ast.Name | ast.Attribute) and is_scalar(place, part)]
    return found[0] if len(found) == 1 else None


def cut_from_last(place: Place) -> Change | None:
    one = place.statement
    if isinstance(one, ast.AugAssign):
        return plain(place, one.value)
    if not isinstance(one, ast.Assign):
        return None
    target, value = one.targets[0], one.value
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        for mine, other in ((value.left, value.right), (value.right, value.left)):
            if same(mine, target):
                return plain(place, other)
    if isinstance(value, ast.Call):
        again = [arg for arg in value.args if same(arg, target)]
        return Change(again[0], f"{place.text(again[0])}.detach()", one) if again else None
    return None


def copied(place: Place) -> Change | None:
    expression = tensor_kept(place)
    if expression is None:
        return None
    text = place.text(expression)
    below = [node.type for node in place.case.below]
    if "memoryview" in below[:1]:
        return Change(expression, f"bytes({text})", place.statement)
    is_array = next((is_a(one, ARRAY) for one in place.case.below if is_a(one, ARRAY, TENSOR)), False)
    return Change(expression, f"{text}.{'copy' if is_array else 'clone'}()", place.statement)


def bounded(place: Place) -> Change | None:
    """The line that makes the list, where the file does with it only what a deque can do as well."""
    holding = place.case.holding
    if holding is None or holding.type != "list":
        return None
    name = name_of(holding)
    made = [
        one for one in assignments_of(place, {name}) if isinstance(one.value, ast.List) and not one.value.elts
    ]
    if len(made) != 1 or not all(is_of_deque(one, name) for one in ast.walk(place.tree)):
        return None
    return Change(made[0].value, f"collections.deque(maxlen={SOME_BOUND})", made[0])


def is_of_deque(one: ast.AST, name: str) -> bool:
    """False where the list is sliced, added to another, or given to what may take no deque."""
    if isinstance(one, ast.Subscript):
        return name_in(one.value) != name or not isinstance(one.slice, ast.Slice)
    if isinstance(one, ast.BinOp):
        return name not in (name_in(one.left), name_in(one.right))
    if isinstance(one, ast.Call) and name_in(one.func) not in TAKING_ANY:
        return all(name_in(given) != name for given in arguments_of(one))
    return True


def assignments_of(place: Place, names: set[str]) -> list[ast.Assign]:
    return [
        one
        for one in ast.walk(place.tree)
        if isinstance(one, ast.Assign) and name_in(one.targets[0]) in names
    ]


def name_in(target: ast.expr) -> str | None:
    """ "rows" of ``rows`` and of ``self.rows``."""
    if isinstance(target, ast.Attribute):
        return target.attr
    return target.id if isinstance(target, ast.Name) else None


def queue_bounded(place: Place) -> Change | None:
    """The line that makes the queue, found by its call without arguments."""
    made = [
        one
        for one in assignments_of(place, {name_of(node) for node in place.case.above})
        if isinstance(one.value, ast.Call) and not one.value.args and not one.value.keywords
    ]
    if len(made) != 1:
        return None
    return Change(made[0].value, f"{place.text(made[0].value)[:-1]}maxsize={SOME_BOUND})", made[0])


def handle_kept(place: Place) -> Change | None:
    """Where one hook fills a container, removing it is not what ends the growth."""
    if not is_registered_again(place.case):
        return None
    one = place.statement
    if not isinstance(one, ast.Expr) or not isinstance(one.value, ast.Call):
        return None
    text = place.text(one.value)
    return Change(one, f"handle = {text}; ...; handle.remove()") if registers_hook(one.value) else None


def text_of_error(place: Place) -> Change | None:
    handlers = [
        one.name
        for one in ast.walk(place.tree)
        if isinstance(one, ast.ExceptHandler)
        and one.name
        and one.lineno <= place.statement.lineno <= (one.end_lineno or 0)
    ]
    for expression in kept(place):
        if isinstance(expression, ast.Name) and expression.id in handlers:
            return Change(expression, f"str({expression.id})", place.statement)
    return None


def last_kept(place: Place) -> Change | None:
    """``all = torch.cat([all, new])``: the last rows of it."""
    one = place.statement
    if not isinstance(one, ast.Assign) or not isinstance(one.value, ast.Call):
        return None
    call = one.value
    function = call.func.attr if isinstance(call.func, ast.Attribute) else None
    if function not in JOINING or not call.args or not all(map(is_of_rows, call.keywords)):
        return None
    joined = list(parts_of(call.args[0])) if len(call.args) == 1 else call.args
    if sum(same(part, one.targets[0]) for part in joined) != 1:
        return None
    return Change(call, f"{place.text(call)}[-{SOME_BOUND}:]", one)


def is_of_rows(keyword: ast.keyword) -> bool:
    """True unless the argument says that another dimension than the first grows."""
    is_first = isinstance(keyword.value, ast.Constant) and keyword.value.value == 0
    return keyword.arg not in ("dim", "axis") or is_first


def cache_bounded(place: Place) -> Change | None:
    """The decorator of the function that is cached."""
    names = {name_of(node) for node in place.case.above}
    for one in ast.walk(place.tree):
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and one.name in names:
            for decorator in one.decorator_list:
                called = decorator.func if isinstance(decorator, ast.Call) else decorator
                text = place.text(called)
                if text.endswith("cache"):
                    prefix = text.rpartition(".")[0]
                    name = f"{prefix}.lru_cache" if prefix else "lru_cache"
                    return Change(decorator, f"{name}(maxsize={SOME_BOUND})", sign="@")
    return None


REWRITES: dict[str, Callable[[Place], Change | None]] = {
    "graph_kept": without_graph,
    "graph_chain": cut_from_last,
    "view_of_large_base": copied,
    "batch_memory_kept": copied,
    "growing_container": bounded,
    "queue_not_emptied": queue_bounded,
    "hook_kept": handle_kept,
    "traceback_kept": text_of_error,
    "growing_buffer": last_kept,
    "unbounded_cache": cache_bounded,
}
