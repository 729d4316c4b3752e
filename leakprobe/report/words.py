"""Text of the watched program for a page: printable, and without folders where they are to be left out."""

import contextlib
import os
import re
from collections.abc import Iterable, Iterator

from leakprobe.model.bounds import NAMED_FOLDERS
from leakprobe.model.frames import Frame, FrameRow
from leakprobe.model.report import Report
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
#: A folder's name within a text, which may be of several words unless the first ones are a file's; the "/" of
#: "3 KiB/step" begins none.
NAME = r"""(?:[^\s/:'"]+|[^\s/:'".]+(?: [^\s/:'",;()]+)+)"""
FOLDERS = re.compile(rf"(?<![\w.<])(?:(?<![ i]B)/{NAME})+(?<![ i]B)/")
#: What such a name can't hold; and a folder that is found in any text, in the place of one that has it.
UNUSUAL, PLAIN = re.compile(r"[\s:'\",;()]"), "/-/"


class Words:
    """words(text), words.file(name) and so on give what the page shows.

    reports: whose files are known by name, so that their folders are found whatever is in their names.
    """

    def __init__(self, redact: bool = False, reports: Iterable[Report] = ()):
        self.redact = redact
        self._unusual = unusual_folders(reports) if redact else []

    def __call__(self, text: object) -> str:
        shown = clean(text)
        if not self.redact:
            return shown
        for folder in self._unusual:
            shown = shown.replace(folder, PLAIN)
        return FOLDERS.sub("", shown)

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


def unusual_folders(reports: Iterable[Report]) -> list[str]:
    """The folders, up to the last one with a blank or the like in its name, of the files that the reports
    name and of this process; the longest first.
    """
    found = set()
    for path in paths_of(reports):
        folders = clean(path).split("/")[:-1]
        while folders and not UNUSUAL.search(folders[-1]):
            folders.pop()
        if folders and path.startswith("/"):
            found.add("/".join([*folders, ""]))
    return sorted(sorted(found, key=len)[:NAMED_FOLDERS], key=len, reverse=True)


def paths_of(reports: Iterable[Report]) -> Iterator[str]:
    with contextlib.suppress(OSError):  # the folder is gone
        yield os.path.join(os.getcwd(), "")
    for report in reports:
        yield str(report.run.get("program", ""))
        yield from (row["filename"] for row in report.lines)
        stacks = [f.allocation_stack for f in report.findings] + [s["allocation_stack"] for s in report.sites]
        yield from (frame.filename for stack in stacks for frame in stack)
        for finding in report.findings:
            if finding.holder is not None and finding.holder["grown_at"]:
                yield finding.holder["grown_at"]["filename"]
