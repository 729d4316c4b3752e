"""The cell magic of IPython and Jupyter: ``%load_ext leakprobe``, then ``%%leakprobe`` above a cell.

    %%leakprobe
    for batch in probe.steps(loader):       # else optimizer steps or DataLoader batches are the steps
        train_step(batch)

    %%leakprobe -n 3:10
    train_step(batch)                       # the cell is the step: 3 times as warm-up, 10 times measured

The report is shown, and kept as ``leakprobe_report``.
"""

import contextlib
import re
import shlex
from collections.abc import Iterator
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
        """
        repeats, warmup, options = parse_line(line)
        try:
            off = switch.disabled_line()
            if off is not None:
                repeats = None  # the cell runs once, as without leakprobe
            probe = watch(repeats[0] if repeats else warmup, **options)
            if repeats:
                marked_by_caller(probe)
            lines = with_first_line(cell)
            try:
                with probe, self._numbered():
                    stopped = self._repeat(probe, lines, repeats) if repeats else self._once(probe, lines)
                    probe._look_at_the_end()
            except KeyboardInterrupt:  # between two lines of the cell
                stopped = True
        except LeakprobeError as error:
            raise UsageError(f"{error}\n{FORM}") from None
        report = probe.report()
        self.shell.user_ns["leakprobe_report"] = report
        print(off) if off is not None else self._show(report)
        if stopped:
            raise Stopped  # else the cells after this one would run

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

    def _repeat(self, probe: "Probe", cell: str, repeats: Repeats) -> bool:
        """True if the kernel was interrupted."""
        for _ in range(sum(repeats)):
            result = self.shell.run_cell(cell)
            if not result.success:
                return was_interrupted(result)
            probe.step()
        return False

    def _once(self, probe: "Probe", cell: str) -> bool:
        """True if the kernel was interrupted."""
        names = self.shell.user_ns
        before = names.get("probe", names)
        try:
            names["probe"] = probe
            return was_interrupted(self.shell.run_cell(cell))
        finally:
            if before is names:
                names.pop("probe", None)
            else:
                names["probe"] = before

    def _show(self, report: "Report") -> None:
        if report.steps["measured"] == 0 and report.steps["warmup"] == 0:
            print(
                f"leakprobe: no step was marked: use probe.step() in the cell, or -n 3:10 to repeat it\n{FORM}"
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


def was_interrupted(result: Any) -> bool:
    """True for the result of a cell that the stop button ended."""
    return isinstance(result.error_in_exec or result.error_before_exec, KeyboardInterrupt)


def with_first_line(cell: str) -> str:
    """The cell with a line in place of the magic's own, so that its lines have the numbers that its reader
    sees.

    Not before another magic, which must come first, nor before a cell that is indented as a whole.
    """
    return cell if cell.startswith(("%%", " ", "\t")) else f"# %%leakprobe\n{cell}"


def parse_line(line: str) -> tuple[Repeats | None, int, dict[str, Any]]:
    """(repeats or None, warm-up, options of watch()) of the line after %%leakprobe.  Errors: UsageError."""
    repeats: Repeats | None = None
    warmup = 5
    options: dict[str, Any] = {}
    words = shlex.split(line)
    if len(words) % 2:
        raise UsageError(FORM)
    for key, value in zip(words[::2], words[1::2]):
        match = re.fullmatch(r"(\d+):(\d+)", value)
        if key == "-n" and match:
            repeats = int(match.group(1)), int(match.group(2))
        elif key == "-w" and value.isdigit():
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
