"""What a release is made of agrees with the tree: the packages of the wheel, and where the version stands."""

import pathlib
import re

import leakprobe

ROOT = pathlib.Path(__file__).parent.parent.parent


def test_the_wheel_has_every_package():
    project = (ROOT / "pyproject.toml").read_text()
    listed = re.search(r"^packages = \[([^\]]*)\]", project, re.MULTILINE)[1]
    made = (path.parent.relative_to(ROOT) for path in (ROOT / "leakprobe").rglob("__init__.py"))
    assert sorted(re.findall(r'"([\w.]+)"', listed)) == sorted(".".join(path.parts) for path in made)


def test_changelog_and_citation_name_this_version():
    newest = re.search(r"^## \[([\d.]+)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[1]
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)[1]
    assert newest == cited == leakprobe.__version__
