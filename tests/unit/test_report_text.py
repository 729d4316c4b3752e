"""The report as text: wording, layout at 80 and 120 columns, and what must not come through."""

import io
import json
import subprocess
import sys
import threading

import pytest
from sample_reports import MEDIA, STACK, finding, note, peak, report

import leakprobe
from leakprobe.model.frames import Frame
from leakprobe.report.diagnostic import shown_file


def text_of(what, columns=None, monkeypatch=None) -> str:
    if columns:
        monkeypatch.setenv("COLUMNS", str(columns))
    file = io.StringIO()
    what.print(file=file)
    return file.getvalue()


@pytest.fixture(autouse=True)
def columns(monkeypatch):
    for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "120")


@pytest.mark.parametrize(
    "what, line",
    [
        (report([finding()]), "growing: 1 finding in 60 steps (5 warm-up)"),
        (report([finding(), finding()]), "growing: 2 findings in 60 steps (5 warm-up)"),
        (report(), "steady: nothing grows (60 steps measured, 5 warm-up)"),
        (
            report(verdict="inconclusive", measured=3),
            "inconclusive: 3 steps measured, at least 9 are needed",
        ),
        (report(verdict="inconclusive", measured=1), "inconclusive: 1 step measured, at least 9 are needed"),
    ],
)
def test_first_line_is_the_verdict(what, line):
    assert text_of(what).splitlines()[0] == line


IN_FULL = """\
growing: 1 finding in 60 steps (5 warm-up)

1  leak[graph-kept]: a tensor is kept with its autograd graph
   +6.0 MiB/step   360 MiB live   torch.Tensor (cpu), 3 a step
   --> /home/me/train.py:58 in training_step, allocates, and grows history (list, 60 items)
   kept by
   ┬─ history (list, 60 items)
   ╰→ [59] Tensor
   allocated  train.py:58 training_step -> model.py:21 forward -> linear.py:125 Linear.forward
   because    58 of 58 measured steps still have survivors, 3 a step
   help       keep loss.item(), train.py:61
   more       leakprobe explain graph-kept

"""
TABLE = """\
memory     live  seen by
python  1.0 MiB  allocator hook
pinned        -  not seen: no CUDA build of torch
"""


def test_a_finding_in_full(monkeypatch):
    what = report([finding()])
    assert text_of(what, 120, monkeypatch) == IN_FULL + "not seen: pinned (no CUDA build of torch)\n"
    file = io.StringIO()
    what.print(file=file, verbose=True)
    assert file.getvalue() == IN_FULL + TABLE


def test_what_was_seen_needs_no_line():
    what = report()
    what.media = {"python": MEDIA["python"]}
    assert text_of(what) == "steady: nothing grows (60 steps measured, 5 warm-up)\n"


SOURCE = {
    "/home/me/train.py": {
        57: "    loss = model(x)",
        58: "\thistory.append(loss)  # kept",
        59: "",
        60: "x = 1",
    },
    "/home/me/model.py": {20: "def forward(x):", 21: "    return layer(x)"},
}


def with_source(**changes):
    what = report([finding(**changes)])
    what.source = SOURCE
    return text_of(what)


def test_the_line_is_shown_and_underlined():
    assert (
        "   --> /home/me/train.py:58 in training_step\n"
        "   57 |     loss = model(x)\n"
        "   58 |     history.append(loss)  # kept\n"
        "      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^ allocates, and grows history (list, 60 items)\n"
        "   kept by\n"
    ) in with_source()


def test_lines_of_two_files_stand_in_two_blocks():
    assert (
        "   58 |     history.append(loss)  # kept\n"
        "      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^ grows history (list, 60 items)\n"
        "   ::: /home/me/model.py:21 in forward\n"
        "   20 | def forward(x):\n"
        "   21 |     return layer(x)\n"
        "      |     --------------- allocates\n"
    ) in with_source(allocation=STACK[1])


def test_the_change_is_shown_on_the_whole_line():
    text = with_source(
        fix="keep numbers, train.py:58: `history.append(loss)` becomes `history.append(float(loss))`"
    )
    assert (
        "   help       keep numbers, train.py:58\n"
        "              - history.append(loss)  # kept\n"
        "              + history.append(float(loss))  # kept\n"
    ) in text


def test_the_first_element_that_should_not_be_is_underlined():
    path = [
        {"text": "train", "edge": "module", "type": "module", "lives": "yes", "why": "a module"},
        {"text": "log (list, 9 items)", "edge": "global", "type": "list", "lives": "unknown", "why": ""},
        {
            "text": "[3] Tensor",
            "edge": "index",
            "type": "Tensor",
            "lives": "no",
            "why": "each step leaves one",
        },
        {"text": "buffer (cpu)", "edge": "buffer", "type": "buffer", "lives": "no", "why": "kept by that"},
    ]
    assert (
        "   ┬─ train\n"
        "   ├─ log (list, 9 items)  global\n"
        "   ├─ [3] Tensor\n"
        "   │  ~~~~~~~~~~  each step leaves one\n"
        "   ╰→ buffer (cpu)\n"
    ) in text_of(report([finding(path=path)]))


