"""Whether a larger block takes over what the one before it had: what the line that makes it says.

``buffer = torch.cat([buffer, rows])`` and ``text += line`` read what they assign; ``batch = read(size)`` does
not, and what it makes is larger only because more was asked for.
"""

import ast
import functools
import linecache
from collections.abc import Sequence

from leakprobe.model.frames import FrameTuple, is_user_file


def carries_over(stack: Sequence[FrameTuple]) -> bool | None:
    """True if the line that allocates, or one of the user's own that led to it, assigns to what it reads;
    None where none of their source is known.
    """
    frames = [f for i, f in enumerate(stack) if i == 0 or is_user_file(f[0])]
    known = [reads_its_target(name, line) for name, line, _ in frames]
    if True in known:
        return True
    return False if False in known else None


@functools.lru_cache(maxsize=1024)
def reads_its_target(filename: str, line: int) -> bool | None:
    """Whether the statement at a line, 1-based, assigns to something that its value reads; None if it can't
    be read.
    """
    try:
        tree = ast.parse("".join(linecache.getlines(filename)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found = [node for node in ast.walk(tree) if isinstance(node, ast.stmt) and holds(node, line)]
    if not found:
        return None
    return any(is_enlarging(node) for node in found)


def holds(node: ast.stmt, line: int) -> bool:
    """True for a statement without a body of its own, over that line."""
    return not hasattr(node, "body") and node.lineno <= line <= (node.end_lineno or node.lineno)


def is_enlarging(node: ast.stmt) -> bool:
    if isinstance(node, ast.AugAssign):
        return True
    if isinstance(node, ast.Assign):
        targets, value = node.targets, node.value
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        targets, value = [node.target], node.value
    else:
        return is_call_that_grows(node)
    read = {ast.dump(n) for n in ast.walk(value) if isinstance(n, (ast.Name, ast.Attribute, ast.Subscript))}
    names = [n for target in targets for n in parts_of(target)]
    return any(dumped_as_read(name) in read for name in names)


def is_call_that_grows(node: ast.stmt) -> bool:
    """A method called for its effect: ``buffer.extend(rows)``, ``out.write(text)``."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Attribute)
    )


def parts_of(target: ast.expr) -> list[ast.expr]:
    """The targets of an assignment, those of a tuple one by one."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return [part for element in target.elts for part in parts_of(element)]
    return [target.value] if isinstance(target, ast.Starred) else [target]


def dumped_as_read(target: ast.expr) -> str:
    """How the same expression reads where it is not assigned to."""
    return ast.dump(target).replace("ctx=Store()", "ctx=Load()")
