"""What measuring a test leaves behind: a line in words, its recording, annotations.  Only text and numbers"""

import os
import warnings

import pytest

from leakprobe.errors import LeakprobeError
from leakprobe.model.finding import Finding
from leakprobe.model.frames import Frame
from leakprobe.model.report import MIN_STEPS, Report
from leakprobe.model.units import format_rate
from leakprobe.pytest_names import OUTCOME, RECORDING
from leakprobe.record.names import FOLDER, file_of, id_of
from leakprobe.report.annotations import annotation, command, place_fields
from leakprobe.report.clean import clean
from leakprobe.report.text import COUNTED, amount_of


def leave_outcome(item: pytest.Item, report: Report) -> None:
    """For the test's TestReport; of several measurements in one test, that of the fastest growth stays."""
    rate, grows = growth_of(report)
    before = item.stash.get(OUTCOME, None)
    if before is not None and before["rate"] > rate:
        return
    item.stash[OUTCOME] = {
        "rate": rate,
        "grows": grows,
        "recording": save_recording(item, report),
        "annotation": annotations_of(item, report),
    }


def growth_of(report: Report) -> tuple[float, str]:
    """What grows fastest: the first finding, else what a rule allows, else a line that stays below the limit.

    (0.0, "") where nothing grows.
    """
    if report.findings:
        return report.findings[0].bytes_per_step, grown(report.findings[0])
    allowed = [
        (note.bytes_per_step or 0.0, note.type or note.medium, note.allocation, "allowed")
        for note in report.notes
        if note.kind == "suppressed"
    ]
    below = [
        (site["bytes_per_step"] or 0.0, site["type"] or site["medium"], site["allocation"], "below the limit")
        for site in report.sites
    ]
    rows = [row for row in [*allowed, *below] if row[0]]
    if not rows:
        return 0.0, ""
    rate, kind, frame, why = max(rows, key=lambda row: row[0])
    return rate, clean(f"{format_rate(rate)} of {kind}{where(frame)}, {why}")


def first_line(report: Report) -> str:
    """ "memory grows: +4.0 KiB/step of bytearray from test_x.py:7 (and 1 more)"."""
    measured = report.steps["measured"]
    if report.verdict == "inconclusive" and measured >= MIN_STEPS:
        return f"not enough evidence in {measured} steps: what may grow came too rarely for a verdict"
    if report.verdict == "inconclusive":
        return f"not enough evidence: {measured} steps measured, at least {MIN_STEPS} are needed"
    first, more = report.findings[0], len(report.findings) - 1
    rest = f" (and {more} more)" if more else ""
    if first.kind == "resource_growth":
        return clean(f"{COUNTED.get(first.medium, first.medium)}s grow: {grown(first)}{rest}")
    return clean(f"memory grows: {grown(first)}{rest}")


def grown(finding: Finding) -> str:
    """ "+4.0 KiB/step of bytearray from test_x.py:7"."""
    if finding.kind == "resource_growth":
        return clean(f"{amount_of(finding)}{where(finding.allocation)}")
    rate = format_rate(finding.bytes_per_step)
    return clean(f"{rate} of {finding.type or finding.medium}{where(finding.allocation)}")


def where(frame: Frame | None) -> str:
    return f" from {os.path.basename(frame.filename)}:{frame.lineno}" if frame else ""


# ---- recordings ----


def recordings_folder(config: pytest.Config) -> str | None:
    """Where recordings are kept, absolute, or None.  A relative path is below the root of the tests."""
    wanted = config.getoption("leakprobe_recordings", False)
    folder = config.getini("leakprobe_recordings") or (FOLDER if wanted else None)
    return os.path.join(config.rootpath, os.path.expanduser(folder)) if folder else None


def save_recording(item: pytest.Item, report: Report) -> str | None:
    """What `leakprobe report` opens the recording by: the test's id, or its path in another folder than
    .leakprobe; None where none is kept, or it can't be.
    """
    folder = recordings_folder(item.config)
    if folder is None:
        return None
    test_id = id_of(item.nodeid)
    path = os.path.join(folder, file_of(test_id))
    report.run["test"] = item.nodeid
    try:
        make_folder(folder)
        report.save(path)
    except (OSError, LeakprobeError) as error:
        text = f"leakprobe: the recording of {item.nodeid} could not be kept: {error}"
        warnings.warn(pytest.PytestWarning(text), stacklevel=2)
        return None
    item.user_properties.append((RECORDING, test_id))
    in_place = folder == os.path.join(item.config.rootpath, FOLDER)
    return test_id if in_place else os.path.relpath(path, item.config.invocation_params.dir)


def make_folder(folder: str) -> None:
    """A new one is left out of version control, as pytest's cache is."""
    try:
        os.makedirs(folder, mode=0o700)
    except FileExistsError:
        return
    with open(os.path.join(folder, ".gitignore"), "w", encoding="utf-8") as file:
        file.write("# Made by leakprobe's pytest plugin.\n*\n")


# ---- annotations ----


def annotations_of(item: pytest.Item, report: Report) -> str:
    """Lines for GitHub: one a finding, at the line that allocates, else at the test."""
    if report.verdict == "steady":
        return ""
    root = os.environ.get("GITHUB_WORKSPACE") or str(item.config.rootpath)
    path, lineno, _name = item.reportinfo()
    test = Frame(os.fspath(path), (lineno or 0) + 1, item.name)
    if not report.findings:
        return command("error", place_fields(test, root) | {"title": item.nodeid}, first_line(report)) + "\n"
    return "".join(
        annotation(finding, root, f"{item.nodeid}: {heading(finding)}", test) + "\n"
        for finding in report.findings
    )


def heading(finding: Finding) -> str:
    return f"memory grows: {grown(finding)}" if finding.kind != "resource_growth" else grown(finding)
