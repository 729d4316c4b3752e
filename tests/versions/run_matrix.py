"""Builds leakprobe and runs its tests on every interpreter at hand, and prints a table.

    python tests/versions/run_matrix.py                        # ~/.pyenv/versions, and .forky if it is there
    python tests/versions/run_matrix.py --python VENV/bin/python --forky FOLDER tests/hooks -k census
    python tests/versions/run_matrix.py --logs FOLDER          # keeps what pytest printed, a file for each
    python tests/versions/run_matrix.py --build                # compiles with -Werror, runs the doctor
    python tests/versions/run_matrix.py --orders 10000         # tests/hooks/orders.py beside each other tool

An interpreter needs pytest; torch and numpy are used where they are.  The forky root comes from
make_forky.sh, and entering it needs root.  Exit status 1 if anything failed.
"""

import argparse
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
DEFAULT_TESTS = ["tests"]
ABOUT = """
import sys
def version(name):
    try:
        return __import__(name).__version__
    except Exception:
        return "-"
print("ABOUT", sys.version.split()[0], version("torch"), version("numpy"), version("pytest"))
"""
ORDER_TOOLS = ["tracemalloc", "memray", "layer", "slot", "borrower", "layer+slot"]
NEEDS_EVENTS = ["slot", "borrower", "layer+slot"]
ORDER_COUNTS = ["started", "refused", "toggled", "gaps", "seen"]
COLUMNS = ["version", "torch", "numpy", "passed", "failed", "skipped"]


class Machine:
    """One interpreter in a root folder; commands run there with the sources at ``source``."""

    def __init__(self, python, root=None):
        self.python, self.root = str(python), root
        self.work = pathlib.Path(
            tempfile.mkdtemp(prefix="leakprobe-matrix-", dir=root / "tmp" if root else None)
        )
        self.source = self.work / "source"
        shutil.copytree(
            REPOSITORY,
            self.source,
            symlinks=True,
            ignore=shutil.ignore_patterns(".git", ".forky", "build", "*.so", "__pycache__", ".venv"),
        )

    def inside(self, path):
        """A path as the interpreter sees it."""
        return f"/{path.relative_to(self.root)}" if self.root else str(path)

    def run(self, args, timeout, log=None, **variables):
        """The process when it has ended; what it printed is written to ``log`` as it comes, where given."""
        env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "UCX_LOG_LEVEL": "fatal", **variables}
        command = [self.python, *args]
        if self.root:
            # A mount namespace of its own: /proc goes when the command ends.
            folders = " && ".join(
                f"mount --rbind /{name} {shlex.quote(str(self.root))}/{name}"
                for name in ("proc", "dev", "sys")
            )
            there = f"cd {self.inside(self.source)} && exec {shlex.join(command)}"
            script = f"{folders} && exec chroot {shlex.quote(str(self.root))} /bin/sh -c {shlex.quote(there)}"
            command = ["unshare", "-m", "/bin/sh", "-c", script]
        printed = open(log or self.work / "printed", "w+", encoding="utf-8", errors="replace")
        with printed:
            try:
                code = subprocess.run(
                    command,
                    cwd=self.source,
                    env=env,
                    timeout=timeout,
                    stdout=printed,
                    stderr=subprocess.STDOUT,
                ).returncode
            except OSError as error:
                return subprocess.CompletedProcess(command, 127, str(error))
            except subprocess.TimeoutExpired:
                code = 124
            printed.seek(0)
            text = printed.read()
        return subprocess.CompletedProcess(
            command, code, text + (f"\nrun_matrix: stopped after {timeout} s" if code == 124 else "")
        )

    def build(self):
        """With -Werror; the entry points too, for the pytest plugin."""
        library = self.source  # the extension beside the package: what the tests import
        built = self.run(
            [
                "setup.py",
                "-q",
                "build_ext",
                "--inplace",
                "--build-temp",
                self.inside(self.work / "build"),
                "egg_info",
                "--egg-base",
                self.inside(library),
            ],
            600,
            CFLAGS="-Werror",
        )
        return built if built.returncode else None

    def close(self):
        shutil.rmtree(self.work, ignore_errors=True)


def interpreters(options):
    """(python, root or None) of every interpreter at hand."""
    for python in options.python:
        yield python, None
    if not options.python and options.pyenv.is_dir():
        for folder in sorted(
            options.pyenv.iterdir(), key=lambda path: [int(n) for n in re.findall(r"\d+", path.name)]
        ):
            if re.match(r"3\.1[0-9](\.\d+)?$", folder.name) and (folder / "bin" / "python").exists():
                yield folder / "bin" / "python", None
    if options.forky and (options.forky / "etc" / "debian_version").exists():
        # That of 3.15 sees the packages that are built for it, which Debian's own does not tell from the
        # others.
        for path in ("usr/bin/python3.14", "opt/python3.15/bin/python3.15"):
            if os.path.lexists(options.forky / path):
                yield f"/{path}", options.forky


def first_line_of(text):
    """The last line of what a failed run printed."""
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1][:100] if lines else "nothing printed"


