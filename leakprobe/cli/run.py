"""Runs an unmodified script under the probe.  A step is an optimizer step, else a batch of a DataLoader.

The report goes to standard error when the script ends, also after an exception, Ctrl-C or
SIGTERM; the script's own exit code is kept if it is not 0.  A process that is killed with
SIGKILL, or that calls os._exit(), can't be reported on.

LEAKPROBE_STEPS, LEAKPROBE_WARMUP, LEAKPROBE_LIMIT and LEAKPROBE_JSON stand in for options that are not given.
"""

import argparse
import os
import sys

from leakprobe.cli.script import SigtermRaises, end_by_signal, run_program
from leakprobe.errors import LeakprobeError
from leakprobe.probe import watch
from leakprobe.torch.steps import AutoSteps


def add_arguments(parser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--steps", type=int, metavar="N", help="stop watching after so many steps (the script goes on)")
    parser.add_argument("--warmup", type=int, metavar="N", help="steps that are not judged (default 5)")
    parser.add_argument("--limit", metavar="RATE", help='what a finding must exceed (default "256 B/step")')
    parser.add_argument("--json", metavar="FILE", help="write the report as JSON too")
    parser.add_argument("-m", dest="module", action="store_true", help="SCRIPT is a module, as in python -m")
    parser.add_argument("script", metavar="SCRIPT")
    parser.add_argument("args", nargs=argparse.REMAINDER, metavar="ARGS")


def run(args) -> int:
    from leakprobe.cli import EXIT_CODES

    take_variables(args)
    check(args)
    import leakprobe.report.text  # noqa: F401 -- now, since the script may change the path, the folder or the limits

    pid = os.getpid()
    probe = LimitedProbe(watch(warmup=args.warmup, limit=args.limit), args.steps)
    steps = AutoSteps(probe)
    with SigtermRaises(), probe:
        steps.install()
        try:
            code = run_program(args.script, args.args, args.module)
        finally:
            steps.remove()
    if os.getpid() == pid:
        report = probe.report()
        show(report)
        if args.json:
            report.to_json(args.json)
        code = code or EXIT_CODES[report.verdict]
    if code < 0:
        end_by_signal(-code)
    return code


def take_variables(args) -> None:
    """Options that were not given, from LEAKPROBE_*, else their defaults."""
    args.steps = variable("STEPS", None) if args.steps is None else args.steps
    args.warmup = variable("WARMUP", 5) if args.warmup is None else args.warmup
    args.limit = args.limit or os.environ.get("LEAKPROBE_LIMIT") or "256 B/step"
    args.json = args.json or os.environ.get("LEAKPROBE_JSON")


def variable(name: str, default):
    """An option from LEAKPROBE_<name>, a whole number."""
    text = os.environ.get(f"LEAKPROBE_{name}")
    if not text:
        return default
    try:
        return int(text)
    except ValueError:
        raise LeakprobeError(f"LEAKPROBE_{name} must be a whole number, not {text!r:.60}", "bad_argument") from None


def check(args) -> None:
    """What would be known only after the run is found now."""
    if args.steps is not None and args.steps < 1:
        raise LeakprobeError(f"--steps must be 1 or more, not {args.steps}", "bad_argument")
    if not args.module and not os.path.isfile(args.script):
        raise LeakprobeError(f"there is no script {args.script}: give the path of a Python file, or -m and a module", "no_script")
    if args.json:
        args.json = os.path.abspath(args.json)
        folder = os.path.dirname(args.json)
        if os.path.isdir(args.json) or not os.access(args.json if os.path.exists(args.json) else folder, os.W_OK):
            raise LeakprobeError(f"--json: {args.json} can't be written: give a file in a folder that exists", "unwritable_file")


def show(report) -> None:
    """Print the report on standard error, after what the script printed."""
    try:
        sys.stdout.flush()
    except (AttributeError, OSError, ValueError):
        pass
    try:
        report.print(file=sys.__stderr__)
    except (OSError, ValueError):  # the reader is gone, or the script closed the stream
        pass


class LimitedProbe:
    """The probe of a run: counts its steps and stops watching after ``most``."""

    def __init__(self, probe, most):
        self._probe, self._most, self._count = probe, most, 0

    def __enter__(self):
        self._probe.__enter__()
        return self

    def __exit__(self, *exc_info):
        self._probe.__exit__(*exc_info)

    def step(self) -> None:
        self._probe.step()
        self._count += 1
        if self._count == self._most:
            self._probe.__exit__(None, None, None)

    def is_active(self) -> bool:
        return self._probe.is_active()

    def epoch(self) -> None:
        self._probe.epoch()

    def report(self):
        return self._probe.report()
