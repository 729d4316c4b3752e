"""Runs an unmodified script under the probe.  A step is an optimizer step, else a batch of a DataLoader.

The report goes to standard error when the script ends, also after an exception, Ctrl-C or
SIGTERM.  The script's own exit code is kept if it is not 0; --exit-code sets another code for growth, so
that the two can be told apart.  A process that is killed with SIGKILL, or that calls os._exit(), leaves its
recording (-o), which `leakprobe report` shows.

LEAKPROBE_STEPS, _WARMUP, _LIMIT, _RECORD, _HTML, _JSON, _EXIT_CODE and _SUPPRESSIONS stand in for options
that are not given; LEAKPROBE_WORKERS=0 for --no-workers, LEAKPROBE_ANNOTATE=1 for --annotate,
LEAKPROBE_NATIVE=1 for --native.
A script that enters a watch of its own is reported by that one, to which the run's gives way.
Processes that the script starts with multiprocessing, as torch.multiprocessing.spawn() does, are watched
too, and the report covers every one that made at least one step.  Under torchrun each rank reports on
itself, -o names a folder of recordings that `leakprobe report` merges, and the exit code is the script's
own.  On a terminal the last line shows the run's progress; LEAKPROBE_LIVE=0 leaves it out.  LEAKPROBE=0
runs the script as if leakprobe were not there.

--native starts Python anew, in the same process, with a small library preloaded through which every call of
malloc, its relatives, mmap and munmap goes: once native memory grows, all of it is sampled by line, also
what crosses no import slot of a library.  Processes that the script starts do not inherit it.  Linux with
glibc only.
"""

import argparse
import contextlib
import io
import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from leakprobe import preload, switch
from leakprobe.checks import checked_int
from leakprobe.cli import (
    EXIT_CODES,
    USAGE,
    add_verbose,
    check_distinct,
    check_writable,
    give_up_output,
    say_error,
    tell,
)
from leakprobe.cli.live_line import LiveLine
from leakprobe.cli.own_watches import OwnWatches
from leakprobe.cli.processes import Processes
from leakprobe.cli.script import SigtermRaises, Terminated, end_by_signal, run_program
from leakprobe.errors import LeakprobeError, LeakprobeOSError
from leakprobe.judge.suppressions import load_rules, suppress
from leakprobe.model import bounds
from leakprobe.model.report import Report
from leakprobe.probe import Probe, watch

# Renderers now, since the script may change the path, the folder or the limits.
from leakprobe.report.annotations import to_annotations
from leakprobe.report.clean import clean
from leakprobe.torch.ranks import named_by_rank, rank_and_size
from leakprobe.torch.steps import AutoSteps
from leakprobe.watch.arguments import checked_limit
from leakprobe.watch.marking import marked_by_caller

Default = TypeVar("Default", bound=int | None)

#: Options that a variable stands in for => their defaults; those that are whole numbers.
DEFAULTS: dict[str, Any] = {
    "steps": None,
    "warmup": bounds.WARMUP,
    "exit_code": 1,
    "limit": "256 B/step",
    "record": None,
    "html": None,
    "json": None,
    "suppressions": None,
}
NUMBERS = ("steps", "warmup", "exit_code")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "--steps",
        type=int,
        metavar="N",
        help="stop watching after N measured steps, not counting the warm-up (the script goes on)",
    )
    parser.add_argument("--warmup", type=int, metavar="N", help="steps that are not judged (default 5)")
    parser.add_argument("--limit", metavar="RATE", help='what a finding must exceed (default "256 B/step")')
    parser.add_argument("-o", "--record", metavar="REC", help="write a recording as the script runs")
    parser.add_argument("--html", metavar="FILE", help="write the report as a page too")
    parser.add_argument("--json", metavar="FILE", help="write the report as JSON too")
    parser.add_argument(
        "--exit-code",
        type=int,
        metavar="N",
        help="the exit code for growth, 0 to 255 (default 1); choose one that the script itself never uses",
    )
    parser.add_argument(
        "--suppressions", metavar="FILE", help="rules for known growth (docs/suppressions.md)"
    )
    parser.add_argument(
        "--annotate", action="store_true", help="print an annotation of GitHub Actions for each finding"
    )
    parser.add_argument("--no-workers", action="store_true", help="do not follow DataLoader workers")
    parser.add_argument(
        "--native",
        action="store_true",
        help="start the program anew under a library that sees every call of malloc (Linux with glibc)",
    )
    add_verbose(parser)
    parser.add_argument("-m", dest="module", action="store_true", help="SCRIPT is a module, as in python -m")
    parser.add_argument("script", metavar="SCRIPT")
    parser.add_argument("args", nargs=argparse.REMAINDER, metavar="ARGS")