def run_orders(machine, version, options):
    """A cell for each other tool: what its random run counted, or how it ended."""
    cells, texts = [], []
    for tool in ORDER_TOOLS:
        if tool in NEEDS_EVENTS and [int(n) for n in version.split(".")[:2]] < [3, 13]:
            cells.append("-")
            continue
        if tool == "memray" and machine.run(["-c", "import memray"], 120).returncode:
            cells.append("not installed")
            continue
        done = machine.run(
            [
                "tests/hooks/orders.py",
                tool,
                str(options.seed),
                str(options.orders),
                machine.inside(machine.work),
            ],
            options.timeout,
            PYTHONPATH=machine.inside(machine.source),
        )
        found = re.search(r"^{.*}$", done.stdout, re.MULTILINE)
        if done.returncode or found is None:
            cells.append(f"exit {done.returncode}")
            texts.append(f"{tool}: {first_line_of(done.stdout)}\n{done.stdout[-3000:]}")
            continue
        counts = json.loads(found[0])
        cells.append("/".join(str(counts.get(key, 0)) for key in ORDER_COUNTS))
        print(version, tool, found[0], file=sys.stderr, flush=True)
    return cells, "\n".join(texts)


def measure(python, root, options, pytest_args):
    """A row of the table and the text of what failed."""
    machine = Machine(python, root)
    try:
        found = re.search(
            r"^ABOUT (\S+) (\S+) (\S+) (\S+)", machine.run(["-c", ABOUT], 120).stdout, re.MULTILINE
        )
        if found is None:
            return [str(python), "-", "-", "-", "does not run", "-"], ""
        version, torch, numpy, pytest = found.groups()
        if pytest == "-" and not options.build:
            return [version, torch, numpy, "-", "no pytest", "-"], ""
        broken = machine.build()
        if broken:
            return [version, torch, numpy, "-", "no build", "-"], broken.stdout[-4000:]
        if options.build:
            done = machine.run(["-m", "leakprobe", "doctor"], 300, PYTHONPATH=machine.inside(machine.source))
            return [version, torch, numpy, "-", 0 if done.returncode == 0 else "no doctor", "-"], done.stdout
        if options.orders:
            cells, text = run_orders(machine, version, options)
            return [version, *cells], text
        done = machine.run(
            [
                "-u",
                "-m",
                "pytest",
                "-o",
                "addopts=-ra",
                "-p",
                "no:cacheprovider",
                "-q",
                "--tb=short",
                *pytest_args,
            ],
            options.timeout,
            log=options.logs and options.logs / f"{version}.txt",
            PYTHONPATH=machine.inside(machine.source),
        )
        lines = done.stdout.strip().splitlines()
        counts = {
            word: int(number)
            for number, word in re.findall(
                r"(\d+) (passed|failed|skipped|errors?)", lines[-1] if lines else ""
            )
        }
        failed = counts.get("failed", 0) + counts.get("error", 0) + counts.get("errors", 0)
        complete = done.returncode in (0, 1, 5)
        row = [
            version,
            torch,
            numpy,
            counts.get("passed", 0),
            failed if complete else f"exit {done.returncode}",
            counts.get("skipped", 0),
        ]
        return row, "" if done.returncode in (0, 5) else done.stdout[-6000:]
    finally:
        machine.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--python", action="append", default=[], help="an interpreter, instead of pyenv's; again for more"
    )
    parser.add_argument("--pyenv", type=pathlib.Path, default=pathlib.Path.home() / ".pyenv" / "versions")
    parser.add_argument(
        "--only", metavar="VERSION", help="of these the one whose path has this version in it, as 3.12"
    )
    parser.add_argument(
        "--forky", type=lambda text: pathlib.Path(text).resolve(), default=REPOSITORY / ".forky"
    )
    parser.add_argument("--timeout", type=int, default=3600, help="seconds for the tests of one interpreter")
    parser.add_argument(
        "--logs", type=pathlib.Path, help="a folder for what pytest printed, a file for each version"
    )
    parser.add_argument(
        "--build", action="store_true", help="no tests: compile with -Werror and run leakprobe doctor"
    )
    parser.add_argument(
        "--orders",
        type=int,
        default=0,
        metavar="STEPS",
        help="random starts and stops beside each other tool",
    )
    parser.add_argument("--seed", type=int, default=1, help="of --orders")
    options, pytest_args = parser.parse_known_args()
    columns = ["version", *ORDER_TOOLS] if options.orders else COLUMNS
    if options.logs:
        options.logs.mkdir(parents=True, exist_ok=True)
    rows, texts = [], []
    for python, root in interpreters(options):
        if options.only and not re.search(rf"{re.escape(options.only)}(\D|$)", str(python)):
            continue
        given = (
            pytest_args
            if any(not arg.startswith("-") for arg in pytest_args)
            else [*DEFAULT_TESTS, *pytest_args]
        )
        row, text = measure(python, root, options, given)
        rows.append([str(cell) for cell in row])
        texts.append(f"==== {row[0]}\n{text}\n" if text else "")
        print("  ".join(rows[-1]), file=sys.stderr, flush=True)
    print("".join(texts))
    if options.orders:
        print(f"{options.orders} steps beside each: " + "/".join(ORDER_COUNTS))
    rows = [row + ["-"] * (len(columns) - len(row)) for row in rows]
    widths = [max(len(row[i]) for row in [columns, *rows]) for i in range(len(columns))]
    for row in [columns, *rows]:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
    if options.orders:
        return 1 if not rows or any(cell.startswith("exit") for row in rows for cell in row) else 0
    return 0 if rows and all(row[4] == "0" for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
