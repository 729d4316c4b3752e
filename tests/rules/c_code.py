"""What the rules read from C: tokens without comments and preprocessor lines, functions, numbers."""

import dataclasses
import pathlib
import re
from collections.abc import Iterator

TOKEN = re.compile(
    r"""(?P<directive>^[ \t]*\#(?:\\\n|/\*.*?\*/|[^\n\\]|\\.)*)
      | (?P<skip>\n+|[^\S\n]+|\\\n|//[^\n]*|/\*.*?\*/)
      | (?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
      | (?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)
      | (?P<name>[A-Za-z_]\w*)
      | (?P<mark>.)""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)


@dataclasses.dataclass(frozen=True)
class Token:
    kind: str  # text, number, name or mark
    text: str
    line: int


@dataclasses.dataclass(frozen=True)
class Function:
    name: str
    line: int
    lines: int


def tokens(source: str, macros: bool = False) -> Iterator[Token]:
    """Tokens of ``source`` without comments and preprocessor lines, but with macros' bodies if ``macros``."""
    line = 1
    for match in TOKEN.finditer(source):
        define = re.match(r"[ \t]*#\s*define\b", match.group()) if match.lastgroup == "directive" else None
        if define and macros:
            for token in tokens(match.group()[define.end() :]):
                yield dataclasses.replace(token, line=line + token.line - 1)
        elif match.lastgroup not in ("skip", "directive"):
            yield Token(str(match.lastgroup), match.group(), line)
        line += match.group().count("\n")


def functions(source: str) -> Iterator[Function]:
    """Functions that ``source`` defines: a body in braces, outside of any other, behind a list of parameters.

    The length goes from the first word of the declaration to the closing brace.
    """
    depth, declaration, body = 0, [], False
    for token in tokens(source):
        if depth == 0:
            declaration.append(token)
        if token.text == "{":
            if depth == 0:
                body = len(declaration) > 1 and declaration[-2].text == ")"
            depth += 1
        elif token.text == "}":
            depth -= 1
            if depth == 0 and body:
                first = declaration[0].line
                yield Function(_name(declaration), first, token.line - first + 1)
            if depth == 0 and (body or declaration[0].text == "extern"):
                declaration, body = [], False
        elif token.text == ";" and depth == 0:
            declaration = []


def _name(declaration: list[Token]) -> str:
    """The name before the last list of parameters, which is the one that the body follows."""
    open_parentheses = 0
    for before, token in zip(declaration[-3::-1], declaration[-2::-1], strict=False):
        open_parentheses += {")": 1, "(": -1}.get(token.text, 0)
        if open_parentheses == 0:
            return before.text
    raise ValueError(f"line {declaration[0].line}: no name before the parameters")


def numbers(source: str) -> list[Token]:
    """Every number in ``source``, macros too, but 0 and 1 (and so -1), whatever their base and suffix."""
    plain = re.compile(r"(?:0[xX]0*[01]|0*[01])[uUlL]*|[01]\.0*[fF]?")
    return [t for t in tokens(source, macros=True) if t.kind == "number" and not plain.fullmatch(t.text)]


def functions_of(path: pathlib.Path) -> list[Function]:
    return list(functions(path.read_text()))
