"""Why a verdict was given: one sentence each, with the numbers behind it."""

from leakprobe.evidence import cohorts
from leakprobe.judge.cases import Case
from leakprobe.model.thresholds import HALF, LAG, LEAST_EVENTS, LEAST_STEPS


def how_much(case: Case) -> str:
    """How much is kept, since when."""
    account = case.account
    if account.events == 0:
        return "nothing is kept"
    what = "steps" if case.rises.width == 1 else f"spans of {case.rises.width:,} steps"
    return f"{account.rise:,.0f} kept since step {account.onset:,.0f}, from {account.events:,} {what}"


def turnover(case: Case) -> str:
    return f"{how_much(case)}; the rest was freed"


def nothing(case: Case) -> str:
    return f"nothing is kept in {case.history.step - case.history.warmup:,} steps"


def too_early(case: Case) -> str:
    return f"{how_much(case)}: a verdict takes {LEAST_EVENTS} steps with survivors, over {LEAST_STEPS} steps"


def a_window(case: Case) -> str:
    if not case.history.facts.is_counted:
        return f"{how_much(case)}; whether as many came before, and were freed, is not known"
    return f"{how_much(case)}, and others keep more of the line, which is older: it may pass on what it has"


def outlived(case: Case) -> str:
    return f"what is freed had lived for up to {case.age:,.0f} steps, nearly as long as anything is kept"


def stopped(case: Case) -> str:
    account = case.account
    rest = f"nothing was added in the last {account.end_gap:,.0f} steps"
    return f"{how_much(case)}; {rest}, and no earlier pause was longer than {account.longest_gap:,.0f}"


def a_ramp(case: Case) -> str:
    times = "once" if len(case.lost) == 1 else f"{len(case.lost)} times"
    longest = max(loss.ramp for loss in case.lost)
    return f"filled and emptied {times} before, over up to {longest:,.0f} steps; {case.account.exposure:,.0f} so far"


def demand(case: Case) -> str:
    count, age = cohorts.mean_age(case.history.scans[-1])
    return f"each step makes more of them, but none stays longer: {count:,.0f} alive, {age:,.0f} steps old on average"


def slowing(case: Case) -> str:
    half = median_time(case)
    return f"{how_much(case)}, fewer and fewer: half of them within the first {half:.0%} of that time"


def level(case: Case) -> str:
    return (
        f"as many are freed as are added: the total has no lasting rise since step {case.account.onset:,.0f}"
    )


def smaller_items(case: Case) -> str:
    account, (_, count, size) = case.account, case.history.sizes[-1]
    middle = account.onset + HALF * account.exposure
    _, before, size_before = next(each for each in case.history.sizes if each[0] >= middle)
    return (
        f"more of them, but smaller ones: {before:,.0f} to {count:,.0f} since step {middle:,.0f}, and their "
        f"bytes {size_before:,.0f} to {size:,.0f}"
    )


def waiting(case: Case) -> str:
    return f"{how_much(case)}, in cycles that the collector will free"


def bounded(case: Case) -> str:
    return f"{how_much(case)}, and the holder takes at most {case.history.facts.bound:,}"


def the_floor(case: Case) -> str:
    account = case.account
    died = ", although old ones are freed" if case.age else ""
    return (
        f"the number alive rises even at its lowest points: {account.rise:,.0f} more since step "
        f"{account.onset:,.0f}{died}"
    )


def kept(case: Case) -> str:
    if case.age <= LAG or not cohorts.has_died(case.history):
        freed = "hardly any" if cohorts.has_old_death(case.history) else "none"
        return f"{how_much(case)}; {freed} of them was freed"
    return f"{how_much(case)}; those that were freed had lived for at most {case.age:,.0f} steps"


def median_time(case: Case) -> float:
    """The share of the time since the onset by which half of the rise had come."""
    account, so_far = case.account, 0.0
    for time, amount in zip(case.rises.times, case.rises.amounts):
        so_far += amount if time >= account.onset else 0
        if so_far >= HALF * account.rise:
            return (time - account.onset) / account.exposure
    return 1.0


def foreseen(case: Case) -> float | None:
    """How many there will be in the end, if each half of the time so far brings the same share of the one
    before it.
    """
    account = case.account
    middle = account.onset + HALF * account.exposure
    second = sum(a for time, a in zip(case.rises.times, case.rises.amounts) if time >= middle)
    first = account.rise - second
    return first * first / (first - second) if first > second else None
