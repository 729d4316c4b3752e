"""The report of each cause as text, as it was reviewed: at three widths, in a pipe, on a terminal
with colour and without.

reports_of_causes.json has a finding of each cause as a run gave it, and the source around its lines.
`python tests/unit/test_report_snapshots.py` writes the snapshots anew; read their difference
before it is kept.
"""

import io
import json
import pathlib
import re

import pytest

from leakprobe.model.causes import CAUSES
from leakprobe.model.finding import Finding
from leakprobe.model.report import Report

HERE = pathlib.Path(__file__).parent
FINDINGS = json.loads((HERE / "reports_of_causes.json").read_text())
WIDTHS = (60, 80, 120)
#: What a style is told by: bold, dim, underline; and what a colour is.
STYLE, COLOUR = re.compile(r"\x1b\[([\d;]*)m"), re.compile(r"(^|;)(3|4|9|10)\d(;|$)")
VARIABLES = ("COLUMNS", "FORCE_COLOR", "NO_COLOR", "TERM", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLORTERM")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def report_of(cause: str) -> Report:
    row = FINDINGS[cause]
    source = {name: {int(n): text for n, text in lines.items()} for name, lines in row["source"].items()}
    return Report(
        verdict="growing",
        steps={"warmup": 5, "measured": 55},
        findings=[Finding.from_dict(row["finding"])],
        notes=[],
        lines=[],
        media={},
        timeline=[],
        memory=[],
        source=source,
    )


def printed(report: Report, file: io.StringIO) -> str:
    report.print(file=file)
    return file.getvalue()


def all_reports(kind: type[io.StringIO]) -> str:
    return "\n".join(f"==== {cause} ====\n{printed(report_of(cause), kind())}" for cause in sorted(FINDINGS))


def surroundings(patch: pytest.MonkeyPatch, width: int, **variables: str) -> None:
    for name in VARIABLES:
        patch.delenv(name, raising=False)
    patch.setenv("COLUMNS", str(width))
    for name, value in variables.items():
        patch.setenv(name, value)


def snapshot_file(name: str) -> pathlib.Path:
    return HERE / "snapshots" / f"{name}.txt"


def colours(text: str) -> list[str]:
    return [code for code in STYLE.findall(text) if COLOUR.search(code)]


def test_there_is_a_finding_of_each_cause():
    assert set(FINDINGS) == set(CAUSES)


@pytest.mark.parametrize("width", WIDTHS)
def test_in_a_pipe_it_is_as_reviewed(width, monkeypatch):
    surroundings(monkeypatch, width)
    text = all_reports(io.StringIO)
    assert text == snapshot_file(f"pipe-{width}").read_text()
    assert "\x1b" not in text and max(map(len, text.splitlines())) <= width


def test_on_a_terminal_it_has_the_colours_that_were_reviewed(monkeypatch):
    surroundings(monkeypatch, 80, TERM="xterm")
    assert all_reports(Terminal) == snapshot_file("colour-80").read_text()


@pytest.mark.parametrize("width", WIDTHS)
def test_a_terminal_gets_the_words_of_a_pipe_in_colour(width, monkeypatch):
    surroundings(monkeypatch, width, TERM="xterm")
    text = all_reports(Terminal)
    assert colours(text) and STYLE.sub("", text) == snapshot_file(f"pipe-{width}").read_text()


@pytest.mark.parametrize("width", WIDTHS)
def test_no_color_leaves_the_colours_out(width, monkeypatch):
    surroundings(monkeypatch, width, TERM="xterm", NO_COLOR="1")
    text = all_reports(Terminal)
    assert not colours(text) and STYLE.sub("", text) == snapshot_file(f"pipe-{width}").read_text()


def write_snapshots() -> None:
    patch = pytest.MonkeyPatch()
    snapshot_file("x").parent.mkdir(exist_ok=True)
    for width in WIDTHS:
        surroundings(patch, width)
        snapshot_file(f"pipe-{width}").write_text(all_reports(io.StringIO))
    surroundings(patch, 80, TERM="xterm")
    snapshot_file("colour-80").write_text(all_reports(Terminal))
    patch.undo()


if __name__ == "__main__":
    write_snapshots()
