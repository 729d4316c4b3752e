"""Cells of a notebook by the name that their reader knows: "In [3]" for "/tmp/ipykernel_71/1234567890.py".

IPython gives each cell a file name and keeps which cell it was; what it does not know stays as it is.
"""

import linecache
import re
import sys

#: File names of cells: of Jupyter's kernel, with or without the folder, and of IPython on a terminal.
CELL_FILE = re.compile(r"(?:[^\s:'\"()\[\]]*[/\\])?(\d{4,}\.py)\b|<ipython-input-\d+-\w+>")


def cells_by_file() -> dict[str, int]:
    """{file name: number of the cell} of this process; {} outside of IPython."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    found = getattr(getattr(shell, "compile", None), "_filename_map", None)
    return dict(found) if isinstance(found, dict) else {}


def with_cell_names(text: str) -> str:
    """The text with names of cells in place of their file names."""
    if not CELL_FILE.search(text):
        return text
    names = {basename(file): f"In [{number}]" for file, number in cells_by_file().items()}
    return CELL_FILE.sub(lambda found: names.get(basename(found[0]), found[0]), text)


def lines_of_cell(filename: str) -> list[str]:
    """The lines of a cell, [] for what is none."""
    if not CELL_FILE.fullmatch(filename) or filename not in cells_by_file():
        return []
    return [line.rstrip("\n") for line in linecache.getlines(filename)]


def basename(file: str) -> str:
    return re.split(r"[/\\]", file)[-1]
