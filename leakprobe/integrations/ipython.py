"""The cell magic of IPython and Jupyter: ``%load_ext leakprobe``, then ``%%leakprobe`` above a cell.

    %%leakprobe
    for batch in probe.steps(loader):       # else optimizer steps or DataLoader batches are the steps
        train_step(batch)

    %%leakprobe -n 3:10
    train_step(batch)                       # the cell is the step: 3 times as warm-up, 10 times measured

The report is shown, and kept as ``leakprobe_report``.
"""

import asyncio
import contextlib
import io
import re
import shlex
import tokenize
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, magics_class

from leakprobe import switch
from leakprobe.errors import LeakprobeError
from leakprobe.probe import Probe, watch
from leakprobe.watch.marking import marked_by_caller

if TYPE_CHECKING:
    from leakprobe.model.report import Report

#: Times that a cell runs, of warm-up and measured.
Repeats = tuple[int, int]

#: Tokens that IPython passes over where it looks whether a cell ends in a semicolon.
PASSED_OVER = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER)

FORM = "%%leakprobe [-n WARMUP:MEASURED] [-w WARMUP] [-l LIMIT] [-o RECORDING]"


@magics_class
class LeakprobeMagics(Magics):  # type: ignore[misc]  # mypy does not follow IPython's imports
    """%%leakprobe."""

    shell: Any  # an InteractiveShell: IPython makes no magics without

    @cell_magic  # type: ignore[untyped-decorator]  # the same
    def leakprobe(self, line: str, cell: str) -> None:
        """%%leakprobe [-n WARMUP:MEASURED] [-w WARMUP] [-l LIMIT] [-o RECORDING]

        Run the cell under leakprobe.watch() and show what grows.  -n repeats the cell, each time a step; else
        the cell marks steps with probe.step() or probe.steps(...), or torch's optimizers and DataLoaders do.
        The value of a cell that is repeated is not shown, nor that of one that ends in a semicolon.
        """
        repeats, warmup, options = parse_line(line)
        lines = with_first_line(cell)
        self._check_await(lines)
        try:
            off = switch.disabled_line()
            if off is not None:
                repeats = None  # the cell runs once, as without leakprobe
            probe = watch(repeats[0] if repeats else warmup, **options)
            if repeats:
                marked_by_caller(probe)
            try:
                with probe, self._numbered(), self._quiet(lines, repeats):
                    failure = self._repeat(probe, lines, repeats) if repeats else self._once(probe, lines)
                    probe._look_at_the_end()
            except KeyboardInterrupt:  # between two lines of the cell
                failure = Stopped()
        except LeakprobeError as error:
            raise UsageError(f"{error}\n{FORM}") from None
        report = probe.report()
        self.shell.user_ns["leakprobe_report"] = report
        print(off) if off is not None else self._show(report, failure is not None)
        if failure is not None:
            raise failure  # else the cells after this one would run

    @contextlib.contextmanager
    def _numbered(self) -> Iterator[None]:
        """The cell runs under the number that its reader sees: In has it, and execution_count the next one,
        from IPython 9 on.
        """
        before = self.shell.execution_count
        self.shell.execution_count = len(self.shell.user_ns.get("In", ())) - 1 or before
        try:
            yield
        finally:
            self.shell.execution_count = before

    @contextlib.contextmanager
    def _quiet(self, cell: str, repeats: Repeats | None) -> Iterator[None]:
        """No value is shown where a semicolon asks for that, nor at each repetition: IPython keeps what it
        showed, which would be growth of each step.
        """
        before = self.shell.ast_node_interactivity
        if repeats or ends_in_semicolon(self._as_python(cell)):
            self.shell.ast_node_interactivity = "none"
        try:
            yield
        finally:
            self.shell.ast_node_interactivity = before

    def _as_python(self, cell: str) -> str:
        """The cell without magics and "!"; "" for one that is told to be wrong when it runs."""
        try:
            return str(self.shell.transform_cell(cell))
        except SyntaxError:
            return ""

    def _check_await(self, cell: str) -> None:
        """Errors: UsageError if the cell awaits where an event loop runs already: IPython can't run it within
        a magic then.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return
        if self.shell.should_run_async(cell, transformed_cell=self._as_python(cell)):
            raise UsageError(
                "%%leakprobe can't run a cell with await, since the kernel's event loop is running: write "
                "`with leakprobe.watch() as probe:` in the cell, and probe.step() after each step"
            )

    def _repeat(self, probe: "Probe", cell: str, repeats: Repeats) -> "Stopped | Failed | None":
        """What ended the cell before its time."""
        for _ in range(sum(repeats)):
            failure = failure_of(self.shell.run_cell(cell))
            if failure is not None:
                return failure
            probe.step()
        return None

    def _once(self, probe: "Probe", cell: str) -> "Stopped | Failed | None":
        """The same."""
        names = self.shell.user_ns
        before = names.get("probe", names)
        try:
            names["probe"] = probe
            return failure_of(self.shell.run_cell(cell))
        finally:
            if names.get("probe") is not probe:
                pass  # the cell has a variable of that name
            elif before is names:
                del names["probe"]
            else:
                names["probe"] = before

    def _show(self, report: "Report", failed: bool) -> None:
        if report.steps["measured"] == 0 and report.steps["warmup"] == 0:
            if not failed:
                print(
                    "leakprobe: no step was marked: use probe.step() in the cell, or -n 3:10 to repeat it\n"
                    f"{FORM}"
                )
        elif getattr(self.shell, "kernel", None) is not None:
            from IPython.display import display

            display(report)
        else:
            report.print()


class Stopped(KeyboardInterrupt):
    """The cell was interrupted; its report is shown already, and the traceback, where there is one."""

    def _render_traceback_(self) -> list[str]:
        """What IPython shows of it."""
        return ["KeyboardInterrupt: the cell was stopped; the report is as of its last step"]


class Failed(Exception):
    """The cell raised something; its report and its traceback are shown already."""

    def _render_traceback_(self) -> list[str]:
        """What IPython shows of it."""
        return []


def failure_of(result: Any) -> Stopped | Failed | None:
    """What the result of a cell says of its end: None for one that ran through.  What the cell raised is not
    kept, nor its frames with it.
    """
    error = result.error_before_exec or result.error_in_exec
    if error is None:
        return None
    stopped = isinstance(error, KeyboardInterrupt)
    return Stopped() if stopped else Failed(f"the cell ended with {type(error).__name__}")


def ends_in_semicolon(code: str) -> bool:
    """True for Python whose last token is a semicolon, as IPython's display hook tests the line it was given,
    which is that of the magic here.
    """
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(code).readline))
    except (SyntaxError, tokenize.TokenError):
        return False
    last = next((token for token in reversed(tokens) if token.type not in PASSED_OVER), None)
    return last is not None and last.type == tokenize.OP and last.string == ";"


def with_first_line(cell: str) -> str:
    """The cell with a line in place of the magic's own, so that its lines have the numbers that its reader
    sees.

    Not before another magic, which must come first, nor before a cell that is indented as a whole.
    """
    return cell if cell.startswith(("%%", " ", "\t")) else f"# %%leakprobe\n{cell}"


def parse_line(line: str) -> tuple[Repeats | None, int, dict[str, Any]]:
    """(repeats or None, warm-up, options of watch()) of the line after %%leakprobe.  Errors: UsageError."""
    try:
        return parse_words(shlex.split(line))
    except ValueError as error:  # a quotation mark without its other one, a number of thousands of digits
        raise UsageError(f"{error}: {FORM}") from None


def parse_words(words: Sequence[str]) -> tuple[Repeats | None, int, dict[str, Any]]:
    """The same of the line's words.  Errors: UsageError, ValueError."""
    repeats: Repeats | None = None
    warmup = 5
    options: dict[str, Any] = {}
    if len(words) % 2:
        raise UsageError(FORM)
    for key, value in zip(words[::2], words[1::2]):
        match = re.fullmatch(r"([0-9]+):([0-9]+)", value)
        if key == "-n" and match:
            repeats = int(match.group(1)), int(match.group(2))
        elif key == "-w" and re.fullmatch("[0-9]+", value):
            warmup = int(value)
        elif key == "-l":
            options["limit"] = value
        elif key == "-o":
            options["record"] = value
        else:
            raise UsageError(f"{key} {value} is not understood: {FORM}")
    return repeats, warmup, options


def load_ipython_extension(shell: Any) -> None:
    """What ``%load_ext leakprobe`` calls."""
    shell.register_magics(LeakprobeMagics)
