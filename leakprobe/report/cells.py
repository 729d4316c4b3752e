"""Cells of a notebook by the name that their reader knows: "In [3]" for "/tmp/ipykernel_71/1234567890.py".

IPython gives each cell a file name and keeps which cell it was; what it does not know stays as it is.
"""

import linecache
import re
import sys

#: File names of cells, without their folder: of Jupyter's kernel, and of IPython on a terminal.
CELL_FILE = re.compile(r"(?<!\d)\d{4,}\.py\b|<ipython-input-\d+-\w+>")
#: What may be a file name with its folder.  One of a cell is looked for within it from its end on: a pattern
#: of both would try each folder once for each of its characters.
WORD = re.compile(r"[^\s:'\"()\[\]]+")


def cells_by_file() -> dict[str, int]:
    """{file name: number of the cell} of this process; {} outside of IPython."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    found = getattr(getattr(shell, "compile", None), "_filename_map", None)
    return dict(found) if isinstance(found, dict) else {}


def is_cell(filename: str) -> bool:
    """True for the file name of a cell of this process."""
    return CELL_FILE.fullmatch(basename(filename)) is not None and filename in cells_by_file()


def with_cell_names(text: str) -> str:
    """The text with names of cells in place of their file names."""
    if not CELL_FILE.search(text):
        return text
    names = {basename(file): f"In [{number}]" for file, number in cells_by_file().items()}
    return WORD.sub(lambda word: renamed(word[0], names), text) if names else text


def renamed(word: str, names: dict[str, str]) -> str:
    """The word with the file names of cells in it replaced, each with its folder."""
    parts, at = [], 0
    for found in CELL_FILE.finditer(word):
        if found[0] in names:
            in_folder = word[max(0, found.start() - 1) : found.start()] in ("/", "\\")
            parts += [word[at : at if in_folder else found.start()], names[found[0]]]
            at = found.end()
    return "".join([*parts, word[at:]])


def lines_of_cell(filename: str) -> list[str]:
    """The lines of a cell, [] for what is none."""
    if not is_cell(filename):
        return []
    return [line.rstrip("\n") for line in linecache.getlines(filename)]


def basename(file: str) -> str:
    return re.split(r"[/\\]", file)[-1]
