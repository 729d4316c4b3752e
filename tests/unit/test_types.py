"""The examples of README and docs are typed Python: mypy --strict, and pyright where it is installed,
find nothing.

A page's blocks are one program; a name that they leave to the reader (train_step, loader) is Any.
"""

import ast
import builtins
import importlib.util
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FROM_FILE = re.compile(r"<!-- file: examples/\S+ -->\n```python\n.*?^```$", re.DOTALL | re.MULTILINE)


def blocks(page: pathlib.Path) -> list[str]:
    """The Python of a page, without what is a file of docs/examples and without prompts of IPython."""
    found = BLOCK.findall(FROM_FILE.sub("", page.read_text()))
    return [block for block in found if not re.search(r"^%|^>>>", block, re.MULTILINE)]


def left_open(tree: ast.Module) -> list[str]:
    """Names that are used and bound nowhere."""
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    bound = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            bound |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bound.add(node.name)
    return sorted({node.id for node in names} - bound - set(dir(builtins)))


def program(block: str) -> str:
    tree = ast.parse(block)
    # As a name that is imported from nowhere it is Any, also as a type or a base.
    opened = "".join(f"from reader import {name}\n" for name in left_open(tree))
    future = "from __future__ import annotations\n"
    return future + opened + block


@pytest.fixture(scope="module")
def programs(tmp_path_factory) -> pathlib.Path:
    """A folder with the examples and the blocks of all pages."""
    folder = tmp_path_factory.mktemp("programs")
    for page in PAGES:
        for number, block in enumerate(blocks(page), 1):
            name = f"{page.stem.replace('-', '_')}_{number}.py"
            (folder / name).write_text(program(block))
    for example in (ROOT / "docs" / "examples").glob("*.py"):
        (folder / f"example_{example.name}").write_text(example.read_text())
    assert {"README_1.py", "example_loop.py"} <= {path.name for path in folder.iterdir()}
    return folder


def test_the_examples_pass_mypy_strict(programs, tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "mypy.ini").write_text(
        "[mypy]\nstrict = True\nignore_missing_imports = True\nallow_subclassing_any = True\n"
        "disallow_untyped_decorators = False\ndisable_error_code = import-untyped\n"
        # Large libraries, which are not what is checked.
        "[mypy-torch.*,numpy.*,sklearn.*,transformers.*,lightning.*,accelerate.*,ray.*,pytest.*]\n"
        "follow_imports = skip\n"
        # The package itself is checked in lint.
        "[mypy-leakprobe.*]\nfollow_imports = silent\n"
    )
    command = [sys.executable, "-m", "mypy", "--config-file", str(tmp_path / "mypy.ini")]
    command += ["--cache-dir", str(tmp_path / "cache"), *map(str, sorted(programs.glob("*.py")))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_examples_pass_pyright(programs, tmp_path):
    if importlib.util.find_spec("pyright") is None:
        pytest.skip("pyright is not installed")
    (programs / "pyrightconfig.json").write_text(
        '{"reportMissingImports": false, "reportMissingModuleSource": false, "extraPaths": ["%s"]}' % ROOT
    )
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "-p", str(programs)]
    done = subprocess.run(command, cwd=programs, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
