"""The documentation says what the code does: its reference, its examples and its links."""

import importlib.util
import json
import os
import pathlib
import re
import runpy
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(
    [*DOCS.glob("*.md"), ROOT / "README.md", ROOT / "src" / "README.md", ROOT / "benchmarks" / "README.md"]
)
BLOCK = re.compile(r"<!-- (file:|output of) (examples/\S+) -->\n```\w*\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(kind) -> list:
    """(example, text) of the blocks that are tied to a file."""
    found = [(page, match) for page in PAGES for match in BLOCK.finditer(page.read_text())]
    return [
        pytest.param(m[2], m[3], id=f"{page.name}-{pathlib.Path(m[2]).stem}")
        for page, m in found
        if m[1] == kind
    ]


def shape(text: str) -> str:
    """A report without its numbers and line breaks: those differ between machines and versions."""
    text = re.sub(r"\d[\d,.]*(\s+[KMGT]?i?B\b)?", "#", text)
    return " ".join(text.split())


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


@pytest.mark.parametrize("name, text", blocks("file:"))
def test_code_in_a_page_is_the_file(name, text):
    assert text == (DOCS / name).read_text()


@pytest.mark.parametrize(
    "name, text",
    [p for p in blocks("output of") if p.values[0] not in ("examples/leaking.py", "examples/mended.py")],
)
def test_output_in_a_page_is_what_the_example_prints(name, text, tmp_path):
    if name.endswith("cycles.py") and sys.version_info < (3, 11):
        pytest.skip(
            "the attributes of an instance are an object of their own before 3.11, and a member of the cycle"
        )
    done = subprocess.run(
        [sys.executable, str(DOCS / name)],
        cwd=tmp_path,
        env={**os.environ, "COLUMNS": "110"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert shape(done.stdout) == shape(text)


@pytest.mark.parametrize("name, verdict", [("leaking", "growing"), ("mended", "steady")])
def test_tutorial(name, verdict, tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("sklearn")
    script = DOCS / "examples" / f"{name}.py"
    command = [sys.executable, "-m", "leakprobe", "run", "--json", str(tmp_path / "report.json"), str(script)]
    subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True
    )
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["verdict"] == verdict
    if verdict == "growing":
        (finding,) = report["findings"]
        page = (DOCS / "tutorial.md").read_text()
        line = script.read_text().splitlines()[finding["holder"]["grown_at"]["lineno"] - 1]
        assert line.strip() == "history.append(loss)"
        assert f"grown at   leaking.py:{finding['holder']['grown_at']['lineno']}" in page
        assert finding["cause"] == "graph_kept" and finding["fix"] in " ".join(page.split())


def test_mended_differs_by_the_line_that_the_tutorial_shows():
    leaking, mended = (
        (DOCS / "examples" / f"{name}.py").read_text().splitlines() for name in ("leaking", "mended")
    )
    (changed,) = [(old, new) for old, new in zip(leaking, mended, strict=True) if old != new]
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
