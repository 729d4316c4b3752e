"""Text of the watched program for a page: printable, and without folders where they are to be left out."""

import os
import re

from leakprobe.model.frames import Frame, FrameRow
from leakprobe.report.clean import clean

#: What the compiler calls code without a name of its own.
UNNAMED = {
    "<module>": "top level",
    "<lambda>": "lambda",
    "<listcomp>": "list comprehension",
    "<setcomp>": "set comprehension",
    "<dictcomp>": "dict comprehension",
    "<genexpr>": "generator expression",
}


class Words:
    """words(text), words.file(name) and so on give what the page shows."""

    def __init__(self, redact: bool = False):
        self.redact = redact

    def __call__(self, text: object) -> str:
        shown = clean(text)
        return re.sub(r"(?<![\w.<])(?:/[^\s/:'\"]+)+/", "", shown) if self.redact else shown

    def file(self, name: str) -> str:
        shown = clean(name)
        return os.path.basename(shown) if self.redact else shown

    def short(self, frame: Frame | FrameRow) -> str:
        """ "train.py:58 step"."""
        row = frame if isinstance(frame, dict) else frame.to_dict()
        return f"{os.path.basename(clean(row['filename']))}:{row['lineno']} {clean(row['function'])}"

    def full(self, frame: Frame | FrameRow) -> str:
        row = frame if isinstance(frame, dict) else frame.to_dict()
        return f"{self.file(row['filename'])}:{row['lineno']}"

    def label(self, frame: Frame) -> str:
        """A box of a flame graph: "training_step  train.py:58"; of an __init__.py, its package too."""
        folder, file = os.path.split(clean(frame.filename))
        if file == "__init__.py":
            file = f"{os.path.basename(folder)}/{file}"
        function = clean(frame.function).replace(".<locals>.", ".")
        for code, name in UNNAMED.items():
            function = function.replace(code, name)
        return f"{function}  {file}:{frame.lineno}"
