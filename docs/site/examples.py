"""Runs every command whose output stands in a page, and writes output and examples into the pages.

    python docs/site/examples.py            # rewrite the pages
    python docs/site/examples.py --check    # say where a page differs in more than its numbers; exit 1

`<!-- file: examples/NAME -->` stands above the code of a file of docs/examples, and
`<!-- output: COMMAND -->` above what the command prints.  A page's commands run one after the other in one
empty folder, in which `docs` is this folder.
"""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import typing

DOCS = pathlib.Path(__file__).resolve().parents[1]
ROOT = DOCS.parent
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
BLOCK = re.compile(r"<!-- (file|output): ([^\n]+?) -->\n```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
#: Columns of what stands in a page, and what makes runs alike.
VARIABLES = {"COLUMNS": "100", "OMP_NUM_THREADS": "1", "LEAKPROBE_LIVE": "0", "PYTHONUNBUFFERED": "1"}
#: Names that go through this interpreter.
PROGRAMS = {"leakprobe": [sys.executable, "-m", "leakprobe"], "python3": [sys.executable]}


def commands(page: pathlib.Path) -> list[str]:
    return [match[2] for match in BLOCK.finditer(page.read_text()) if match[1] == "output"]


def started(command: list[str], **where: typing.Any) -> subprocess.CompletedProcess[str]:
    """A command to its end, its errors among what it prints."""
    return subprocess.run(
        command,
        **where,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )


def output_of(command: str, folder: pathlib.Path, start: typing.Any = started) -> str:
    """What a line of a shell prints, its last command if there are several; the error stream after it.

    ``start``: what runs a command, as :func:`started`.

    Errors: RuntimeError if it ends otherwise than well (0), with growth (1) or inconclusive (3).
    """
    *before, command = command.split(" && ")
    for one in before:
        output_of(one, folder, start)
    first, *rest = shlex.split(command)
    done = start([*PROGRAMS.get(first, [first]), *rest], cwd=folder, env={**os.environ, **VARIABLES})
    if done.returncode not in (0, 1, 3) or "Traceback" in done.stdout:
        raise RuntimeError(f"{command}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout


def outputs(page: pathlib.Path) -> dict[str, str]:
    """command => what it prints, of the commands of a page in its order."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "docs").symlink_to(DOCS)
        return {command: output_of(command, folder) for command in commands(page)}


def rewritten(page: pathlib.Path) -> str:
    """The page with the code of files and the output of commands as they are now."""
    printed = outputs(page)

    def block(match: re.Match[str]) -> str:
        kind, name, language = match[1], match[2], match[3]
        text = (DOCS / name).read_text() if kind == "file" else printed[name]
        return f"<!-- {kind}: {name} -->\n```{language}\n{text}```"

    return BLOCK.sub(block, page.read_text())


def shape(text: str) -> str:
    """A text without its numbers, what underlines them, and line breaks: those differ between machines; and
    without the step of the last walk, which a busy machine puts off.
    """
    text = re.sub(r"\d[\d,.]*(\s+[KMGT]?i?B\b)?", "#", text)
    text = re.sub(r";\s+(as|the\s+path\s+is)\s+of\s+step\s+#", "", text)
    text = re.sub(r"~+", "~", text)
    return " ".join(text.split())


def on_a_quiet_machine(printed: str) -> str:
    """What was printed, without the notes that a busy machine brings: of walks that were put off, and of the
    arenas that malloc makes where threads meet at one.  No page has them.
    """
    printed = re.sub(
        r"\n*note\[gap\]:\s+walks\s+were\s+put\s+off\s.*?\sare\s+allowed", "", printed, flags=re.DOTALL
    )
    return re.sub(
        r"\n*note\[allocator-retention\]:\s+malloc\s.*?\smost\s+of\s+it", "", printed, flags=re.DOTALL
    )


def main(arguments: list[str]) -> int:
    differing = 0
    for page in PAGES:
        new = rewritten(page)
        same = shape(new) == shape(page.read_text())
        differing += not same
        said = "as it stands" if same else "differs"
        print(f"{page.relative_to(ROOT)}: {len(commands(page))} commands, {said}")
        if "--check" not in arguments:
            page.write_text(new)
    return 1 if differing and "--check" in arguments else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
