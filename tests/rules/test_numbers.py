"""Numbers in what decides: each literal but 0, 1 and -1 outside of the tables, from the syntax tree, counted.

A number that decides stands in a table, with what it was derived from.  The counts of debts.json are bounds
that only sink: a new number goes into a table, or takes the place of another.
"""

import pathlib

import c_code
import debts
import pytest
import python_code

ROOT = pathlib.Path(__file__).parents[2]

#: Where the Python package decides what grows, when to look, what to say of it.  Front ends only show.
DECIDES = ("probe.py", "analysis/", "torch/", "model/", "evidence/", "judge/", "watch/")
#: The tables: Python files of this name, C headers of that.
TABLES = ("thresholds.py", "numbers.h")
#: What a KiB is, and how a size is written.
FACTS = ("units.py",)


def python_files() -> list[pathlib.Path]:
    package = ROOT / "leakprobe"
    files = sorted(package.rglob("*.py"))
    return [
        p
        for p in files
        if str(p.relative_to(package)).startswith(DECIDES) and p.name not in (*TABLES, *FACTS)
    ]


def c_files() -> list[pathlib.Path]:
    """All of src/ but python/compat/: what a version's objects look like is a fact, no decision."""
    files = sorted((ROOT / "src").rglob("*.[ch]"))
    return [p for p in files if p.parent.name != "compat" and p.name not in TABLES]


def counts(language: str) -> dict[str, int]:
    files, numbers = {
        "python": (python_files(), python_code.numbers),
        "c": (c_files(), c_code.numbers),
    }[language]
    return {str(path.relative_to(ROOT)): len(numbers(path.read_text())) for path in files}


@pytest.mark.parametrize("language", ["python", "c"])
def test_numbers_in_what_decides_only_become_fewer(language):
    found = counts(language)
    assert len(found) > 10
    debts.check_count(debts.load()["numbers"][language], sum(found.values()), f"numbers in {found}")


def test_which_numbers_of_python_count():
    source = 'A = 0.25\nB = -1 + 1.0 + 0\nC = True\nD = f"{x:5}" + "7"\nE = -3 if x > 1_000 else 0x10\n'
    assert sorted(n.value for n in python_code.numbers(source)) == [0.25, 3, 16, 1000]


def test_which_numbers_of_c_count():
    source = """
    #define LIMIT 64
    #if defined(X) && \\
        X > 70
    #endif
    /* 5 of 9 */ // 12
    enum { MOST = 0x40u, NONE = 0, ONE = 1ull };
    static double share(void) { return 1.5e-3 + .25f + 0.0 + 1.0f + array[2] - 1; }
    const char *text = "7", letter = '8', lp_2 = 0x1;
    """
    assert [t.text for t in c_code.numbers(source)] == ["64", "0x40u", "1.5e-3", ".25f", "2"]
