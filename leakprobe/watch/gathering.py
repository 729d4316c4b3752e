"""One report of all ranks of a job, while it runs."""

from leakprobe.judge.reports import merge
from leakprobe.model.finding import Note
from leakprobe.model.report import Report
from leakprobe.record.reader import Recording
from leakprobe.torch.ranks import exchange
from leakprobe.watch.arguments import checked_seconds


def gather(report: Report, timeout: float) -> Report:
    """One report of all ranks: those that call this too, within ``timeout`` seconds, are merged with
    ``report``.

    Where there is no job, or torch.distributed has no store yet, the report comes back with a note that says
    so.  Errors: LeakprobeError "bad_argument" for a timeout that is none.
    """
    found = exchange(report, checked_seconds("timeout", timeout))
    if isinstance(found, str):
        text = f"this report covers this process only: {found}"
        report.notes.append(Note(kind="gap", text=text, medium=None))
        return report
    recordings = [recording_of(one, rank) for rank, one in found.reports.items()]
    merged = merge(recordings) if len(recordings) > 1 else report
    if found.silent:
        names = ", ".join(map(str, found.silent))
        text = f"rank {names} did not answer within {timeout:g} s: it is dead, busy, or has not called report(ranks=True) as often"
        merged.notes.append(Note(kind="gap", text=text, medium=None))
    return merged


def recording_of(report: Report, rank: int) -> Recording:
    report.run["rank"] = rank
    return Recording(path=f"rank {rank}", settings={}, state="running", report=report)