def run(args: argparse.Namespace) -> int:
    check_script(args)
    off = switch.disabled_line()
    if off is not None:
        return run_alone(args, off)
    take_variables(args)
    check(args)
    if args.native:
        preload.ensure(args.command)
    pid = os.getpid()
    sys.argv = [args.script, *args.args]
    options = {"warmup": args.warmup, "limit": args.limit, "workers": not args.no_workers}
    most = None if args.steps is None else args.warmup + args.steps
    made = marked_by_caller(watch(record=args.record, **options))
    probe = LimitedProbe(made, most, LiveLine.if_wanted(), args.named["record"])
    processes = Processes(args.record, options)
    with contextlib.closing(processes):
        code = run_watched(probe, processes, args)
        if os.getpid() == pid:
            code = hand_out(probe, processes, args, code)
    return ended_by(code)


def hand_out(probe: "LimitedProbe", processes: Processes, args: argparse.Namespace, code: int) -> int:
    """Print the report and write what else was asked for; the exit code, ``code`` if the script had one."""
    report = suppress(processes.report_with(probe.report()), args.rules)
    show(report, args.record, args.verbose)
    if args.annotate:
        write_error(to_annotations(report))
    unwritten = [
        write(to, path) for to, path in ((report.to_html, args.html), (report.to_json, args.json)) if path
    ]
    code = code or max(unwritten, default=0)
    # A launcher takes any code but 0 for a crash, and ends the other ranks.
    return code or (0 if rank_and_size() else code_of(report, args.exit_code))


def write(to_file: Callable[[str], object], path: str) -> int:
    """0, or the exit code for a file that can't be written: it is said, and the others are written."""
    try:
        to_file(named_by_rank(path))
    except LeakprobeError as error:
        say_error(clean(error))
        return USAGE
    return 0


def code_of(report: Report, for_growth: int) -> int:
    """The exit code of a script that ended well."""
    return for_growth if report.verdict == "growing" else EXIT_CODES[report.verdict]


def ended_by(code: int) -> int:
    """The exit code; a negative one ends the process by that signal."""
    if code < 0:
        end_by_signal(-code)
    return code


def run_alone(args: argparse.Namespace, line: str) -> int:
    """The script as without leakprobe, behind one line that says so; no option is looked at."""
    tell(line)
    return ended_by(run_program(args.script, args.args, args.module))


def run_watched(probe: "LimitedProbe", processes: Processes, args: argparse.Namespace) -> int:
    """The exit code of the script; negative for a signal that ended it."""
    every, sigterm = [AutoSteps(probe)] + ([] if rank_and_size() else [processes]), SigtermRaises()

    def end() -> None:
        with contextlib.closing(processes):
            code = hand_out(probe, processes, args, -signal.SIGTERM)
        ended_by(code)

    probe.end_if_swallowed(sigterm, end)
    try:
        with sigterm, probe:
            for patches in every:
                patches.install()
            try:
                code = run_program(args.script, args.args, args.module, sigterm, probe.look_after)
            finally:
                for patches in every:
                    patches.remove()
    except Terminated:
        return -signal.SIGTERM
    return -signal.SIGTERM if sigterm.has_come else code


def take_variables(args: argparse.Namespace) -> None:
    """Options that were not given, from LEAKPROBE_*, else their defaults; args.named: what an error calls
    them.
    """
    args.no_workers = args.no_workers or variable("WORKERS", 1) == 0
    args.annotate = args.annotate or variable("ANNOTATE", 0) != 0
    args.native = args.native or variable("NATIVE", 0) != 0
    args.named = {}
    for name, default in DEFAULTS.items():
        is_given = getattr(args, name) not in (None, "")
        args.named[name] = f"--{name}".replace("_", "-")
        if not is_given and text_of(name.upper()):
            args.named[name] = f"LEAKPROBE_{name.upper()}"
        if not is_given and name in NUMBERS:
            setattr(args, name, variable(name.upper(), default))
        elif not is_given:
            setattr(args, name, text_of(name.upper()) or default)


def text_of(name: str) -> str:
    """What LEAKPROBE_<name> is set to; nothing but blanks is as if it were not set."""
    text = os.environ.get(f"LEAKPROBE_{name}", "")
    return text if text.strip() else ""


def variable(name: str, default: Default) -> int | Default:
    """An option from LEAKPROBE_<name>, a whole number."""
    text = text_of(name)
    if not text:
        return default
    try:
        return int(text)
    except ValueError:
        raise LeakprobeError(
            f"LEAKPROBE_{name} must be a whole number, not {text!r:.60}", "bad_argument"
        ) from None


def check_script(args: argparse.Namespace) -> None:
    if not args.module and not os.path.isfile(args.script):
        raise LeakprobeError(
            f"there is no script {args.script}: give the path of a Python file, or -m and a module",
            "no_script",
        )


