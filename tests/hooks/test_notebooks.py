"""A notebook that is executed by nbclient in a real kernel: what its cells show, what they are called, and a
cell that is stopped and run again.
"""

import asyncio
import os
import re
import subprocess
import sys

import pytest

nbformat = pytest.importorskip("nbformat", reason="needs nbformat")
nbclient = pytest.importorskip("nbclient", reason="needs nbclient")
pytest.importorskip("ipykernel", reason="needs ipykernel")

#: What a cell prints when it is to be interrupted.
NOW = "interrupt me now"

CELLS = {
    "load": """
%load_ext leakprobe
import leakprobe
kept = []""",
    "define": """
def keep():
    kept.append([float(k) for k in range(50)])""",
    "grows": """
%%leakprobe
for i in probe.steps(range(60)):
    row = [float(i + k) for k in range(50)]
    kept.append(row)""",
    "repeats": """
%%leakprobe -n 3:20
keep()""",
    "endless": f"""
%%leakprobe
for i in probe.steps(range(10**9)):
    keep()
    if i == 100: print('{NOW}', flush=True)""",
    "after": "leakprobe.is_active(), 'probe' in globals(), leakprobe_report.verdict",
    "again": """
%%leakprobe
for i in probe.steps(range(40)):
    keep()""",
    "endless -n": """
%%leakprobe -n 3:1000000
keep()
if len(kept) % 400 == 0:
    import signal
    print('now')
    signal.raise_signal(signal.SIGINT)""",
    "again -n": """
%%leakprobe -n 3:20
keep()""",
    "report": "leakprobe_report",
    "why": "leakprobe.why(kept)",
    "one path": "leakprobe.why(kept)[0]",
    "snapshots": """
leakprobe.start()
a = leakprobe.snapshot()
for i in range(100): keep()
b = leakprobe.snapshot()
leakprobe.stop()
b""",
    "diff": "leakprobe.diff(a, b)",
    "own watch": """
with leakprobe.watch() as watched:
    for i in range(30):
        keep()
        watched.step()
watched.report().print()""",
    "page": """
leakprobe_report.to_html('page.html')
print(open('page.html').read().count('In [2]:2 keep'))""",
    "value": "%%leakprobe -n 3:10\n{str(k): [k] for k in range(100)}",
    "shown": "%%leakprobe\nfor i in probe.steps(range(20)): pass\nkept[:0]",
    "semicolon": "%%leakprobe\nfor i in probe.steps(range(20)): pass\nlen('; #');  # not this;",
    "value after": "len('three')",
    "raises": """
%%leakprobe
for i in probe.steps(range(30)):
    keep()
    if i == 25: raise ValueError('no')""",
    "raises early": "%%leakprobe\nraise ValueError('no')",
    "raises -n": "%%leakprobe -n 3:10\n1 / 0",
    "is no Python": "%%leakprobe -n 3:10\nno Python",
    "exits": "%%leakprobe\nimport sys\nsys.exit(3)",
    "own probe": "%%leakprobe\nprobe = 5",
    "own probe after": "probe",
    "awaits": "%%leakprobe\nimport asyncio\nawait asyncio.sleep(0)",
    "quotation mark": "%%leakprobe -o 'abc\n1",
    "no digit": "%%leakprobe -w \N{SUPERSCRIPT TWO}\n1",
}
#: What a program says that embeds IPython and watches a cell there.
EMBEDDING = """
import IPython
def main():
    IPython.embed(colors="NoColor", banner1="", simple_prompt=True)
main()
"""


