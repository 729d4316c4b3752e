"""When memory will run out, at the rate of what was found to grow."""

import math
from collections.abc import Iterable

from leakprobe.judge import copies
from leakprobe.model.bounds import HORIZON
from leakprobe.model.finding import Finding, Note
from leakprobe.model.media import family, is_on_host
from leakprobe.model.units import format_rate, format_size
from leakprobe.torch import devices
from leakprobe.watch import control_group
from leakprobe.watch.control_group import Account


def limit_notes(findings: Iterable[Finding], step: int) -> list[Note]:
    """How far the limit of the control group is, or the end of the machine's memory, if it is near.

    What is released at each epoch's end, and what workers copy of their dataset, ends by itself.
    """
    endless = [f for f in findings if f.pattern != "within_epoch" and f.cause not in copies.FIXES]
    rate = sum(finding.bytes_per_step for finding in endless if is_on_host(finding.medium))
    note = limit_note(rate, step, control_group.read()) if rate > 0 else None
    return [note] if note is not None else []


def limit_note(rate: float, step: int, account: Account | None) -> Note | None:
    """``rate``: bytes a step; ``step``: the last one.  None beyond the horizon."""
    if account is not None and account.limit is not None:
        used, room = account.current, account.room
        what = f"the limit of the control group, {format_size(account.limit)},"
        parts = f" ({words_of(account)})"
    else:
        total = control_group.machine_bytes()
        parts = words_of_waiting(control_group.waiting(control_group.MACHINE_PRESSURE))
        room = control_group.available_bytes()
        used = total - room
        what = f"the machine's memory, {format_size(total)},"
    steps = max(0, int(room / rate))
    if steps > HORIZON * step:
        return None
    text = (
        f"at {format_rate(rate)} {what} is reached in about {steps:,} steps, near step {step + steps:,}: "
        f"{format_size(used)} in use{parts}"
    )
    return Note(
        kind="memory_limit", text=text, medium=None, bytes_per_step=round(rate, 1), live_bytes=int(used)
    )


def room_of(medium: str) -> float:
    """Bytes that can still be had of a medium; infinite where that is not known."""
    if family(medium) == "cuda":
        row = devices.read_one(medium)
        if row is None:
            return math.inf
        return row["total"] - row["used"] + row["reserved"] - row["allocated"]  # torch's cache is free too
    if not is_on_host(medium):
        return math.inf
    account = control_group.read()
    return min(control_group.available_bytes(), account.room if account is not None else math.inf)


def words_of(account: Account) -> str:
    """What the group's memory is, as words."""
    parts = (
        ("anonymous", account.anonymous),
        ("page cache", account.page_cache),
        ("shared", account.shared),
        ("kernel", account.kernel),
    )
    killed = f"; {account.killed:,} processes of it were killed for want of memory" if account.killed else ""
    sizes = ", ".join(f"{name} {format_size(size)}" for name, size in parts if size)
    return f"{sizes}{words_of_waiting(account.waiting)}{killed}"


def words_of_waiting(percent: float | None) -> str:
    """What waits for memory, if anything did."""
    return f"; tasks waited for memory in {percent:.2g} % of the last minute" if percent else ""
