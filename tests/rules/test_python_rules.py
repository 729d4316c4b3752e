"""Sizes and types of the Python code.  These rules have no list of what breaks them."""

import pathlib
import re
import textwrap

import pytest
from python_code import Function, functions_of

ROOT = pathlib.Path(__file__).parents[2]
SOURCES = sorted((ROOT / "leakprobe").rglob("*.py"))
#: As of C, what fits on a screen beside what calls it; functions_of() says which lines count.
MAX_FUNCTION = 40


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_function_is_long(path):
    found = [f"{f.name}: {f.lines} lines" for f in functions_of(path.read_text()) if f.lines > MAX_FUNCTION]
    assert not found, f"over {MAX_FUNCTION} lines, without the docstrings of public functions: {found}"


def test_every_module_is_strict():
    """mypy --strict finds nothing in what it is told to leave out: no setting names a module of the package,
    and no module has settings of its own.
    """
    text = (ROOT / "pyproject.toml").read_text()
    settings = re.search(r"^\[tool\.mypy\]\n(.*?)^\[tool\.(?!mypy)", text, re.MULTILINE | re.DOTALL)[1]
    assert settings.startswith('strict = true\nfiles = ["leakprobe"]\n')
    assert settings.count("leakprobe") == 1 and '"*' not in settings
    assert not re.search(
        r"ignore_errors|^(no_strict|disallow\w+ = false|check\w+ = false)", settings, re.MULTILINE
    )
    lax = re.compile(r"^\s*#\s*mypy:|#\s*type:\s*ignore(?!\[)|\bno_type_check", re.MULTILINE)
    assert [path.name for path in SOURCES if lax.search(path.read_text())] == []


SAMPLE = textwrap.dedent(
    '''
    def public(
        a,
    ):
        """What it does.

        At length.
        """

        # why
        return a


    def _private():
        """One line."""


    @decorated
    @twice
    class A:
        @decorated
        async def method(self):
            def inner():
                "Text."
                return 1

            return inner

        def __len__(self):
            """Public."""
            return 1
    '''
)


def test_which_lines_of_a_function_count():
    assert functions_of(SAMPLE) == [
        Function("public", 2, 6),
        Function("_private", 14, 2),
        Function("A.method", 22, 6),
        Function("A.method.inner", 23, 2),
        Function("A.__len__", 29, 2),
    ]
