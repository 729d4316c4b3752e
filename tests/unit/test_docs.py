"""The documentation says what the code does: its reference, its examples and its links."""

import importlib.util
import json
import os
import pathlib
import re
import runpy
import subprocess
import sys

import forked
import pytest

ROOT = pathlib.Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(
    [*DOCS.glob("*.md"), ROOT / "README.md", ROOT / "src" / "README.md", ROOT / "benchmarks" / "README.md"]
)
EXAMPLES = runpy.run_path(str(DOCS / "site" / "examples.py"))
BLOCK, shape = EXAMPLES["BLOCK"], EXAMPLES["shape"]
#: What needs torch, and seconds for it: pages whose commands train.
TRAINING = ("leakprobe run", "leakprobe demo")


def start(command, **where):
    """The command of a page, in a child of a process that has imported torch if it trains.

    What is recorded to be compared is the whole process, imports too.
    """
    if "-o" in command or not any(part in command for part in ("run", "demo")):
        return EXAMPLES["started"](command, **where)
    done = forked.run(command[1:], **where, trains=True)
    return subprocess.CompletedProcess(command, done.returncode, done.stdout + done.stderr)


def blocks(kind) -> list:
    """(file or command, text) of the blocks of the pages that are made from something."""
    found = [(page, match) for page in PAGES for match in BLOCK.finditer(page.read_text())]
    return [
        pytest.param(m[2], m[4], id=f"{page.name}-{pathlib.Path(m[2].split()[-1]).stem}")
        for page, m in found
        if m[1] == kind
    ]


@pytest.mark.parametrize(
    "name", ["reference-api.md", "reference-cli.md", "reference-json.md", "reference-options.md"]
)
def test_reference_is_made_from_this_code(name):
    reference = runpy.run_path(str(DOCS / "site" / "reference.py"))
    assert (DOCS / name).read_text() == reference["PAGES"][name](), "run docs/site/reference.py"


def test_all_variables_are_documented():
    known = set(runpy.run_path(str(DOCS / "site" / "reference.py"))["VARIABLES"])
    sources = "".join(p.read_text() for p in [*ROOT.glob("leakprobe/**/*.py"), *ROOT.glob("src/**/*.c")])
    read = set(re.findall(r"(?:environ\.get\(|getenv\(|is_asked_for\()\"(LEAKPROBE\w*)\"", sources))
    read |= {f"LEAKPROBE_{name}" for name in re.findall(r"variable\(\"(\w+)\"", sources)}
    assert read <= known
    run = (ROOT / "leakprobe" / "cli" / "run.py").read_text()
    assert all(name in read or f'"{name.removeprefix("LEAKPROBE_").lower()}"' in run for name in known)


@pytest.mark.parametrize("name, text", blocks("file"))
def test_code_in_a_page_is_the_file(name, text):
    assert text == (DOCS / name).read_text()


@pytest.mark.parametrize("command, text", blocks("output"))
def test_output_in_a_page_is_what_the_command_prints(command, text, tmp_path):
    if command.endswith("cycles.py") and sys.version_info < (3, 11):
        pytest.skip(
            "the attributes of an instance are an object of their own before 3.11, and a member of the cycle"
        )
    if command.startswith(TRAINING):
        pytest.importorskip("torch")
        pytest.importorskip("sklearn")
        if sys.version_info[:2] != (3, 11):
            pytest.skip("the pages are of 3.11: paths through torch differ between versions of Python")
    (tmp_path / "docs").symlink_to(DOCS)
    printed = EXAMPLES["on_a_quiet_machine"](EXAMPLES["output_of"](command, tmp_path, start))
    assert shape(printed) == shape(text)


@pytest.mark.parametrize("name, verdict", [("leaking", "growing"), ("fixed", "steady")])
def test_tutorial(name, verdict, tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("sklearn")
    script = DOCS / "examples" / f"{name}.py"
    command = ["-m", "leakprobe", "run", "--json", str(tmp_path / "report.json"), str(script)]
    forked.run(command, cwd=tmp_path, env={**os.environ, "OMP_NUM_THREADS": "1"}, trains=True)
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["verdict"] == verdict
    if verdict == "growing":
        (finding,) = report["findings"]
        page = (DOCS / "tutorial.md").read_text()
        line = script.read_text().splitlines()[finding["holder"]["grown_at"]["lineno"] - 1]
        assert line.strip() == "history.append(loss)"
        assert f"--> docs/examples/leaking.py:{finding['holder']['grown_at']['lineno']} in check" in page
        advice = finding["fix"].partition(": `")[0]
        assert finding["cause"] == "graph_kept" and advice in " ".join(page.split())


def test_fixed_differs_by_the_line_that_the_tutorial_shows():
    leaking, fixed = (
        (DOCS / "examples" / f"{name}.py").read_text().splitlines() for name in ("leaking", "fixed")
    )
    (changed,) = [(old, new) for old, new in zip(leaking, fixed, strict=True) if old != new]
    assert all(f"{sign}{line}" in (DOCS / "tutorial.md").read_text() for sign, line in zip("-+", changed))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        assert target.startswith("http") or (page.parent / target).exists(), target


def test_files_that_contributing_names_exist():
    text = (DOCS / "contributing.md").read_text()
    added = set(re.findall(r"^A new file, `([^`]+)`:", text, re.MULTILINE))  # by tests/rules/test_recipes.py
    for path in re.findall(r"`((?:src|leakprobe|docs|tests)/[\w./-]+)`", text):
        assert "NAME" in path or path in added or (ROOT / path).exists(), path


def test_site_builds_with_all_links(tmp_path):
    if importlib.util.find_spec("mkdocs") is None:
        pytest.skip("mkdocs is not installed")
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "-q",
        "-f",
        str(DOCS / "site" / "mkdocs.yml"),
        "--strict",
        "-d",
        str(tmp_path / "site"),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "site" / "tutorial" / "index.html").exists()