def check(args: argparse.Namespace) -> None:
    """What would be known only after the run is found now."""
    if args.steps is not None and args.steps < 1:
        raise LeakprobeError(f"{args.named['steps']} must be 1 or more, not {args.steps}", "bad_argument")
    if not 0 <= args.exit_code <= 255:
        raise LeakprobeError(
            f"{args.named['exit_code']} must be 0 to 255, not {args.exit_code}", "bad_argument"
        )
    checked_int(args.named["warmup"], args.warmup, 0, bounds.LONGEST_WARMUP)
    with naming(args.named["limit"]):
        checked_limit(args.limit)
    with naming(args.named["suppressions"]):
        args.rules = load_rules(args.suppressions) if args.suppressions else []
    for name, kind in (("html", "page"), ("json", "report")):
        setattr(args, name, check_writable(args.named[name], getattr(args, name), kind))
    args.record = args.record and os.path.abspath(args.record)
    check_distinct({args.named[name]: getattr(args, name) for name in ("record", "html", "json")})
    if args.html:
        from leakprobe.report.html import check_packages

        check_packages()


@contextlib.contextmanager
def naming(option: str) -> Iterator[None]:
    """An error in the block says which option or variable it is about."""
    try:
        yield
    except LeakprobeError as error:
        raise LeakprobeError(f"{option}: {error}", error.code) from error


def show(report: Report, recording: str | None = None, verbose: bool = False) -> None:
    """Print the report on standard error, after what the script printed; that of a rank says so, and in one
    piece.
    """
    try:
        sys.stdout.flush()
    except (AttributeError, OSError, ValueError):
        pass
    if sys.__stderr__ is None:  # closed: standard output is the program's
        return
    rank = rank_and_size()
    if rank:
        write_error(text_of_rank(report, rank, recording, verbose))
        return
    try:
        report.print(file=sys.__stderr__, verbose=verbose)
        sys.__stderr__.flush()
    except (OSError, ValueError):  # the reader is gone, or the script closed the stream
        give_up_errors()


def give_up_errors() -> None:
    with contextlib.suppress(OSError):
        give_up_output(2)


def write_error(text: str) -> None:
    """To standard error in one piece."""
    try:
        if sys.__stderr__ is not None:
            sys.__stderr__.write(text)
            sys.__stderr__.flush()
    except (OSError, ValueError):
        give_up_errors()


def text_of_rank(report: Report, place: tuple[int, int], recording: str | None, verbose: bool = False) -> str:
    """The report of one rank of several; with a recording, the first line of it and how to see all."""
    rank, size = place
    text = io.StringIO()
    report.print(file=text, verbose=verbose)
    if not recording:
        return f"leakprobe: rank {rank} of {size}\n{text.getvalue()}\n"
    hint = f"leakprobe: all ranks: leakprobe report {recording}\n" if rank == 0 else ""
    return f"leakprobe: rank {rank} of {size}: {text.getvalue().splitlines()[0]}\n{hint}"


class LimitedProbe:
    """The probe of a run: counts its steps, shows them, and stops watching after ``most``."""

    def __init__(
        self, probe: Probe, most: int | None, live: LiveLine | None = None, named: str = "--record"
    ) -> None:
        self._named = named  # what an error about the recording calls it
        self._probe, self._most, self._count, self._live = probe, most, 0, live
        self._own_watches = OwnWatches(probe)
        self._sigterm = SigtermRaises()  # until it is told of that of the run
        self._end: Callable[[], None] = lambda: None

    def end_if_swallowed(self, sigterm: SigtermRaises, end: Callable[[], None]) -> None:
        """What ends the process at the next mark after a SIGTERM that the script's `except:` has taken."""
        self._sigterm, self._end = sigterm, end

    def __enter__(self) -> "LimitedProbe":
        try:
            self._probe.__enter__()
        except LeakprobeOSError as error:
            raise LeakprobeError(f"{self._named}: {error}", error.code) from error
        self._own_watches.__enter__()
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._live is not None:
            self._live.end()
        self._own_watches.__exit__(*exc_info)
        self._probe.__exit__(*exc_info)

    def step(self) -> None:
        if self._sigterm.was_swallowed():
            self.__exit__(None, None, None)
            self._end()
        self._probe._step_if_on()
        self._count += 1
        if self._live is not None:
            self._live.show(self._probe)
        if self._most is not None and self._count >= self._most and self._probe.is_active():
            self._probe.__exit__(None, None, None)

    def look_after(self, kind: type[BaseException]) -> None:
        """The program ends by an exception of this type, and its frames still hold what they held."""
        if self.is_active():
            self._probe._in_turn(self._probe._look_after, kind)

    def is_active(self) -> bool:
        return self._probe.is_active()

    def epoch(self) -> None:
        self._probe.epoch()

    def _look_at_an_epochs_end(self) -> None:
        self._probe._look_at_an_epochs_end()

    def report(self) -> Report:
        return self._own_watches.report()
