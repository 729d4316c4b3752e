"""Sizes and habits of the C code, of the stubs and of names."""

import pathlib
import re
import statistics

import pytest

ROOT = pathlib.Path(__file__).parents[2]
SRC = ROOT / "src"
C_SOURCES = sorted(SRC.rglob("*.c"))
MAX_FUNCTION, MAX_FILE, MAX_HEADER = 60, 600, 260


def functions(path):
    """(name, lines) of every function: a line that begins in column 0 and ends in '{', to the '}' in column 0."""
    lines = path.read_text().splitlines()
    start = None
    for i, line in enumerate(lines):
        if (
            start is None
            and re.match(r"[A-Za-z_].*\)\s*\{$|^[ \t]+[^=;]*\)\s*\{$", line)
            and not line.startswith((" ", "\t"))
        ):
            start = i
        elif start is None and line.endswith(") {") and i and re.match(r"[A-Za-z_].*[,(]$", lines[i - 1]):
            start = i - 1
        elif line.startswith("}") and start is not None:
            name = re.search(r"(\w+)\s*\(", " ".join(lines[start : start + 2]))
            yield (name.group(1) if name else "?"), i - start + 1
            start = None


@pytest.mark.parametrize("path", C_SOURCES, ids=lambda p: str(p.relative_to(SRC)))
def test_no_function_over_60_lines(path):
    for name, lines in functions(path):
        assert lines <= MAX_FUNCTION, f"{name} has {lines} lines"


def test_functions_are_short():
    lengths = [n for path in C_SOURCES for _, n in functions(path)]
    assert len(lengths) > 300
    assert statistics.median(lengths) <= 15


@pytest.mark.parametrize("path", sorted(SRC.rglob("*.[ch]")), ids=lambda p: str(p.relative_to(SRC)))
def test_files_are_short_and_silent(path):
    text = path.read_text()
    assert len(text.splitlines()) <= (MAX_HEADER if path.suffix == ".h" else MAX_FILE)
    assert not re.search(r"\b(?:printf|puts)\(", text)


def test_python_files_are_short():
    for path in (ROOT / "leakprobe").rglob("*.py"):
        assert len(path.read_text().splitlines()) <= 600, path.name


def test_the_stub_names_what_the_module_has():
    from leakprobe import _core

    stub = (ROOT / "leakprobe" / "_core.pyi").read_text()
    declared = set(re.findall(r"^def (\w+)", stub, flags=re.M)) | set(
        re.findall(r"^class (\w+)", stub, flags=re.M)
    )
    built = {name for name in dir(_core) if not name.startswith("_")}
    made_at_first_use = {
        "Backing",
        "Census",
        "Graph",
        "KeptText",
        "Reach",
        "Scan",
        "SeriesState",
        "SiteSeries",
        "Snapshot",
    }
    assert declared - made_at_first_use == built - made_at_first_use
