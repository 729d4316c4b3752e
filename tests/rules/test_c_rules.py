"""Sizes and habits of the C and Python code."""

import functools
import itertools
import pathlib
import re
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


@pytest.mark.parametrize("path", sorted(SRC.rglob("*.[ch]")), ids=lambda p: str(p.relative_to(SRC)))
def test_files_are_silent(path):
    words = [token.text for token in c_code.tokens(path.read_text(), macros=True)]
    calls = {name for name, after in itertools.pairwise(words) if after == "("}
    assert not calls & {"printf", "puts", "vprintf"}


def test_the_stub_names_what_the_module_has():
    """What stubtest checks in full (.ci/lint), for those who have no mypy at hand."""
    from leakprobe import _core

    stub = (ROOT / "leakprobe" / "_core.pyi").read_text()
    declared = set(re.findall(r"^(?:def|class) (\w+)", stub, flags=re.M))
    declared |= set(re.findall(r"^([A-Z]\w+): Final", stub, flags=re.M))
    built = {name for name in dir(_core) if not name.startswith("_")}
    made_at_first_use = {"Census", "Graph", "KeptText", "Reach", "Snapshot"}
    assert declared - made_at_first_use == built - made_at_first_use


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
