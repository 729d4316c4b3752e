"""Numbers that decide: at most 40, in one table; literals but 0, 1 and -1 outside of the tables are counted.

The syntax tree of Python has none, nor have the tokens of the C that judges; of the C that measures, lays
out and formats, debts.json has a bound that only sinks.
"""

import ast
import pathlib
import re

import c_code
import debts
import pytest
import python_code

ROOT = pathlib.Path(__file__).parents[2]
PACKAGE, SRC = ROOT / "leakprobe", ROOT / "src"

#: Where the Python package decides what grows, when to look, what to say of it.  Front ends only show.
DECIDES = ("probe.py", "analysis/", "torch/", "model/", "evidence/", "judge/", "watch/")
#: The table of what decides, and that most so many numbers are in it.
TABLE, MOST = PACKAGE / "model" / "thresholds.py", 40
#: Tables of what does not decide: bounds of work and the schedule; facts of others; sizes and how they are
#: written.
OTHERS = [PACKAGE / "model" / name for name in ("bounds.py", "facts.py", "units.py")]


#: C that judges, by what it decides. All other C measures, lays out, formats or carries; where it decides,
#: it does so by a header numbers.h too.
JUDGES = {
    "analysis/garbage.c": "what nothing outside refers to",
    "base/slopes.c": "how fast a plain number rises, and how surely",
    "ledger/backing.c": "whose largest block comes again and again",
    "ledger/backing.h": "the same",
    "ledger/site_series.c": "whose floor rises, so that it is asked who survives",
    "ledger/site_series.h": "the same",
    "native/samples.c": "which native blocks stand for a line",
    "process/segments.c": "which shared memory is this process's",
    "python/graph/attribution.c": "who holds what grows",
    "python/graph/bounded.c": "which holders let go of what they keep, or have copied it",
    "python/graph/collectors.c": "which containers that are young hold what grows",
    "python/graph/collectors.h": "the same",
    "python/graph/cycles.c": "which cycles are garbage, and where they begin",
    "python/graph/edge_names.c": "what is a container, and what a namespace",
    "python/graph/relate.c": "what is a view, or a part",
    "python/graph/relate_lru.c": "what is a cache with a bound",
    "python/graph/retention.c": "which paths keep an object",
    "python/graph/trace.c": "what is a root, held outside, garbage, or lost",
    "python/graph/trace.h": "the same",
    "python/heap/confirm.c": "which stamps stand for nothing any more",
    "python/heap/heapwalk_roots.c": "what a walk begins at, and whose code is the probe's",
    "python/heap/kinds.c": "what a type is, and which types are the probe's",
    "python/heap/kinds.h": "the same",
    "python/heap/leaves.c": "which blocks are objects that the collector does not know",
    "python/heap/untracked.c": "what is an object that is lost",
    "python/owners/autograd_births.c": "in which step a node was made",
    "python/owners/buffers.c": "which buffers no block stands for",
    "python/owners/opaque.c": "what an object of C keeps without showing it",
    "python/owners/owned.c": "whose own account of its bytes is believed",
    "python/owners/torch_counts.c": "which tensors C++ owns",
    "python/owners/torch_functions.c": "what autograd graphs keep",
    "python/owners/torch_hooks.c": "the same of hooks",
    "python/owners/torch_lent.c": "what Python lent to torch",
    "python/owners/torch_storages.c": "which tensors share a storage",
    "python/owners/torch_views.c": "which views need what they keep",
}


def python_files() -> list[pathlib.Path]:
    files = sorted(PACKAGE.rglob("*.py"))
    return [
        path
        for path in files
        if str(path.relative_to(PACKAGE)).startswith(DECIDES) and path not in (TABLE, *OTHERS)
    ]


def c_files() -> list[pathlib.Path]:
    """All of src/ but tables, compat/ and layouts/: how a version lays out its objects is a fact."""
    files = sorted(SRC.rglob("*.[ch]"))
    return [p for p in files if p.parent.name not in ("compat", "layouts") and p.name != "numbers.h"]


def counts(language: str) -> dict[str, int]:
    files, numbers = {
        "python": (python_files(), python_code.numbers),
        "c": (c_files(), c_code.numbers),
    }[language]
    return {str(path.relative_to(ROOT)): len(numbers(path.read_text())) for path in files}


def entries_without_a_reason(source: str) -> list[str]:
    """Names that are assigned in a table without a comment on the line before, or after another such name."""
    lines = source.splitlines()
    found = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign):
            above = node.lineno - 2
            while above >= 0 and lines[above] and not lines[above].startswith("#:"):
                above -= 1
            if above < 0 or not lines[above].startswith("#:"):
                found.append(ast.unparse(node.targets[0]))
    return found


def defines_without_a_reason(source: str) -> list[str]:
    """Names with a number in a header, without a comment above them or above another such name."""
    found, has_reason = [], False
    for line in source.splitlines():
        name = re.match(r"(?:#define|enum \{) (\w+)(?:\(.*\))? .*\d", line)
        if not line:
            has_reason = False
        elif "*/" in line:
            has_reason = True
        elif name and not has_reason:
            found.append(name.group(1))
    return found


def test_the_table_of_what_decides_is_short():
    assert 0 < len(python_code.numbers(TABLE.read_text())) <= MOST


@pytest.mark.parametrize("table", [TABLE, *OTHERS[:2]], ids=lambda path: path.name)
def test_each_number_of_a_table_has_its_reason(table):
    assert entries_without_a_reason(table.read_text()) == []


@pytest.mark.parametrize("table", sorted(SRC.rglob("numbers.h")), ids=lambda path: str(path.relative_to(SRC)))
def test_each_number_of_a_header_has_its_reason(table):
    assert defines_without_a_reason(table.read_text()) == []


def test_what_has_no_reason():
    table = "#: Why.\nA = 2\nB, C = 3, 4\n\nD = 5\n# Not.\nE = 6\n"
    assert entries_without_a_reason(table) == ["D", "E"]
    header = (
        "#define G\n\n/* Why,\n * and more. */\n#define A 2\n#define B 3\n\n#define C 4\nenum { D = 5 };\n"
    )
    assert defines_without_a_reason(header) == ["C", "D"]


def test_no_number_decides_outside_of_the_table():
    found = counts("python")
    assert len(found) > 100
    assert not {name: count for name, count in found.items() if count}


def test_no_number_decides_in_the_c_that_judges():
    found = {name: c_code.numbers((SRC / name).read_text()) for name in JUDGES}
    assert not {name: [token.text for token in tokens] for name, tokens in found.items() if tokens}


def test_numbers_in_the_c_that_measures_only_become_fewer():
    found = counts("c")
    assert len(found) > 100
    debts.check_count(debts.load()["numbers"], sum(found.values()), f"numbers in {found}")


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
