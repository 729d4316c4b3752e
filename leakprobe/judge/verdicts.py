"""One verdict for each thing that could grow: a table of rules, the first that applies, each with its reason in words.

The input is plain data (model/history.py), the numbers are in model/thresholds.py.  A verdict rests on one of two accounts
(evidence/cohorts.py): that of the survivors where they have outlived what is known to die, else that of the floor.
"""

import dataclasses
import math
from collections.abc import Callable

from leakprobe.evidence import cohorts, trends
from leakprobe.evidence.cohorts import NOTHING, Account, Loss, Rises
from leakprobe.model.history import History, Survivors
from leakprobe.model.thresholds import (
    DEVIATIONS,
    GAP_FACTOR,
    HALF,
    LAG,
    LEAST_CENTROID,
    LEAST_EVENTS,
    LEAST_STEPS,
    LOSS_RISK,
    OUTLIVE,
    PRINTED_DEVIATIONS,
    STOP_RISK,
)
from leakprobe.model.verdict import Judgement, Rate, Verdict


@dataclasses.dataclass(frozen=True, slots=True)
class Case:
    """One account of an entity, and what the rules ask beside it.

    ``age``: the most steps that something which died is known to have lived.  ``early``: the account with the warm-up's births,
    where growth began with the watch.
    """

    history: History
    age: float
    rises: Rises
    account: Account
    early: Account = NOTHING
    is_floor: bool = False
    lost: tuple[Loss, ...] = ()

    @property
    def has_died(self) -> bool:
        return self.age > 0 or cohorts.has_died(self.history)


@dataclasses.dataclass(frozen=True, slots=True)
class Rule:
    """The verdict where ``applies`` says so; ``reason`` puts the numbers behind it in words."""

    verdict: Verdict
    applies: Callable[[Case], bool]
    reason: Callable[[Case], str]


def is_short(case: Case) -> bool:
    """Too little is kept, or for too short a time, for a verdict."""
    account = case.account
    return (
        account.events < LEAST_EVENTS
        or account.exposure < LEAST_STEPS
        or HALF * account.exposure < case.history.spans.width
    )


def is_nothing(case: Case) -> bool:
    """Nothing is kept of a run that is long enough for it."""
    return case.account.events == 0 and case.history.step - case.history.warmup >= LEAST_STEPS


def is_outlived(case: Case) -> bool:
    """What died had lived nearly as long as growth has gone on: survivors prove nothing."""
    return not case.is_floor and case.history.step - case.account.onset < OUTLIVE * case.age


def has_stopped(case: Case) -> bool:
    """Nothing was added of late, for longer than the rhythm allows.  A floor is no proof of itself: its longest rest is enough."""
    account = case.account
    factor = 1 if case.is_floor else GAP_FACTOR
    return account.end_gap > factor * account.longest_gap and cohorts.is_unlike(
        account.end_gap, account.events, account.span, STOP_RISK
    )


def is_a_ramp(case: Case) -> bool:
    """Ramps before this one were lost, and it is not yet so long that it must be another thing."""
    longest = max((loss.age for loss in case.lost), default=0)
    return longest > 0 and case.account.exposure < longest * times_longer(len(case.lost))


def times_longer(losses: int) -> int:
    """How many times longer than the longest of so many lost ramps the present one must be.

    The least c with 1 / C(losses + c, c) <= LOSS_RISK: exact where ramps end at random, as E exp(-c max) = prod i / (i + c)
    (A. Renyi, "On the theory of order statistics", 1953).
    """
    c = max(0, int(math.pow(LOSS_RISK, -1 / losses)) - losses)
    while math.comb(losses + c, c) * LOSS_RISK < 1:
        c += 1
    return c


def is_level(case: Case) -> bool:
    """The total does not rise with what is kept, or not all the time: as much dies."""
    if case.is_floor:
        return not cohorts.climbs(case.history, case.account.onset)
    return cohorts.floor_share(case.history, case.rises, case.account.onset) < HALF


def is_young(case: Case) -> bool:
    """The floor rises, and what makes it up does not live longer than LAG: each step makes more, and frees it."""
    if not case.is_floor or case.history.survivors is None:
        return False
    old = sum(count for _, last, count, _ in case.history.survivors.rows if last < case.history.step - LAG)
    return old < HALF * case.account.rise


