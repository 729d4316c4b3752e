"""Runs a foreign test-suite twice, without leakprobe and with it started in every process by a sitecustomize,
and compares.
"""

import argparse
import os
import pathlib
import re
import resource
import signal
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "versions"))
from run_matrix import Machine

#: Starts leakprobe in every process that does not shut out PYTHONPATH.
SITECUSTOMIZE = """
import leakprobe, leakprobe._core
leakprobe.start()
leakprobe._core.native_install(["cpu", "numpy", "shared"])
"""
#: For suites that pytest runs: a watch of which each test is a step, and now and then a census or a walk
#: beside its own.
PYTEST_PLUGIN = """
import contextlib, itertools
import leakprobe
from leakprobe import _core
numbers = itertools.count(1)
watched = contextlib.ExitStack()

def pytest_sessionstart(session):
    global probe
    leakprobe.stop()  # that of the sitecustomize
    probe = watched.enter_context(leakprobe.watch())

def pytest_runtest_setup(item):
    number = next(numbers)
    probe.step()
    if number % 50 == 0:
        _core.census(number % 100 == 0, 0, 9, 0)
    if number % 500 == 0:
        leakprobe.snapshot(graph=True)

def pytest_terminal_summary(terminalreporter):
    watched.close()
    report = probe.report()
    said = f"{len(report.findings)} findings, {len(report.notes)} notes"
    terminalreporter.write_line(f"leakprobe: {next(numbers) - 1} steps, {report.verdict}, {said}")
"""


def begin_as_from_a_shell(memory: float) -> None:
    """What the suites expect to inherit; a job in the background has these signals ignored, and then they
    wait for ever.

    ``memory``: gigabytes of addresses that each process may have, 0 for no limit.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if memory:
        most = resource.getrlimit(resource.RLIMIT_AS)[1]
        wanted = int(memory * 2**30)
        resource.setrlimit(
            resource.RLIMIT_AS, (wanted if most == resource.RLIM_INFINITY else min(wanted, most), most)
        )


def results_of(path: pathlib.Path) -> dict[str, str]:
    """Test => "passed", "failed" or "skipped", of a JUnit file."""
    found = {}
    for case in ElementTree.parse(path).iter("testcase"):
        kinds = {child.tag for child in case}
        outcome = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
        found[f"{case.get('classname', '')}.{case.get('name', '')}"] = outcome
    return found


class Suite:
    """A suite on one interpreter.  ``command(junit)``: the arguments of the interpreter that write the JUnit
    file.
    """

    def __init__(self, python, command, root=None):
        self.machine, self.command = Machine(python, root), command

    def build(self) -> None:
        broken = self.machine.build()
        if broken:
            raise SystemExit(broken.stdout[-3000:])
        folder = self.machine.work / "site"
        folder.mkdir()
        (folder / "sitecustomize.py").write_text(SITECUSTOMIZE)
        (folder / "leakprobe_in_pytest.py").write_text(PYTEST_PLUGIN)

    def once(self, with_leakprobe: bool, timeout: int):
        """({test: outcome}, what was printed, exit status)."""
        junit = self.machine.work / f"junit-{int(with_leakprobe)}.xml"
        paths = [self.machine.work / "site", self.machine.source] if with_leakprobe else []
        done = self.machine.run(
            self.command(self.machine.inside(junit)),
            timeout,
            PYTEST_PLUGINS="leakprobe_in_pytest" if with_leakprobe else "",
            PYTHONPATH=os.pathsep.join(self.machine.inside(path) for path in paths),
        )
        return (results_of(junit) if junit.exists() else {}), done.stdout, done.returncode


def tally(results: dict[str, str]) -> str:
    return ", ".join(
        f"{sum(v == kind for v in results.values())} {kind}" for kind in ("passed", "failed", "skipped")
    )


def compare(name: str, suite: Suite, timeout: int, again: int = 1) -> int:
    """Print both tallies and what fails only with leakprobe; how many do, also when run ``again`` without
    it.
    """
    plain, _, code = suite.once(False, timeout)
    print(f"{name} without leakprobe: {tally(plain)} (exit {code})", flush=True)
    hooked, text, code = suite.once(True, timeout)
    print(f"{name} with leakprobe:    {tally(hooked)} (exit {code})", flush=True)
    for line in re.findall(r"^leakprobe: .*", text, re.MULTILINE):
        print(f"  {line}")
    new = sorted(
        test for test, outcome in hooked.items() if outcome == "failed" and plain.get(test) != "failed"
    )
    lost = sorted(test for test in plain if test not in hooked)
    if not hooked or new or lost:
        log = pathlib.Path(
            tempfile.gettempdir(), f"leakprobe-foreign-{name.replace(' ', '-').replace('/', '-')}.log"
        )
        log.write_text(text)
        print(f"what was printed is in {log}")
    for test in new:
        print(f"  fails only with leakprobe: {test}")
    for test in lost[:50]:
        print(f"  ran only without leakprobe: {test}")
    print(f"{name}: {len(new)} new failures, {len(lost)} tests that did not run", flush=True)
    return len(new) + len(lost) + (not hooked)


def main(about: str, arguments, command, version, timeout: int) -> int:
    """Compare a suite on each --python of the command line; the exit status.

    ``arguments(parser)`` adds more options; ``command(options, junit)``: as for Suite; ``version(options)``:
    code that prints what the suite is called; ``timeout``: seconds for one run, the default.
    """
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--python", action="append", required=True)
    parser.add_argument("--timeout", type=int, default=timeout, help="seconds for one run of the suite")
    parser.add_argument(
        "--memory",
        type=float,
        default=12,
        help="gigabytes of addresses that each process may have; 0: no limit",
    )
    arguments(parser)
    options = parser.parse_args()
    begin_as_from_a_shell(options.memory)
    wrong = 0
    for python in options.python:
        suite = Suite(python, lambda junit: command(options, junit))
        try:
            suite.build()
            name = suite.machine.run(["-c", version(options)], 60).stdout.strip()
            wrong += compare(name, suite, options.timeout)
        finally:
            suite.machine.close()
    return 1 if wrong else 0