def test_the_middle_of_a_long_path_is_left_out_unless_all_is_asked_for():
    path = [{"text": f"part_{i}", "edge": "item", "type": "list"} for i in range(20)]
    what = report([finding(path=path)])
    assert "├─ part_6  item\n   ├─ ... 10 more\n   ├─ part_17  item\n" in text_of(what)
    file = io.StringIO()
    what.print(file=file, verbose=True)
    assert all(f" part_{i}" in file.getvalue() for i in range(20)) and "more\n" not in file.getvalue()


def test_the_highest_point_by_line_is_shown_where_all_is_asked_for():
    what = report()
    what.peaks = [peak(Frame("/home/me/[red]\x1b.py", 7, "forward"))]
    file = io.StringIO()
    what.print(file=file, verbose=True)
    table = file.getvalue().partition("cpu at its highest reading, 3.0 MiB in step 2\n")[2].splitlines()
    assert [" ".join(line.split()) for line in table[:3]] == [
        "role count bytes allocated at",
        "activation 1,200 2.0 MiB [red]\\x1b.py:7 forward",
        "other 1 1.0 MiB line not known",
    ]
    assert "highest" not in text_of(what)


def test_what_is_not_known_is_said_or_left_out():
    text = text_of(
        report(
            [
                finding(
                    path=None,
                    holder=None,
                    allocation=None,
                    allocation_stack=[],
                    fix=None,
                    cause="unknown",
                    type=None,
                )
            ]
        )
    )
    assert "kept by" not in text and "grows" not in text and "help" not in text and "explain" not in text
    assert "--> line not known" in text
    assert "leak[unknown]: the cause is not known" in text
    assert "buffers (cpu)" in text


def test_a_cycle_is_named_one():
    text = text_of(
        report(
            [finding(kind="reference_cycle", cycle=[{"text": "Node", "edge": "attribute", "type": "Node"}])]
        )
    )
    assert "   cycle\n   ┬─ Node\n" in text


def test_the_largest_rate_comes_first():
    text = text_of(report([finding(bytes_per_step=2048.0), finding(bytes_per_step=4096.0)]))
    assert (
        text.index("1  leak[") < text.index("+4.0 KiB/step") < text.index("2  leak[") < text.index("+2.0 KiB")
    )


def test_notes_follow_the_findings():
    text = text_of(report([finding()], [note()]))
    assert text.index("\n   help") < text.index("note[bounded]: filling, 3 of 10") < text.index("not seen: ")


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_lines_fit_and_end_without_spaces(columns, monkeypatch):
    path = [{"text": f"part_{i} (list, 60 items)", "edge": "item", "type": "list"} for i in range(20)]
    text = text_of(
        report([finding(path=path, evidence="word " * 50)], [note(text="word " * 50)]), columns, monkeypatch
    )
    assert max(map(len, text.splitlines())) <= columns
    assert not any(line.endswith(" ") for line in text.splitlines())


def test_text_of_the_program_is_no_markup_and_moves_no_cursor():
    path = [{"text": "[red]cache[/red] \x1b[2J\x07\r\n\u202e\udcff", "edge": "item", "type": "dict"}]
    text = text_of(
        report([finding(path=path, type="evil\x1b[31m", evidence="[bold]")], [note(text="\x1b]0;title\x07")])
    )
    assert "[red]cache[/red] \\x1b[2J\\x07\\r\\n\\u202e\\udcff" in text
    assert "because    [bold]" in text
    assert "\x1b" not in text and "\x07" not in text and "\r" not in text


def test_a_stream_that_lacks_letters_gets_escapes():
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding="ascii")
    report([finding(type="módulo.Tensör")]).print(file=file)
    file.flush()
    assert b"m\\xf3dulo.Tens\\xf6r" in raw.getvalue()


def test_a_terminal_gets_colours_and_a_pipe_none():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    report([finding()]).print(file=terminal)
    assert "\x1b[" in terminal.getvalue()
    assert "\x1b[" not in text_of(report([finding()]))


def test_notebooks_get_escaped_html():
    html = report([finding(type="<script>")], [note(text="<script>")])._repr_html_()
    assert html.startswith('<div class="leakprobe">') and "&lt;script&gt;" in html and "<script>" not in html
    assert "+6.0 MiB/step" in html and "history (list, 60 items)" in html and "keep loss.item()" in html
    assert html.count("&lt;script&gt;") == 2 and '<span class="verdict growing">' in html


def test_a_report_is_one_line_where_it_is_echoed():
    assert repr(report([finding()])) == "<leakprobe report: growing, 1 finding, 60 steps>"


def test_making_a_report_imports_no_report_library(tmp_path):
    code = "import sys, leakprobe.model.report; print('rich' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.strip() == "False", done.stderr


def test_paths_and_cycles_in_an_encoding_without_signs_of_trees():
    path = (
        {"text": "train()", "edge": "root", "type": None},
        {"text": "é list", "edge": "local", "type": "list"},
    )
    cycle = leakprobe.Cycle(
        path=path, members=1, objects=(), bytes={}, collectable=True, lacks=None, sites=(), tracked=1
    )
    for one in (leakprobe.RetentionPath(path), cycle):
        raw = io.BytesIO()
        file = io.TextIOWrapper(raw, encoding="ascii")
        one.print(file)
        file.flush()
        assert "+- train()\n`> \\xe9 list" in raw.getvalue().decode("ascii")


def test_a_file_of_the_standard_library_is_named_from_there_on():
    assert shown_file(threading.__file__) == "threading.py"
    assert shown_file(json.decoder.__file__) == "json/decoder.py"
