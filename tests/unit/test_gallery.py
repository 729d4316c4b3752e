"""The gallery shows the programs as they are, and what leakprobe says of them now, but for figures."""

import importlib.util
import pathlib
import re

import forked
import pytest
from native_support import needs_torch

from leakprobe.model.causes import CAUSES

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
spec = importlib.util.spec_from_file_location("gallery", DOCS / "site" / "gallery.py")
gallery = importlib.util.module_from_spec(spec)
spec.loader.exec_module(gallery)
SECTION = re.compile(
    r"^## (.+?)\n\n(.+?)\n\n```python.*?\n(.*?)\n```\n\n```text\n(.*?)\n```$", re.DOTALL | re.MULTILINE
)


def sections():
    """{title: (about, code, report)} of the page."""
    return {
        title: (about, code, report)
        for title, about, code, report in SECTION.findall(gallery.PAGE.read_text())
    }


def said(report):
    """The verdict without figures, and the causes that a report names."""
    words = " ".join(report.split())
    return re.sub(r"\d+", "N", report.splitlines()[0]), sorted(
        name for name, text in CAUSES.items() if text in words
    )


def test_every_program_has_its_section():
    assert sorted(gallery.ORDER) == sorted(program.stem for program in gallery.PROGRAMS.glob("*.py"))
    assert len(gallery.ORDER) == 20
    shown = sections()
    assert list(shown) == [gallery.parts_of(gallery.PROGRAMS / f"{name}.py")[0] for name in gallery.ORDER]
    for name in gallery.ORDER:
        title, about, code = gallery.parts_of(gallery.PROGRAMS / f"{name}.py")
        assert shown[title][:2] == (about, code)


def test_the_table_at_the_end_is_left_out():
    assert gallery.without_table("a\n\nnot seen: pinned, cuda (no CUDA build of torch)\n") == "a"


@needs_torch
@pytest.mark.parametrize("name", gallery.ORDER)
def test_report_says_what_the_page_shows(name):
    program = gallery.PROGRAMS / f"{name}.py"
    _about, _code, shown = sections()[gallery.parts_of(program)[0]]
    verdict, causes = said(shown)
    assert verdict.startswith("growing: N finding ") and len(causes) == 1
    assert said(gallery.report_of(program, forked.run)) == (verdict, causes)
