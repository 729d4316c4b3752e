"""Draws docs/images/report.svg, the report of `leakprobe demo` as a terminal shows it.

python docs/site/picture.py
"""

import io
import os
import pathlib
import subprocess
import sys

from rich.console import Console
from rich.text import Text

DOCS = pathlib.Path(__file__).resolve().parents[1]
WIDTH = 96
#: Of rich's template, without the fonts that it would load from elsewhere.
FONT = "@font-face"


def main() -> None:
    variables = {"COLUMNS": str(WIDTH), "FORCE_COLOR": "1", "TERM": "xterm", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "leakprobe", "demo"]
    done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True)
    report = done.stdout[done.stdout.index("\n\n") + 2 :]
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(report))
    picture = console.export_svg(title="leakprobe demo", unique_id="report")
    (DOCS / "images" / "report.svg").write_text(without_fonts(picture))


def without_fonts(picture: str) -> str:
    """The picture with the reader's own monospace font in place of one from the network."""
    parts = picture.split(FONT)
    kept = [parts[0], *(part[part.index("}") + 1 :] for part in parts[1:])]
    return "".join(kept).replace("Fira Code", "ui-monospace").replace("fira code", "ui-monospace")


if __name__ == "__main__":
    main()
