"""Runs every command that README and the pages show, in fresh clones and an environment made for it.

    python docs/site/commands.py                 # a line for each command; exit 1 if one fails
    python docs/site/commands.py --list          # the commands, and why some are left out
    python docs/site/commands.py tutorial.md     # of these pages only, after the installation of the README

The commands of a page run one after the other in a clone of its own.  What they name and do not make, a
training script and its recordings, is made from `docs/examples` first.  At the end `docs/site/examples.py
--check`, in the same environment, compares the output in the pages with that of the commands.
"""

import dataclasses
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ["README.md", *sorted(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md"))]
GENERATED = "reference-"  # pages made from docstrings and options, whose commands are synopses
INLINE = re.compile(r"`((?:leakprobe|python3) [^`]+)`")
PROMPTED = re.compile(r"(?:\$ )?((?:[A-Z]+=\S+ )?(?:leakprobe|python3|torchrun|go|\.ci/lint)(?: .*)?)$")
OUTPUT = re.compile(r"leakprobe(:| demo [\w-]+:)")  # lines of a program's output that begin with its name
CONCRETE = re.compile(r" (explain|demo) [\w-]+$|\w[.:]\w")  # it names what it is about, and is no mere form
PLACEHOLDER = re.compile(r"(?<![\w-])[A-Z]{2,}(?![\w=])|\.\.\.| \| ")

#: What stands for the names that a command leaves to its reader.
STANDS_FOR = {
    "FORMAT": "speedscope",
    "FILE": "run.json",
    "FOLDER": "ranks",
    "--nproc-per-node 8": "--nproc-per-node 2",
    "--leakprobe-recordings": "--leakprobe-recordings test_it.py",
}
#: Commands that are left out, by how they begin, and why.
LEFT_OUT = {
    "leakprobe attach": "needs CPython 3.14: tests/hooks/test_attach.py",
    "python3 docs/site/examples.py": "run at the end",
    "python3 docs/site/commands.py": "this script",
    "python3 docs/site/picture.py": "needs the browser that draws the picture",
}
#: The whole suite, which takes minutes, is collected here and run by `.ci/run`.
SUITES = ("python3 -m pytest", "python3 -m pytest tests/unit tests/rules")
#: Commands that follow a recording until they are ended, and what ends them: keys, or else Ctrl-C.
FOLLOWERS = {"leakprobe live": b"q", "--serve": None}
#: What a fresh machine has beside the commands: extras of pip that the pages name where they are needed.
EXTRAS = ("jinja2", "plotly", "textual")
LEAKING_TEST = """import pytest

kept = []

@pytest.mark.limit_growth("1 KiB/step")
def test_leak():
    kept.append(bytearray(4096))
"""
#: Seconds that a command may take, and that a recording is followed at least.
TIMEOUT_S, FOLLOWED_S = 900.0, 10.0


@dataclasses.dataclass(frozen=True)
class Command:
    page: str
    line: int
    text: str

    def why_left_out(self) -> str:
        return next((why for start, why in LEFT_OUT.items() if self.text.startswith(start)), "")

    def shell_text(self) -> str:
        text = self.text.split(" | ")[0]  # into a program of others, which need not be there
        for name, value in STANDS_FOR.items():
            text = text.replace(name, value)
        *before, last = text.split(" && ")
        return " && ".join([*before, f"{last} --collect-only -q" if last in SUITES else last])


def commands_of(page: str) -> Iterator[Command]:
    """The commands of a page, in its order: lines of blocks, and code in a sentence that is no mere form."""
    for first, is_block, text in parts_of((ROOT / page).read_text()):
        for below, command in lines_of(text) if is_block else sentences_of(text):
            yield Command(page, first + below, command)


def parts_of(page: str) -> Iterator[tuple[int, bool, str]]:
    """(number of the first line, whether it is a block of a shell, text) of blocks and what is between."""
    language, first, lines = None, 1, list[str]()
    for number, line in enumerate([*page.splitlines(), "```"], 1):
        if not line.startswith("```"):
            lines.append(line)
            continue
        if language in (None, "", "sh", "bash"):
            yield first, language is not None, "\n".join(lines)
        language, first, lines = (line[3:] if language is None else None), number + 1, []


def sentences_of(text: str) -> Iterator[tuple[int, str]]:
    for match in INLINE.finditer(text):
        words = " ".join(match[1].split())
        if CONCRETE.search(words) and not PLACEHOLDER.search(words):
            yield text.count("\n", 0, match.start()), words


def lines_of(block: str) -> Iterator[tuple[int, str]]:
    for below, line in enumerate(block.splitlines()):
        match = PROMPTED.match(re.sub(r"\s{2,}#.*", "", line).rstrip())
        if match and not OUTPUT.match(line):
            yield below, match[1]


# ---- an environment ----


class Place:
    """Clones and an environment in a folder of their own."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        subprocess.run([sys.executable, "-m", "venv", folder / "environment"], check=True)
        path = f"{folder / 'environment' / 'bin'}{os.pathsep}{os.environ['PATH']}"
        left = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "LEAKPROBE"))
        }
        self.variables = {**left, "PATH": path, "PYTHON": "python3", "OMP_NUM_THREADS": "1", "TERM": "xterm"}
        self.kept = folder / "kept"

    def clone(self, name: str) -> pathlib.Path:
        target = self.folder / pathlib.Path(name).stem
        subprocess.run(["git", "clone", "-q", ROOT, target], check=True)
        return target

    def run(self, text: str, folder: pathlib.Path) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ["bash", "-c", text],
            cwd=folder,
            env=self.variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT_S,
        )

    def prepare(self) -> None:
        """Make what the commands name and do not make."""
        self.kept.mkdir()
        examples = ROOT / "docs" / "examples"
        shutil.copy(examples / "leaking.py", self.kept / "train.py")
        for name in ("fixed.py", "copies.py"):
            shutil.copy(examples / name, self.kept)
        (self.kept / "test_it.py").write_text(LEAKING_TEST)
        for text in (
            f"python3 -m pip install -q {' '.join(EXTRAS)}",
            "leakprobe run -o run.leak train.py",
            "leakprobe run -o before.leak train.py",
            "leakprobe run -o after.leak fixed.py",
            "torchrun --nproc-per-node 2 -m leakprobe run -o ranks train.py",
        ):
            self.run(text, self.kept)

    def furnish(self, clone: pathlib.Path, page: str) -> None:
        """Put what was prepared into the clone of a page, but where contributors check the tree."""
        if page != "docs/contributing.md":
            shutil.copytree(self.kept, clone, dirs_exist_ok=True)


# ---- one command ----


def follow(place: Place, text: str, folder: pathlib.Path, key: bytes | None) -> tuple[int, str]:
    """Run a command on a terminal until it has shown something, and end it as a reader does."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        ["bash", "-c", f"exec {text}"],
        cwd=folder,
        env=place.variables,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    shown, since, is_asked = b"", time.monotonic(), False
    while process.poll() is None and time.monotonic() < since + TIMEOUT_S:
        if select.select([ours], [], [], 1.0)[0]:
            try:
                shown += os.read(ours, 1 << 16)
            except OSError:  # the other end is closed
                break
        if shown and not is_asked and time.monotonic() > since + FOLLOWED_S:
            is_asked = True
            os.write(ours, key) if key is not None else process.send_signal(signal.SIGINT)
    if process.poll() is None:
        process.kill()
    os.close(ours)
    return process.wait(), shown.decode(errors="replace")


def run_one(place: Place, command: Command, folder: pathlib.Path) -> tuple[bool, str]:
    """Whether it ended as it should, and what it printed; 1 is growth, 3 inconclusive."""
    text = command.shell_text()
    for start, key in FOLLOWERS.items():
        if start in text:
            code, printed = follow(place, text, folder, key)
            return code in (0, 1, 3), printed
    done = place.run(text, folder)
    last = text.split(" && ")[-1]
    may_find = last.startswith(
        ("leakprobe", "python3 -m pytest -q docs", "python3 -m pytest --leakprobe-recordings")
    )
    allowed = (0, 1, 3, 77) if may_find else (0,)
    return done.returncode in allowed and "Traceback" not in done.stdout, done.stdout


def run_page(place: Place, page: str, commands: list[Command]) -> int:
    """How many of its commands failed."""
    failed, clone = 0, place.clone(page)
    for command in commands:
        if page != "README.md" or place.kept.exists():
            place.furnish(clone, page)
        why, began = command.why_left_out(), time.monotonic()
        is_good, printed = (True, "") if why else run_one(place, command, clone)
        failed += not is_good
        said = (
            f"left out: {why}"
            if why
            else f"{'ok' if is_good else 'FAILED'}, {time.monotonic() - began:.0f} s"
        )
        print(f"{page}:{command.line}: {command.text}: {said}", flush=True)
        if not is_good:
            print(printed[-4000:], flush=True)
        if page == "README.md" and "pip install" in command.text and not place.kept.exists():
            place.prepare()
    return failed


def main(arguments: list[str]) -> int:
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # commands inherit it where this one runs without
    asked = [name for name in arguments if not name.startswith("-")]
    every = {page: list(commands_of(page)) for page in PAGES if GENERATED not in page}
    every["README.md"].sort(key=lambda command: "pip install" not in command.text)
    if "--list" in arguments:
        for command in (c for commands in every.values() for c in commands):
            print(f"{command.page}:{command.line}: {command.text}  {command.why_left_out()}".rstrip())
        return 0
    with tempfile.TemporaryDirectory() as name:
        place = Place(pathlib.Path(name))
        pages = [
            p
            for p, commands in every.items()
            if commands and (not asked or p == "README.md" or pathlib.Path(p).name in asked)
        ]
        failed = sum(run_page(place, page, every[page]) for page in pages)
        if not asked:
            done = place.run("python3 docs/site/examples.py --check", place.clone("outputs"))
            print(done.stdout)
            failed += done.returncode != 0
    print(f"{failed} of {sum(len(every[page]) for page in pages)} commands failed")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
