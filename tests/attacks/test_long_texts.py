"""Texts of two million characters in a report: what reads them takes time by their length, not by its square,
which would be hours.
"""

import io
import sys
import types

import pytest
from reading import no_hang  # noqa: F401
from sample_reports import finding, report

from leakprobe.report import cells, html
from leakprobe.report.clean import clean
from leakprobe.report.diagnostic import change_of
from leakprobe.report.words import Words

LENGTH = 2_000_000
LONG = {
    text: (text * LENGTH)[:LENGTH]
    for text in ("a", "a ", "/", "/a", "/a ", "1", "1.py", "1234.py", "<ipython-input-1", "a\\", "((", ".")
}


@pytest.fixture
def cell(monkeypatch):
    """IPython with one cell."""
    files = {"/tmp/ipykernel_71/1234567.py": 3, "<ipython-input-8-ab>": 8}
    shell = types.SimpleNamespace(compile=types.SimpleNamespace(_filename_map=files))
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))


@pytest.mark.parametrize("text", LONG)
def test_a_long_text_is_shown(text):
    assert clean(LONG[text]) == LONG[text]
    Words(redact=True)(LONG[text])


@pytest.mark.parametrize("text", LONG)
def test_a_long_text_with_a_cell(text, cell):
    named = cells.with_cell_names(f"{LONG[text]} /tmp/ipykernel_71/1234567.py:2")
    assert named == f"{LONG[text]} In [3]:2"


def test_a_long_change_is_taken_apart():
    text = ": `a` becomes `b" * (LENGTH // 16)
    assert change_of(finding(fix=text)) == (text, "", "")
    assert change_of(finding(fix=f"a{text}`"))[2] == "b"


def test_long_texts_of_a_report_are_printed_and_in_a_page():
    length = LENGTH // 8
    changed = {"evidence": "a" * length, "type": "1" * length, "fix": "a: `" * length}
    path = [{"text": "/" * length, "edge": "item", "type": None}]
    what, out = report([finding(path=path, **changed)]), io.StringIO()
    what.print(file=out)
    assert len(out.getvalue()) > length < len(html.page(what, redact=True))


@pytest.mark.parametrize(
    "text, shown",
    [
        ("in /tmp/ipykernel_71/1234567.py:2", "in In [3]:2"),
        ("1234567.py", "In [3]"),
        ("('\\\\host\\1234567.py', 2)", "('In [3]', 2)"),
        ("<ipython-input-8-ab> and <ipython-input-9-ab>", "In [8] and <ipython-input-9-ab>"),
        ("/tmp/71234567.py, part1234567.py", "/tmp/71234567.py, partIn [3]"),
        ("/a/1234567.pyc /a/1234567.py", "/a/1234567.pyc In [3]"),
    ],
)
def test_cells_go_by_their_names(cell, text, shown):
    assert cells.with_cell_names(text) == shown
