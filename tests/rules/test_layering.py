"""Who may include or import what: src/README.md says why."""

import pathlib
import re
import sysconfig

import pytest
from python_code import circles

ROOT = pathlib.Path(__file__).parents[2]
SRC = ROOT / "src"
C_FILES = sorted([*SRC.rglob("*.c"), *SRC.rglob("*.h")])

#: Folder => folders whose headers it may include, beside its own.
PLAIN = {
    "base": set(),
    "shim": {"base"},
    "ledger": {"base"},
    "snapshot": {"base", "ledger"},
    "analysis": {"base", "ledger", "snapshot"},
    "native": {"base", "ledger"},
    "process": {"base"},
}
#: Room of python/ => rooms below it; each may include all of the plain folders too.
ROOMS = {
    "values": set(),
    "compat": {"values"},
    "layouts": {"values", "compat"},
    "watch": {"values", "compat"},
    "births": {"values", "compat", "watch"},
    "heap": {"values", "compat", "births", "layouts"},
    "owners": {"values", "compat", "births", "layouts", "heap"},
    "graph": {"values", "compat", "births", "layouts", "heap", "owners"},
    "api": {"values", "compat", "births", "layouts", "heap", "owners", "graph", "watch"},
}
MAY_INCLUDE = PLAIN | {
    f"python/{room}": set(PLAIN) | {f"python/{below}" for below in rooms} for room, rooms in ROOMS.items()
}
#: Structs of CPython that some version from 3.10 to 3.15 declares in its public headers and does not define
#: there, so that code which looks into one builds on some only; and a thread state, whose fields differ.
OPAQUE = {
    "PyAsyncGenObject", "PyContext", "PyContextToken", "PyContextVar", "PyCoroObject", "PyDictKeysObject",
    "PyDictValues", "PyFrameObject", "PyGenObject", "PyInterpreterState", "PyODictObject", "PyThreadState",
}  # fmt: skip
#: Those that a version has for its own calls: nothing in there is of use.
HANDLES = {
    "PyArena", "PyBytesWriter", "PyInitConfig", "PyInterpreterGuard", "PyInterpreterView", "PyLongWriter",
    "PyUnicodeWriter",
}  # fmt: skip
#: A pointer to what a struct is may be handed on.
PASSED_ON = {"PyThreadState"}
PRIVATE_NAMES = re.compile(r"\b_Py_?[A-Za-z]\w*|\bpycore_\w+|\bPy_BUILD_CORE\w*")
NATIVE_SYMBOLS = re.compile(r"_ZN3c10|PyTraceMalloc_|\bcuda(?:Malloc|Free|Host\w+)\b")


def folder_of(path: pathlib.PurePath) -> str:
    """The folder of src/ that a file of it is in; in python/, with the room."""
    return "/".join(path.parts[: 2 if path.parts[0] == "python" else 1])


def without_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)


def internals_in(code: str) -> list[str]:
    """What C code names of CPython that its public headers do not define in all versions."""
    found = PRIVATE_NAMES.findall(code)
    found += re.findall(r"\b(?:%s)\b" % "|".join(OPAQUE - PASSED_ON), code)
    for name in re.findall(r"\b(?:%s) \*(\w+)" % "|".join(PASSED_ON), code):
        found += re.findall(rf"\b{name}->\w+", code)
    return found + re.findall(r"\((?:const )?(?:%s) \*\)" % "|".join(PASSED_ON), code)


def test_there_are_sources():
    assert len(C_FILES) > 20


@pytest.mark.parametrize("path", C_FILES, ids=lambda p: str(p.relative_to(SRC)))
def test_includes_point_downwards(path):
    folder = folder_of(path.relative_to(SRC))
    for name in re.findall(r'#include "([^"]+)"', path.read_text()):
        if name.startswith("internal/"):
            assert folder == "python/compat", f"{path.name}: internal headers belong in python/compat/"
        else:
            included = folder_of(pathlib.PurePath(name))
            assert included in {folder, *MAY_INCLUDE[folder]}, f"{path.name} in {folder}/ includes {name}"


def test_the_folders_point_one_way():
    arrows = {(above, below) for above, folders in MAY_INCLUDE.items() for below in folders}
    assert not circles(arrows)
    assert set(MAY_INCLUDE) == {folder_of(path.relative_to(SRC)) for path in C_FILES}


@pytest.mark.parametrize("path", C_FILES, ids=lambda p: str(p.relative_to(SRC)))
def test_walls(path):
    folder, code = folder_of(path.relative_to(SRC)), without_comments(path.read_text())
    if not folder.startswith("python/"):
        assert "Python.h" not in code, "Python.h only under src/python/"
    if folder != "native":
        assert not NATIVE_SYMBOLS.search(code), "symbols of torch, numpy and CUDA only under src/native/"
    if folder != "python/compat":
        assert "PY_VERSION_HEX" not in code, "version tests only in python/compat/"
        assert not internals_in(code), "what CPython keeps to itself is read in python/compat/ only"


@pytest.mark.parametrize(
    "code",
    [
        "name = ((PyGenObject *)op)->gi_qualname;",
        "return ((const PyFrameObject *)op)->f_back;",
        "int f(PyThreadState *state) { return state->recursion_limit; }",
        "x = ((PyThreadState *)op)->frame;",
        "PyDictKeysObject *keys = NULL;",
        "_PyObject_GC_UNTRACK(op);",
        '#include "pycore_gc.h"',
    ],
)
def test_what_cpython_keeps_to_itself_is_found(code):
    assert internals_in(code)


def test_public_structs_and_thread_states_that_are_handed_on_pass():
    code = "PyThreadState *state = PyThreadState_Get(); lp_f(state); ((PyFunctionObject *)op)->func_code;"
    assert internals_in(code) == []


def test_the_list_has_all_structs_that_the_headers_of_this_version_do_not_define():
    folder = pathlib.Path(sysconfig.get_path("include"))
    headers = [path for path in folder.rglob("*.h") if "internal" not in path.parts]
    if not headers:
        pytest.skip("no headers of CPython")
    text = "\n".join(path.read_text(errors="replace") for path in headers)
    declared = dict(re.findall(r"^typedef struct (\w+) (Py\w+);", text, re.MULTILINE))
    declared = {name: tag for tag, name in declared.items()}
    defined = {
        name
        for name, tag in declared.items()
        if re.search(rf"^\s*struct {tag}\s*(\{{|_Py\w+_DEF)", text, re.MULTILINE)
    }
    assert len(declared) > 10  # there are 14 on 3.10
    assert declared.keys() - defined <= OPAQUE | HANDLES


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


@pytest.mark.parametrize("path", PYTHON_FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_nobody_imports_the_front_ends(path):
    parts = path.relative_to(ROOT / "leakprobe").parts
    if parts[0] in ("cli", "__main__.py", "pytest_plugin.py", "pytest_gate.py"):
        return
    assert not re.search(r"(import|from) leakprobe\.(cli|pytest_plugin|pytest_gate)", path.read_text())


def test_importing_leakprobe_imports_no_library(tmp_path):
    import subprocess
    import sys

    code = (
        "import sys, leakprobe\n"
        "print([m for m in ('torch', 'numpy', 'rich', 'psutil', 'sqlite3', 'pytest') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.strip() == "[]", done.stderr