def is_slowing(case: Case) -> bool:
    """Less and less is added.  A handful of births says so only together with those of the warm-up."""
    if case.account.centroid >= LEAST_CENTROID:
        return False
    return case.is_floor or max(case.account.slowness, case.early.slowness) > DEVIATIONS


def is_bounded(case: Case) -> bool:
    facts = case.history.facts
    return facts.bound is not None and (facts.length is None or facts.length <= facts.bound)


def is_waiting(case: Case) -> bool:
    facts = case.history.facts
    return facts.is_garbage and facts.is_collectable and not facts.pins


def always(case: Case) -> bool:
    return True


def kept(case: Case) -> str:
    """How much is kept, since when."""
    account = case.account
    if account.events == 0:
        return "nothing is kept"
    what = "steps" if case.rises.width == 1 else f"spans of {case.rises.width:,} steps"
    return f"{account.rise:,.0f} kept since step {account.onset:,.0f}, from {account.events:,} {what}"


def why_turnover(case: Case) -> str:
    return f"{kept(case)}; the rest was freed"


def why_nothing(case: Case) -> str:
    return f"nothing is kept in {case.history.step - case.history.warmup:,} steps"


def why_too_early(case: Case) -> str:
    return f"{kept(case)}: a verdict takes {LEAST_EVENTS} steps with survivors, over {LEAST_STEPS} steps"


def why_outlived(case: Case) -> str:
    return f"what is freed had lived for up to {case.age:,.0f} steps, nearly as long as anything is kept"


def why_stopped(case: Case) -> str:
    account = case.account
    rest = f"nothing was added in the last {account.end_gap:,.0f} steps"
    return f"{kept(case)}; {rest}, and no earlier pause was longer than {account.longest_gap:,.0f}"


def why_a_ramp(case: Case) -> str:
    times = "once" if len(case.lost) == 1 else f"{len(case.lost)} times"
    longest = max(loss.age for loss in case.lost)
    return f"filled and emptied {times} before, over up to {longest:,.0f} steps; {case.account.exposure:,.0f} so far"


def why_young(case: Case) -> str:
    return f"each step makes more of them, but none lives longer than {LAG} steps"


def why_slowing(case: Case) -> str:
    half = median_time(case)
    return f"{kept(case)}, fewer and fewer: half of them within the first {half:.0%} of that time"


def why_level(case: Case) -> str:
    return (
        f"as many are freed as are added: the total has no lasting rise since step {case.account.onset:,.0f}"
    )


def why_waiting(case: Case) -> str:
    return f"{kept(case)}, in cycles that the collector will free"


def why_bounded(case: Case) -> str:
    return f"{kept(case)}, and the holder takes at most {case.history.facts.bound:,}"


def why_the_floor(case: Case) -> str:
    account = case.account
    died = ", though old ones are freed" if case.age else ""
    return f"the lowest total rises all along, by {account.rise:,.0f} since step {account.onset:,.0f}{died}"


def why_kept(case: Case) -> str:
    if case.age <= LAG:
        return f"{kept(case)}; none of them was freed"
    return f"{kept(case)}; what was freed had lived for at most {case.age:,.0f} steps"


#: The first that applies is the verdict on a case.
RULES = (
    Rule(Verdict.TURNOVER, lambda case: is_short(case) and case.has_died, why_turnover),
    Rule(Verdict.TURNOVER, is_nothing, why_nothing),
    Rule(Verdict.STOPPED, lambda case: is_short(case) and has_stopped(case), why_stopped),
    Rule(Verdict.TOO_EARLY, is_short, why_too_early),
    Rule(Verdict.TURNOVER, is_outlived, why_outlived),
    Rule(Verdict.STOPPED, has_stopped, why_stopped),
    Rule(Verdict.TURNOVER, is_a_ramp, why_a_ramp),
    Rule(Verdict.TURNOVER, is_young, why_young),
    Rule(Verdict.FILLING, is_slowing, why_slowing),
    Rule(Verdict.TURNOVER, is_level, why_level),
    Rule(Verdict.WAITING, is_waiting, why_waiting),
    Rule(Verdict.BOUNDED, is_bounded, why_bounded),
    Rule(Verdict.LEAK, lambda case: case.is_floor, why_the_floor),
    Rule(Verdict.LEAK, always, why_kept),
)
#: Verdicts on what grows: any account that comes to one of them decides.
GROWING = frozenset({Verdict.LEAK, Verdict.BOUNDED, Verdict.WAITING})


