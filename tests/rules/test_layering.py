"""Who may include or import what: src/README.md says why."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]
SRC = ROOT / "src"
C_FILES = sorted([*SRC.rglob("*.c"), *SRC.rglob("*.h")])

#: Folder => folders whose headers it may include.
MAY_INCLUDE = {
    "base": {"base"},
    "ledger": {"base", "ledger"},
    "snapshot": {"base", "ledger", "snapshot"},
    "analysis": {"base", "ledger", "snapshot", "analysis"},
    "native": {"base", "ledger", "native"},
    "process": {"base", "process"},
    "python": {"base", "ledger", "snapshot", "analysis", "native", "process", "python"},
}
NATIVE_SYMBOLS = re.compile(r"_ZN3c10|PyTraceMalloc_|\bcuda(?:Malloc|Free|Host\w+)\b")


def without_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)


def test_there_are_sources():
    assert len(C_FILES) > 20


@pytest.mark.parametrize("path", C_FILES, ids=lambda p: str(p.relative_to(SRC)))
def test_includes_point_downwards(path):
    folder = path.relative_to(SRC).parts[0]
    for name in re.findall(r'#include "([^"]+)"', path.read_text()):
        first = name.split("/")[0]
        if first == "internal":
            assert path.name.startswith("compat"), (
                f"{path.name} includes {name}: internal headers belong in compat*"
            )
        else:
            assert first in MAY_INCLUDE[folder], f"{path.name} in {folder}/ includes {name}"


@pytest.mark.parametrize("path", C_FILES, ids=lambda p: str(p.relative_to(SRC)))
def test_walls(path):
    folder, code = path.relative_to(SRC).parts[0], without_comments(path.read_text())
    if folder != "python":
        assert "Python.h" not in code, "Python.h only under src/python/"
    if folder != "native":
        assert not NATIVE_SYMBOLS.search(code), "symbols of torch, numpy and CUDA only under src/native/"
    if not path.name.startswith("compat"):
        assert "PY_VERSION_HEX" not in code, "version tests only in compat*"


PYTHON_FILES = sorted((ROOT / "leakprobe").rglob("*.py"))


@pytest.mark.parametrize("path", PYTHON_FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_torch_is_imported_only_where_it_is_asked_for(path):
    parts = path.relative_to(ROOT / "leakprobe").parts
    if parts[0] == "demo":
        return
    for line in path.read_text().splitlines():
        if re.match(r"(import|from) (torch|numpy|sklearn)\b", line):
            pytest.fail(f"{path.name} imports a library at its top: {line}")
        if re.match(r"\s+(import|from) (torch|numpy)\b", line):
            assert parts[0] == "torch", f"{path.name} imports torch or numpy: {line}"


#: Stage => stages that it may import: data flows one way.
MAY_IMPORT = {
    "model": {"model"},
    "evidence": {"model", "evidence"},
    "judge": {"model", "evidence", "judge"},
}
STAGE_FILES = [path for path in PYTHON_FILES if path.relative_to(ROOT / "leakprobe").parts[0] in MAY_IMPORT]


@pytest.mark.parametrize("path", STAGE_FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_stage_imports_those_below_it(path):
    allowed = MAY_IMPORT[path.relative_to(ROOT / "leakprobe").parts[0]]
    found = re.findall(r"(?:from|import) leakprobe(?:\.(\w+))?", path.read_text())
    assert set(found) <= allowed, f"{path.name} imports {set(found) - allowed}"


@pytest.mark.parametrize("path", PYTHON_FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_nobody_imports_the_front_ends(path):
    parts = path.relative_to(ROOT / "leakprobe").parts
    if parts[0] in ("cli", "__main__.py", "pytest_plugin.py", "pytest_gate.py"):
        return
    assert not re.search(r"(import|from) leakprobe\.(cli|pytest_plugin|pytest_gate)", path.read_text())


def test_importing_leakprobe_imports_no_library(tmp_path):
    import subprocess
    import sys

    code = "import sys, leakprobe; print([m for m in ('torch', 'numpy', 'rich', 'psutil', 'sqlite3', 'pytest') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.strip() == "[]", done.stderr
