"""Sizes and habits of the C and Python code."""

import functools
import itertools
import pathlib
import statistics
import textwrap

import c_code
import debts
import pytest

ROOT = pathlib.Path(__file__).parents[2]
SRC = ROOT / "src"
C_SOURCES = sorted(SRC.rglob("*.c"))
#: The best C that was read keeps 95 % of its functions under 40 to 52 lines; a header is read as a whole.
MAX_FUNCTION, MAX_FILE, MAX_HEADER = 50, 500, 260
MAX_WIDTH = 110


@functools.cache
def long_functions() -> dict[str, int]:
    """ "file: function" => lines, of those that have too many."""
    return {
        f"{path.relative_to(SRC)}: {function.name}": function.lines
        for path in C_SOURCES
        for function in c_code.functions_of(path)
        if function.lines > MAX_FUNCTION
    }


def long_files() -> dict[str, int]:
    """File => lines, of those that have too many."""
    paths = [*SRC.rglob("*.[ch]"), *(ROOT / "leakprobe").rglob("*.py")]
    lines = {path: len(path.read_text().splitlines()) for path in sorted(paths)}
    most = {".h": MAX_HEADER}
    return {
        str(path.relative_to(ROOT)): count
        for path, count in lines.items()
        if count > most.get(path.suffix, MAX_FILE)
    }


@pytest.mark.parametrize("path", C_SOURCES, ids=lambda p: str(p.relative_to(SRC)))
def test_no_function_is_long(path):
    name = f"{path.relative_to(SRC)}: "
    listed, found = (
        {function: lines for function, lines in all_of_them.items() if function.startswith(name)}
        for all_of_them in (debts.load()["long_functions"], long_functions())
    )
    debts.check_lengths(listed, found, f"over {MAX_FUNCTION} lines")


def test_functions_are_short():
    lengths = [function.lines for path in C_SOURCES for function in c_code.functions_of(path)]
    assert len(lengths) > 1000
    assert statistics.median(lengths) <= 12


def test_files_are_short():
    debts.check_lengths(debts.load()["long_files"], long_files(), "files with too many lines")


def long_lines() -> dict[str, int]:
    """Python file => lines over MAX_WIDTH columns: texts and comments, which the formatter does not wrap."""
    folders = ("leakprobe", "tests", "benchmarks", "docs", ".ci")
    paths = [*ROOT.glob("*.py"), *(path for name in folders for path in (ROOT / name).rglob("*.py*"))]
    counts = {
        str(path.relative_to(ROOT)): sum(len(line) > MAX_WIDTH for line in path.read_text().splitlines())
        for path in sorted(paths)
        if path.suffix in (".py", ".pyi")
    }
    return {name: count for name, count in counts.items() if count}


def test_lines_are_short():
    listed, found = debts.load()["long_lines"], long_lines()
    debts.check_lengths(listed, found, f"lines over {MAX_WIDTH} columns")
    debts.check_count(sum(listed.values()), sum(found.values()), f"lines over {MAX_WIDTH} columns")


@pytest.mark.parametrize("path", sorted(SRC.rglob("*.[ch]")), ids=lambda p: str(p.relative_to(SRC)))
def test_files_are_silent(path):
    words = [token.text for token in c_code.tokens(path.read_text(), macros=True)]
    calls = {name for name, after in itertools.pairwise(words) if after == "("}
    assert not calls & {"printf", "puts", "vprintf"}


@pytest.mark.parametrize("path", sorted(SRC.rglob("*.[ch]")), ids=lambda p: str(p.relative_to(SRC)))
def test_a_file_begins_with_what_it_is_for(path):
    text = path.read_text()
    assert text.startswith("/* ") and len(text.partition("*/")[0].split()) > 4


SAMPLE = textwrap.dedent(
    """
    /* int not_one(void) { */
    #define WRAP(name)       \\
        static void name(void) { \\
        }
    #include "a.h"
    WRAP(list)

    struct row { int (*call)(int); };
    static const int table[] = {1, 2, FOO(3)};
    typedef int (*handler)(int);
    int declared(int a);

    int one(void) { return '{' + "}"[0]; }

    static __attribute__((noinline)) struct row *
    two(int a,
        int (*b)(int)) {
        if (a) {
            b(a); // }
        }
        return 0;
    }
    static uint64_t chosen(int n)
    {
        return 0;
    }
    extern int counter; enum { A, B };
    static int after(void) {
    }
    """
)


def test_every_function_of_c_is_found():
    found = [(function.name, function.lines) for function in c_code.functions(SAMPLE)]
    assert found == [("one", 1), ("two", 8), ("chosen", 4), ("after", 2)]


def test_functions_that_begin_behind_a_macro_or_stand_on_one_line_are_found():
    found = {function.name for path in C_SOURCES for function in c_code.functions_of(path)}
    assert {"PyInit__core", "lp_medium_name", "module_exec", "lp_site_intern"} <= found