def median_time(case: Case) -> float:
    """The share of the time since the onset by which half of the rise had come."""
    account, so_far = case.account, 0.0
    for time, amount in zip(case.rises.times, case.rises.amounts):
        so_far += amount if time >= account.onset else 0
        if so_far >= HALF * account.rise:
            return (time - account.onset) / account.exposure
    return 1.0


def foreseen_of(case: Case) -> float | None:
    """How many there will be in the end, if each half of the time so far brings the same share of the one before it."""
    account = case.account
    middle = account.onset + HALF * account.exposure
    second = sum(a for time, a in zip(case.rises.times, case.rises.amounts) if time >= middle)
    first = account.rise - second
    return first * first / (first - second) if first > second else None


def judge(history: History) -> Judgement:
    """The verdict on one entity as of ``history.step``."""
    enlarged = replaced(history)
    if enlarged is not None:
        return enlarged
    cases = cases_of(history)
    judged = [(case, next(rule for rule in RULES if rule.applies(case))) for case in cases]
    case, rule = next((pair for pair in judged if pair[1].verdict in GROWING), judged[0])
    if rule.verdict is Verdict.TURNOVER:
        within = within_epoch(history)
        if within is not None:
            return within
    return judgement_of(case, rule)


def cases_of(history: History) -> list[Case]:
    """The survivors' account, and the floor's where old items die or survivors are not known."""
    if history.survivors is None:
        return [floor_case(history, 0)]
    case = survivors_case(history, history.survivors)
    return [case, floor_case(history, case.age)] if case.age > LAG else [case]


def survivors_case(history: History, survivors: Survivors) -> Case:
    """Deaths after the onset are known from scans, and from what the total lost."""
    spans, first = history.spans, history.warmup
    age = cohorts.oldest_death(history)
    rises = cohorts.rises_of_survivors(survivors, spans, first, age)
    account = cohorts.account_of(rises)
    after = cohorts.losses_of(spans, account.onset, history.step) if account.events else []
    older = max((loss.age for loss in after), default=0)
    if older > age:
        age, rises = older, cohorts.rises_of_survivors(survivors, spans, first, older)
        account = cohorts.account_of(rises)
    early = NOTHING
    if account.is_from_start:
        early = cohorts.account_of(cohorts.rises_of_survivors(survivors, spans, 1, age))
    return Case(history, age, rises, account, early, lost=lost_before(history, account))


def floor_case(history: History, age: float) -> Case:
    rises = cohorts.rises_of_floor(history)
    account = cohorts.account_of(rises)
    return Case(history, age, rises, account, is_floor=True, lost=lost_before(history, account))


def lost_before(history: History, account: Account) -> tuple[Loss, ...]:
    return tuple(loss for loss in cohorts.losses_of(history.spans, 0, account.onset) if loss.age > 0)


def judgement_of(case: Case, rule: Rule) -> Judgement:
    history, account = case.history, case.account
    reason = rule.reason(case)
    if rule.verdict is not Verdict.LEAK:
        foreseen: float | None = history.facts.bound if rule.verdict is Verdict.BOUNDED else None
        if rule.verdict is Verdict.FILLING:
            foreseen = foreseen_of(case)
        onset = round(account.onset) if account.events else None
        return Judgement(rule.verdict, reason, history.step, onset, foreseen=foreseen)
    survivors = history.survivors
    if survivors is None:
        size, count = rate_of_total(case), account.rise / account.exposure
    elif case.is_floor:
        size, count = rate_of_floor(case, survivors), account.rise / account.exposure
    else:
        size, count = rate_of_survivors(case, survivors)
    return Judgement(rule.verdict, reason, history.step, round(account.onset), size, count)


def rate_of_survivors(case: Case, survivors: Survivors) -> tuple[Rate, float]:
    """(bytes, items) a step since the onset; the interval is that of births at random (a compound Poisson process)."""
    account, history = case.account, case.history
    rows = cohorts.between(survivors.rows, account.onset - 1, history.step - max(case.age, LAG))
    sizes = [size for *_, size in rows]
    margin = PRINTED_DEVIATIONS * math.sqrt(sum(size * size for size in sizes)) / account.exposure
    value = sum(sizes) / account.exposure
    count = sum(count for _, _, count, _ in rows) / account.exposure
    return Rate(value, max(0.0, value - margin), value + margin), count


