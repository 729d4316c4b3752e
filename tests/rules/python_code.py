"""What the rules read from Python: who imports whom, and the numbers that are written."""

import ast
import dataclasses
import pathlib
from collections.abc import Iterator

PACKAGE = "leakprobe"


@dataclasses.dataclass(frozen=True, order=True)
class Import:
    importer: str  # dotted, without the package's own name: "report.text"; "" is the package itself
    imported: str
    deferred: bool  # in a function: it runs when that is called
    for_types: bool  # under "if TYPE_CHECKING": it never runs
    line: int


def module_of(path: pathlib.Path, root: pathlib.Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(source: str, importer: str, modules: set[str]) -> Iterator[Import]:
    """Imports of the package's own modules in ``source``; ``modules`` are all that there are."""
    yield from _imports_below(ast.parse(source), importer, modules, False, False)


def _imports_below(
    node: ast.AST, importer: str, modules: set[str], deferred: bool, for_types: bool
) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            for name in sorted(_imported(child, modules)):
                yield Import(importer, name, deferred, for_types, child.lineno)
            continue
        is_function = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        is_guard = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
        yield from _imports_below(child, importer, modules, deferred or is_function, for_types or is_guard)


def _imported(node: ast.Import | ast.ImportFrom, modules: set[str]) -> set[str]:
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif node.level:
        raise ValueError(f"line {node.lineno}: a relative import; the package writes full names")
    else:
        # "from leakprobe.report import text" imports a module, "from leakprobe.units import size" does not.
        names = [f"{node.module}.{alias.name}" for alias in node.names]
        names = [name if _ours(name) in modules else str(node.module) for name in names]
    return {ours for ours in map(_ours, names) if ours is not None}


def _ours(name: str) -> str | None:
    first, _, rest = name.partition(".")
    return rest if first == PACKAGE else None


def circles(arrows: set[tuple[str, str]]) -> list[set[str]]:
    """Sets of two modules and more in which each imports, over others, each."""
    reached = {start: _reached_from(start, arrows) for start, _ in arrows}
    found: list[set[str]] = []
    for start, others in reached.items():
        circle = {other for other in others if start in reached.get(other, ())}
        if len(circle) > 1 and circle not in found:
            found.append(circle)
    return found


def _reached_from(start: str, arrows: set[tuple[str, str]]) -> set[str]:
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        here = waiting.pop()
        for importer, imported in arrows:
            if importer == here and imported not in reached:
                reached.add(imported)
                waiting.append(imported)
    return reached


def numbers(source: str) -> list[ast.Constant]:
    """Every number written in ``source`` but 0 and 1 (and so -1); True and False are none."""
    return [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value not in (0, 1)
    ]


@dataclasses.dataclass(frozen=True)
class Function:
    name: str  # with those of its classes and functions: "Report.print"
    line: int
    lines: int


def functions_of(source: str) -> list[Function]:
    """All functions of ``source``, those within functions too, with their numbers of lines.

    What counts: from ``def`` to the last line of the body, signature, blank lines and comments included; no
    decorators, and of a public function, whose name has no leading underscore (or is __init__ and the like),
    no docstring.  The lines of a function within another count for both.
    """
    return list(_functions_below(ast.parse(source), ""))


def _functions_below(node: ast.AST, prefix: str) -> Iterator[Function]:
    for child in ast.iter_child_nodes(node):
        name = prefix
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            name = f"{prefix}{child.name}."
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield Function(name.rstrip("."), child.lineno, _lines_of(child))
        yield from _functions_below(child, name)


def _lines_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    lines = _span(function)
    is_public = not function.name.startswith("_") or function.name.endswith("__")
    return lines - _span(function.body[0]) if is_public and ast.get_docstring(function) else lines


def _span(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1