class Client(nbclient.NotebookClient):
    """Interrupts the kernel, as the stop button does, once for each cell that asks for it."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.stops: list = []

    def process_message(self, msg, cell, cell_index):
        asked = msg["msg_type"] == "stream" and NOW in msg["content"]["text"]
        if asked and cell.metadata.setdefault("interrupts", 0) == 0:
            cell.metadata["interrupts"] += 1
            self.stops.append(asyncio.ensure_future(self.km.interrupt_kernel()))
        return super().process_message(msg, cell, cell_index)


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """{name of the cell: {kind of output: text}}."""
    pytest.importorskip("jinja2", reason="the page needs jinja2")
    pytest.importorskip("plotly", reason="the page needs plotly")
    cells = [nbformat.v4.new_code_cell(source.lstrip()) for source in CELLS.values()]
    notebook = nbformat.v4.new_notebook(cells=cells)
    folder = str(tmp_path_factory.mktemp("notebook"))
    client = Client(
        notebook,
        timeout=300,
        allow_errors=True,
        kernel_name="python3",
        resources={"metadata": {"path": folder}},
    )
    client.execute(env={**os.environ, "IPYTHONDIR": folder})
    return {name: texts_of(cell) for name, cell in zip(CELLS, notebook.cells, strict=True)}


def texts_of(cell) -> dict:
    found: dict = {}
    for output in cell.outputs:
        if output.output_type == "stream":
            found["stream"] = found.get("stream", "") + output.text
        elif output.output_type == "error":
            found["error"] = output.ename
        else:
            found.update({kind: found.get(kind, "") + str(text) for kind, text in output.data.items()})
    return found


def words_of(html: str) -> str:
    """What a reader sees of HTML."""
    html = re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


def test_a_growing_cell_shows_its_finding_by_the_cell_s_name(outputs):
    shown = words_of(outputs["grows"]["text/html"])
    assert shown.startswith("growing 1 finding in 55 steps") and "float (python)" in shown
    assert re.search(r"kept \(list, \d+ items\)", shown), "who keeps it"
    assert "In [3]:3 &lt;listcomp&gt;" in shown or "In [3]:3 &lt;module&gt;" in shown, (
        "the line as it is read"
    )
    assert "grows at In [3]:4" in shown and "ipykernel" not in shown and ".py" not in shown
    assert outputs["grows"]["text/plain"] == "<leakprobe report: growing, 1 finding, 55 steps>"


def test_a_function_of_another_cell_is_named_by_that_cell(outputs):
    shown = words_of(outputs["repeats"]["text/html"])
    assert "1 finding in 20 steps" in shown and "grows at In [2]:2 keep" in shown


@pytest.mark.parametrize("kind, steps", [("", 35), (" -n", 20)])
def test_a_cell_that_was_stopped_reports_and_runs_again(outputs, kind, steps):
    stopped = outputs[f"endless{kind}"]
    assert "now" in stopped["stream"] and stopped["error"] in ("KeyboardInterrupt", "Stopped")
    assert words_of(stopped["text/html"]).startswith("growing"), "what was seen until then"
    assert "error" not in outputs[f"again{kind}"]
    assert f"1 finding in {steps} steps" in words_of(outputs[f"again{kind}"]["text/html"])


def test_a_stopped_cell_leaves_nothing_behind(outputs):
    assert outputs["after"]["text/plain"] == "(False, False, 'growing')"


def test_a_report_is_html_of_its_own_and_one_line_of_text(outputs):
    html = outputs["report"]["text/html"]
    assert (
        "<script" not in html
        and 'class="leakprobe"' in html
        and ("allocator hook" in words_of(html) or "creation events" in words_of(html))
    )
    assert outputs["report"]["text/plain"].startswith("<leakprobe report: growing")


def test_paths_snapshots_and_differences_are_html(outputs):
    for name in ("why", "one path"):
        shown = words_of(outputs[name]["text/html"])
        assert "1 path from a root" in shown and re.search(r"__main__ global kept \(list, \d+ items\)", shown)
        assert len(outputs[name]["text/plain"]) < 200
    shown = words_of(outputs["snapshots"]["text/html"])
    assert shown.startswith("Snapshot at step 0") and "allocated at" in shown
    assert outputs["snapshots"]["text/plain"] == "<leakprobe snapshot at step 0>"
    shown = words_of(outputs["diff"]["text/html"])
    assert re.search(r"\+5,000 python float In \[2\]:2", shown) and "rows changed" in shown


def test_a_watch_without_the_magic_names_cells_too(outputs):
    assert re.search(r"In \[2\]:2 in (keep|<listcomp>)", outputs["own watch"]["stream"])


def test_the_page_names_cells_and_shows_their_lines(outputs):
    assert int(outputs["page"]["stream"]) >= 1


# ---- what a cell shows, and how it ends ----


def test_the_value_of_a_repeated_cell_is_not_kept_for_each_repetition(outputs):
    assert outputs["value"]["text/plain"] == "<leakprobe report: steady, 0 findings, 10 steps>"


def test_a_value_is_shown_unless_a_semicolon_ends_the_cell(outputs):
    assert outputs["shown"]["text/plain"].startswith("[]<leakprobe report: steady")
    assert outputs["semicolon"]["text/plain"].startswith("<leakprobe report: steady")
    assert outputs["value after"]["text/plain"] == "5"


@pytest.mark.parametrize(
    "code, ends",
    [
        ("f();", True),
        ("f();  # said", True),
        ("f()  # no;", False),
        ("';'", False),
        ("f(", False),
        ("", False),
    ],
)
def test_what_ends_in_a_semicolon(code, ends):
    from leakprobe.integrations.ipython import ends_in_semicolon

    assert ends_in_semicolon(code) is ends


def test_a_cell_that_fails_has_failed_and_shows_its_report(outputs):
    assert outputs["raises"]["error"] == "Failed"
    assert words_of(outputs["raises"]["text/html"]).startswith("growing 1 finding in 20 steps")
    for name in ("raises early", "raises -n", "is no Python", "exits"):
        assert outputs[name]["error"] == "Failed" and "no step was marked" not in outputs[name].get(
            "stream", ""
        )


def test_a_variable_that_the_cell_makes_stays(outputs):
    assert outputs["own probe after"]["text/plain"] == "5"


def test_what_can_not_be_run_is_said_in_one_line(outputs):
    assert outputs["awaits"]["stream"].startswith("UsageError: %%leakprobe can't run a cell with await")
    for name in ("quotation mark", "no digit"):
        assert outputs[name]["stream"].startswith("UsageError: ") and "-w WARMUP" in outputs[name]["stream"]


def test_a_cell_of_an_embedded_ipython_is_blamed_not_the_program_that_embeds_it(tmp_path):
    program = tmp_path / "embeds.py"
    program.write_text(EMBEDDING)
    cells = (
        "%load_ext leakprobe\nkept = []\n%%leakprobe -n 3:10\nkept.append(bytearray(10_000))\n\n\n\nexit()\n"
    )
    environment = {**os.environ, "IPYTHONDIR": str(tmp_path)}
    command = [sys.executable, str(program)]
    done = subprocess.run(
        command, input=cells, stdout=subprocess.PIPE, env=environment, text=True, timeout=900
    )
    assert re.search(r"--> In \[\d+\]:2", done.stdout) and "--> embeds.py" not in done.stdout
