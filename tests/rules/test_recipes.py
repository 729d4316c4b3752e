"""The recipes of docs/contributing.md, carried out word for word in a copy of the tree."""

import dataclasses
import json
import os
import pathlib
import pickle
import re
import shutil
import subprocess
import sys
import sysconfig

import pytest

ROOT = pathlib.Path(__file__).parents[2]
EXT = ROOT / "tests" / "ext"
PAGE = ROOT / "docs" / "contributing.md"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="native hooks are for Linux")

STEP = re.compile(
    r"^(?:In `(?P<path>[^`]+)`, behind the line with `(?P<anchor>[^\n]+)`|A new file, `(?P<new>[^`]+)`):\n\n"
    r"```\w+\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclasses.dataclass(frozen=True)
class Step:
    path: str
    anchor: str | None  # None: the whole file
    text: str

    def carry_out(self, tree: pathlib.Path) -> None:
        target = tree / self.path
        if self.anchor is None:
            assert not target.exists(), f"{self.path} is there already"
            target.write_text(self.text)
            return
        lines = target.read_text().splitlines(keepends=True)
        places = [i for i, line in enumerate(lines) if self.anchor in line]
        assert len(places) == 1, f"{self.path} has {len(places)} lines with {self.anchor!r}"
        lines.insert(places[0] + 1, self.text)
        target.write_text("".join(lines))


def steps_of(page: str, heading: str) -> list[Step]:
    section = page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return [
        Step(match["path"] or match["new"], match["anchor"], match["text"])
        for match in STEP.finditer(section)
    ]


def run(*command: object, cwd: pathlib.Path, **environment: str) -> str:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LEAKPROBE")}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=clean | environment,
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build_toy(folder: pathlib.Path) -> None:
    options = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror"]
    include = sysconfig.get_path("include")
    run("gcc", *options, EXT / "toy_pool.c", "-o", "libtoy_pool.so", cwd=folder)
    linked = ["-L.", "-ltoy_pool", f"-Wl,-rpath,{folder}"]
    run("gcc", *options, f"-I{include}", EXT / "toy.c", "-o", "toy.abi3.so", *linked, cwd=folder)


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy with the steps carried out, built with assertions and warnings as errors."""
    copy = tmp_path_factory.mktemp("recipe")
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    for name in ("src", "leakprobe"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    steps = steps_of(PAGE.read_text(), "A medium, step by step")
    assert len(steps) == 6
    for step in steps:
        step.carry_out(copy)
    run(sys.executable, "setup.py", "-q", "build_ext", "--inplace", cwd=copy, LEAKPROBE_DEBUG="1")
    build_toy(copy)
    return copy


@pytest.mark.slow
def test_the_recipe_of_a_medium_gives_one_that_is_served(tree):
    found = json.loads(run(sys.executable, "leak.py", cwd=tree, PYTHONPATH=str(tree)))
    assert found["media"]["active"] and found["media"]["mechanism"] == "toy_pool slots"
    (finding,) = found["findings"]
    assert finding["bytes_per_step"] == pytest.approx(64 * 1024, rel=0.05)
    line = (tree / "leak.py").read_text().splitlines()[finding["allocation"]["lineno"] - 1]
    assert finding["allocation"]["function"] == "<module>" and "kept.append" in line


@pytest.mark.slow
def test_a_medium_whose_owners_are_not_seen_says_so(tree):
    found = json.loads(run(sys.executable, "leak.py", cwd=tree, PYTHONPATH=str(tree)))
    (finding,) = found["findings"]
    assert (finding["kind"], finding["cause"]) == ("retained", "unknown")
    assert finding["path"][0]["text"] == "owner not seen"
    assert "can't see which objects own toy memory" in finding["fix"]


EVERYTHING = """
import json, sys
import leakprobe, toy
from leakprobe.model import media
from leakprobe.report.memory_viz import to_memory_viz

kept = []
with leakprobe.watch(warmup=2) as probe:
    for _ in probe.steps(range(40)):
        kept.append(toy.Buffer(64 * 1024))
report = probe.report()
open(sys.argv[1], "wb").write(to_memory_viz(report))
sets = {name: value for name, value in vars(media).items() if isinstance(value, (frozenset, tuple))}
names = sorted(name for name, value in sets.items() if "toy" in value)
print(json.dumps({"sets": names, "findings": [(f.medium, f.bytes_per_step) for f in report.findings]}))
"""


@pytest.mark.slow
def test_what_python_knows_of_a_medium_comes_from_its_row(tree, tmp_path):
    (tree / "everything.py").write_text(EVERYTHING)
    picture = tmp_path / "toy.pickle"
    found = json.loads(run(sys.executable, "everything.py", picture, cwd=tree, PYTHONPATH=str(tree)))
    sets = "ALL BUFFERS HOOKED HOOKED_IN_WORKERS HOOKED_ON_HOST HOST MALLOC PRIVATE UNOWNED"
    assert found["sets"] == sets.split()
    # Its blocks explain what malloc has given out: native growth is not found as well.
    assert found["findings"] == [["toy", pytest.approx(64 * 1024, rel=0.05)]]
    assert "toy" in pickle.loads(picture.read_bytes())["leakprobe"]["devices"].values()


@pytest.mark.slow
def test_front_ends_know_the_medium_without_a_word_of_their_own(tree):
    code = (
        "import leakprobe, toy\n"
        "from leakprobe.doctor import examine\n"
        "assert 'toy' in leakprobe.ALL\n"
        "[row] = [row for row in examine(False) if row['name'] == 'toy']\n"
        "print(row['value'], row['ok'])"
    )
    done = run(sys.executable, "-c", code, cwd=tree, PYTHONPATH=str(tree))
    assert done.split("\n")[0] == "toy_pool slots True"


MARKED = """
import pytest, toy

kept = []

@pytest.mark.limit_growth("1 KiB/step", steps="3:10", media=["toy"])
def test_one():
    kept.append(toy.Buffer(64 * 1024))
"""


@pytest.mark.slow
def test_the_marker_and_the_command_line_take_the_medium(tree):
    (tree / "test_one.py").write_text(MARKED)
    arguments = (
        "-q",
        "-p",
        "leakprobe.pytest_plugin",
        "-p",
        "no:cacheprovider",
        "--noconftest",
        "-c",
        os.devnull,
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments, tree / "test_one.py"],
        cwd=tree,
        env=os.environ | {"PYTHONPATH": str(tree), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 1 and "+64.0 KiB/step of toy from test_one.py:8" in done.stdout, done.stdout
    assert "toy_pool slots" in run(
        sys.executable,
        "-c",
        "import toy, leakprobe.cli as c; c.main(['doctor'])",
        cwd=tree,
        PYTHONPATH=str(tree),
    )


def test_the_docs_name_every_medium():
    from leakprobe import _core

    for page in ("concepts.md", "report.schema.json", "reference-json.md"):
        text = (PAGE.parent / page).read_text()
        assert not [row.name for row in _core.MEDIA if not re.search(rf"\b{row.name}\b", text)], page


def test_which_steps_a_page_has():
    page = """
## Other

A new file, `no.c`:

```c
```

## This

Words. In `a.c`, here:

In `src/a.h`, behind the line with `X(\\"a\\"`:

```c
one

two
```

A new file, `b.py`:

```python
three
```

## That
"""
    assert steps_of(page, "This") == [
        Step("src/a.h", 'X(\\"a\\"', "one\n\ntwo\n"),
        Step("b.py", None, "three\n"),
    ]