def rate_of_floor(case: Case, survivors: Survivors) -> Rate:
    """Bytes a step: the floor's rise at the mean size of what is alive of those born since the onset."""
    history, account = case.history, case.account
    rows = cohorts.between(survivors.rows, account.onset, history.step)
    count = sum(count for _, _, count, _ in rows)
    mean = sum(size for *_, size in rows) / count if count else 0.0
    value = account.rise * mean / account.exposure
    margin = PRINTED_DEVIATIONS * value / math.sqrt(account.effective)
    return Rate(value, max(0.0, value - margin), value + margin)


def rate_of_total(case: Case) -> Rate:
    """Units a step of a plain total: the slope of its lowest values since the onset."""
    spans, onset = case.history.spans, case.account.onset
    points = [(spans.mark_of(i), low) for i, low in enumerate(spans.lows) if spans.mark_of(i) >= onset - 1]
    found = trends.slope_of(points, PRINTED_DEVIATIONS)
    return found or Rate(case.account.rise / case.account.exposure, -math.inf, math.inf)


def replaced(history: History) -> Judgement | None:
    """REPLACED where as many blocks as before, a few, have ever more bytes, and the last half of the time adds as much as the first.

    Only who holds them knows whether the new block took over what the old one had; a holder that says no ends it.
    """
    points = [(step, size) for step, count, size in history.sizes if step > history.warmup and count]
    counts = {count for step, count, _ in history.sizes if step > history.warmup and count}
    if (
        len(points) < LEAST_EVENTS
        or len(counts) != 1
        or max(counts) > LAG
        or history.facts.carries_over is False
    ):
        return None
    whole = trends.slope_of(points, DEVIATIONS)
    middle = HALF * (points[0][0] + points[-1][0])
    late = trends.slope_of([point for point in points if point[0] >= middle], 0)
    if whole is None or whole.low <= 0 or late is not None and late.value < HALF * whole.value:
        return None
    step, size = points[-1]
    onset = round(max(history.warmup, min(points[0][0], step - size / whole.value)))
    shown = trends.slope_of(points, PRINTED_DEVIATIONS)
    reason = f"replaced by larger ones: {points[0][1]:,.0f} bytes at step {points[0][0]:,}, {size:,.0f} at step {step:,}"
    return Judgement(Verdict.REPLACED, reason, history.step, onset, shown, 0.0)


def within_epoch(history: History) -> Judgement | None:
    """WITHIN_EPOCH as of the last scan that met one in full swing: all of its survivors are of that epoch, added evenly."""
    for scan in reversed(history.scans):
        begun = max((end for end in history.epochs if end < scan.step), default=None)
        if begun is not None and begun - history.warmup >= LEAST_STEPS and scan.step - begun >= LEAST_STEPS:
            return within(history, scan, begun)
    return None


def within(history: History, scan: Survivors, begun: int) -> Judgement | None:
    rows = cohorts.between(scan.rows, begun, scan.step - LAG)
    count = sum(count for _, _, count, _ in rows)
    older = sum(count for first, _, count, _ in scan.rows if history.warmup <= first < begun)
    length = scan.step - begun
    if len(rows) < LEAST_EVENTS or older > HALF * count:
        return None
    centroid = sum(count * (last - begun) for _, last, count, _ in rows) / (count * length)
    if not LEAST_CENTROID <= centroid <= 1 - LEAST_CENTROID:
        return None
    sizes = [size for *_, size in rows]
    value, peak = sum(sizes) / length, max(history.spans.highs, default=count)
    margin = PRINTED_DEVIATIONS * math.sqrt(sum(size * size for size in sizes)) / length
    reason = f"{count:,} kept since the epoch began at step {begun:,}, as of step {scan.step:,}; those of the epochs before were released"
    rate = Rate(value, max(0.0, value - margin), value + margin)
    return Judgement(Verdict.WITHIN_EPOCH, reason, history.step, begun, rate, count / length, peak=peak)
