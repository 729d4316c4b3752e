"""Writes docs/gallery.md: python docs/site/gallery.py.  It runs the programs of docs/examples/gallery/, each
in a process of its own, and prints them with their reports.  A test fails where the page is behind them.
"""

import ast
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import typing

DOCS = pathlib.Path(__file__).resolve().parent.parent
PROGRAMS = DOCS / "examples" / "gallery"
PAGE = DOCS / "gallery.md"
MADE = "<!-- made by docs/site/gallery.py: change the program, and run that -->"
INTRO = """# Gallery

Twenty small programs that leak, one for each of the common ways to do so, and what leakprobe reports.
Each report is shown as it was printed, but without the list of what was not seen; figures differ a little
from machine to machine. The programs are in `docs/examples/gallery/`.
"""
#: The order of the sections: how often such leaks are met, the commonest first.
ORDER = (
    "validation_loss",
    "running_loss",
    "hidden_state",
    "validation_outputs",
    "feature_hook",
    "first_sample",
    "replay_buffer",
    "joined_predictions",
    "tensor_keys",
    "cached_method",
    "kept_errors",
    "disabled_collector",
    "gradient_penalty",
    "new_parameters",
    "prefetch_queue",
    "finished_tasks",
    "open_files",
    "waiting_threads",
    "wrapped_transform",
    "native_buffer",
)
WIDTH = "110"


def started(command: list[str], **where: typing.Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command], **where, capture_output=True, text=True, timeout=600, check=False
    )


def report_of(program: pathlib.Path, start: typing.Any = started) -> str:
    """What a program prints, without the table at the end.

    ``start``: what runs it, as :func:`started`.
    """
    environment = {**os.environ, "PYTHONPATH": str(DOCS.parent), "COLUMNS": WIDTH}
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(program, folder)  # reports name files from the folder they are printed in
        done = start([program.name], cwd=folder, env=environment)
    if done.returncode != 0:
        raise SystemExit(f"{program.name} failed:\n{done.stderr}")
    return without_table(done.stdout)


def without_table(text: str) -> str:
    """Without what was not seen, which is the machine's."""
    lines = text.splitlines()
    table = next((at for at, line in enumerate(lines) if line.startswith("not seen: ")), len(lines))
    return "\n".join(line.rstrip() for line in lines[:table]).strip()


def parts_of(program: pathlib.Path) -> tuple[str, str, str]:
    """(title, what it is about, code) of a program: its docstring's first line, the rest, what follows."""
    source = program.read_text()
    tree = ast.parse(source)
    title, _, about = (ast.get_docstring(tree) or "").partition("\n\n")
    code = "\n".join(source.splitlines()[tree.body[0].end_lineno :])
    return title, about, code.strip()


def section(name: str, report: str) -> str:
    title, about, code = parts_of(PROGRAMS / f"{name}.py")
    first = (PROGRAMS / f"{name}.py").read_text().splitlines().index(code.splitlines()[0]) + 1
    return (
        f'## {title}\n\n{about}\n\n```python title="{name}.py" linenums="{first}"\n{code}\n```\n\n'
        f"```text\n{report}\n```\n"
    )


def page() -> str:
    sections = [section(name, report_of(PROGRAMS / f"{name}.py")) for name in ORDER]
    return "\n".join([MADE, INTRO, *sections])


if __name__ == "__main__":
    PAGE.write_text(page())
