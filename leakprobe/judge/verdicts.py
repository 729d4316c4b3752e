"""One verdict for each thing that could grow: a table of rules, the first that applies, each with its reason
in words.

The input is plain data (model/history.py), the numbers are in model/thresholds.py.  A verdict rests on one of
two accounts (evidence/cohorts.py): that of the survivors where they have outlived what is known to die, else
that of the floor.
"""

import dataclasses
import itertools
import math
from collections.abc import Callable, Sequence

from leakprobe.evidence import cohorts, trends
from leakprobe.judge import epochs, rates, reasons
from leakprobe.judge.cases import Case, cases_of, floor_case, late_case
from leakprobe.model.history import History
from leakprobe.model.thresholds import (
    DEVIATIONS,
    FLIGHTS,
    GAP_FACTOR,
    HALF,
    LAG,
    LEAST_CENTROID,
    LEAST_EVENTS,
    LEAST_EXPONENT,
    LEAST_RISES,
    LEAST_STEPS,
    OUTLIVE,
    PART,
    RISK,
)
from leakprobe.model.verdict import FINDINGS, Judgement, Verdict


@dataclasses.dataclass(frozen=True, slots=True)
class Rule:
    """The verdict where ``applies`` says so; ``reason`` puts the numbers behind it in words."""

    verdict: Verdict
    applies: Callable[[Case], bool]
    reason: Callable[[Case], str]


def is_short(case: Case) -> bool:
    """Too little is kept, or for too short a time, for a verdict; of a floor also for one of what may be in
    flight, as that rises while one of several is waited for.
    """
    account = case.account
    return (
        account.events < LEAST_EVENTS
        or (case.is_floor and account.exposure < FLIGHTS * case.history.flight)
        or account.exposure < LEAST_STEPS
        or HALF * account.exposure < case.history.spans.width
    )


def is_turned_over(case: Case) -> bool:
    """Of a short run: some of it died, and what is left is little, or not much older than that was, or no
    more than there was before.
    """
    if not is_short(case) or not case.has_died:
        return False
    return case.is_floor or is_outlived(case) or case.account.events < LEAST_RISES or is_level(case)


def is_nothing(case: Case) -> bool:
    """Nothing is kept of a run that is long enough for it."""
    return case.account.events == 0 and case.history.step - case.history.warmup >= LEAST_STEPS


def is_a_window(case: Case) -> bool:
    """What others keep of its line is older and more: this one may only have the last of it for some steps;
    or of what is not counted as much may have come before, and died.
    It grows if it goes on for a quarter of the steps before its onset, as growth must that begins late.
    """
    history, facts, onset = case.history, case.history.facts, case.account.onset
    is_late = case.account.exposure < HALF * HALF * (onset - history.warmup)
    if case.is_floor or not is_late:
        return False
    if facts.line is None:
        return not facts.is_counted
    rows = facts.line.rows
    older = sum(count for first, last, count, _ in rows if history.warmup <= first and last < onset)
    return older > case.account.rise


def is_outlived(case: Case) -> bool:
    """What died had lived nearly as long as growth has gone on: survivors prove nothing."""
    return not case.is_floor and case.history.step - case.account.onset < OUTLIVE * case.age


def has_stopped(case: Case) -> bool:
    """Nothing was added of late, for longer than the rhythm allows.  A floor is no proof of itself: its
    longest rest is enough.
    """
    return cohorts.is_ended(case.account, case.rises.width, 1 if case.is_floor else GAP_FACTOR)


def has_rested(case: Case) -> bool:
    """Nothing was added in the last half of the run."""
    history = case.history
    return case.account.events > 0 and case.account.end_gap > HALF * (history.step - history.warmup)


def is_a_ramp(case: Case) -> bool:
    """Ramps before this one were lost, and it is not yet so long that it must be another thing; nor, where it
    stands above all that was before, so high.
    """
    if not case.lost or case.account.exposure >= least_of([loss.ramp for loss in case.lost]):
        return False
    return not case.since or case.account.rise < least_of([loss.size for loss in case.lost])


def least_of(lost: Sequence[float]) -> float:
    """How long, or high, what is no ramp like those that were lost must be: half as long again as the
    longest, and longer than all of them together; or, of many, than chance allows.
    """
    by_chance = max(lost) * times_longer(len(lost))
    return min(by_chance, max((1 + HALF) * max(lost), sum(lost)))


def times_longer(losses: int) -> int:
    """How many times longer than the longest of so many lost ramps the present one must be.

    The least c with 1 / C(losses + c, c) <= RISK: exact where ramps end at random, as E exp(-c max) = prod i
    / (i + c) (A. Renyi, "On the theory of order statistics", 1953).
    """
    c = max(0, int(math.pow(RISK, -1 / losses)) - losses)
    while math.comb(losses + c, c) * RISK < 1:
        c += 1
    return c


def is_level(case: Case) -> bool:
    """The total does not rise with what is kept, or not all the time, or no more: as much dies.  One that
    never fell needs no such proof.
    """
    history, onset = case.history, case.account.onset
    if case.is_floor:
        return case.has_died and not cohorts.climbs(history, onset)
    return cohorts.floor_share(history, case.rises, onset) < HALF or (case.has_died and rests(case))


def rests(case: Case) -> bool:
    """The floor no longer rises and the count stays at it: what is kept since takes the place of as much that
    died, and is too young for the survivors' account.
    """
    rises, spans = cohorts.rises_of_floor(case.history), case.history.spans
    account = cohorts.account_of(rises)
    if not cohorts.is_ended(account, rises.width, GAP_FACTOR):
        return False
    rate = account.rise / account.span
    return cohorts.is_within(spans, rises.last - account.end_gap, rate * account.end_gap)


def is_demand(case: Case) -> bool:
    """The floor rises because each step makes more, not because items stay for longer: the mean age of what
    is alive does not grow with its count (J. D. C. Little, "A proof for the queuing formula L = lambda W",
    1961).
    """
    scans = case.history.scans
    if not case.is_floor or len(scans) <= 1:
        return False
    (count, age), (now, age_now) = cohorts.mean_age(scans[0]), cohorts.mean_age(scans[-1])
    return age > 0 and count > 0 and (age_now - age) / age < HALF * (now - count) / count


def is_slowing(case: Case) -> bool:
    """Less and less is added: at once, as to a store that gets full, or like a power of time, as to one whose
    keys get rare.  Survivors of a rhythm that gets slower are none of them, nor, where none is freed, are
    results that keep their autograd graph looked up by a key: of a step that is over they are of no use.

    A handful of births says so only together with those of the warm-up.  A floor that was not watched for
    longer than its items live has yet to show that it does not slow down.
    """
    account = case.account
    is_early = account.centroid < LEAST_CENTROID
    is_power = account.exponent < LEAST_EXPONENT and account.is_power
    if case.is_floor:
        return is_early or (is_power and account.exposure < OUTLIVE * case.age)
    is_cache = is_early or (is_power and not case.history.facts.has_graph)
    is_slow = is_cache and max(account.slowness, case.early.slowness) > DEVIATIONS
    return is_slow and not account.is_rhythm


def is_of_smaller_items(case: Case) -> bool:
    """The floor rises, its bytes in the last half of that time do not: a window of so many bytes, while items
    get smaller.
    """
    account = case.account
    return case.is_floor and cohorts.bytes_rise_less(case.history, account.onset + HALF * account.exposure)


def is_unproven(case: Case) -> bool:
    """The floor slows down, and too few survivors have lived for OUTLIVE times as long as what died to say
    otherwise.
    """
    if case.is_floor or case.age <= LAG:
        return False
    history, old = case.history, case.history.step - OUTLIVE * case.age
    proven = sum(case.account.onset <= time < old for time in case.rises.times)
    floor = floor_case(history, case.age, cohorts.rises_of_floor(history))
    return proven < LEAST_EVENTS and rule_of(floor).verdict is Verdict.FILLING


def is_bounded(case: Case) -> bool:
    facts = case.history.facts
    return facts.bound is not None and (facts.length is None or facts.length <= facts.bound)


def is_waiting(case: Case) -> bool:
    facts = case.history.facts
    return facts.is_garbage and facts.is_collectable and not facts.pins


def always(case: Case) -> bool:
    return True


#: The first that applies is the verdict on a case.
RULES = (
    Rule(Verdict.TURNOVER, is_turned_over, reasons.turnover),
    Rule(Verdict.TURNOVER, is_nothing, reasons.nothing),
    Rule(Verdict.STOPPED, lambda case: is_short(case) and has_rested(case), reasons.stopped),
    Rule(Verdict.TOO_EARLY, is_short, reasons.too_early),
    Rule(Verdict.TOO_EARLY, is_a_window, reasons.a_window),
    Rule(Verdict.TURNOVER, is_outlived, reasons.outlived),
    Rule(Verdict.STOPPED, has_stopped, reasons.stopped),
    Rule(Verdict.TURNOVER, is_a_ramp, reasons.a_ramp),
    Rule(Verdict.TURNOVER, is_demand, reasons.demand),
    Rule(Verdict.FILLING, is_slowing, reasons.slowing),
    Rule(Verdict.TURNOVER, is_level, reasons.level),
    Rule(Verdict.TURNOVER, is_of_smaller_items, reasons.smaller_items),
    Rule(Verdict.FILLING, is_unproven, reasons.slowing),
    Rule(Verdict.WAITING, is_waiting, reasons.waiting),
    Rule(Verdict.BOUNDED, is_bounded, reasons.bounded),
    Rule(Verdict.LEAK, lambda case: case.is_floor, reasons.the_floor),
    Rule(Verdict.LEAK, always, reasons.kept),
)
#: Verdicts on what grows: any account that comes to one of them decides.
GROWING = frozenset({Verdict.LEAK, Verdict.BOUNDED, Verdict.WAITING})
#: Verdicts for which who keeps it is asked.
ASKED = GROWING | FINDINGS


def rule_of(case: Case) -> Rule:
    return next(rule for rule in RULES if rule.applies(case))


def judge(history: History) -> Judgement:
    """The verdict on one entity as of ``history.step``."""
    judged = [(case, rule_of(case)) for case in cases_of(history)]
    whole, rule = judged[-1]
    late = late_case(whole) if rule.verdict is Verdict.TURNOVER else None
    if late is not None:
        judged.append((late, rule_of(late)))
    growing = [pair for pair in judged if pair[1].verdict in GROWING]
    case, rule = main_of(growing) if growing else judged[0]
    enlarged = replaced(history) if rule.verdict not in GROWING else None
    if enlarged is not None:
        return enlarged
    if rule.verdict is Verdict.TURNOVER:
        within = epochs.within_epoch(history)
        if within is not None:
            return within
    return judgement_of(case, rule)


def main_of(growing: Sequence[tuple[Case, Rule]]) -> tuple[Case, Rule]:
    """The first account of growth, the survivors', unless they tell less than half of what the floor does:
    where items live for long, few have outlived them.  Of a plain total that of the whole run, unless it
    surely rises faster since the bend: what was nearly level before has another rate.
    """
    (first, rule), (last, rule_of_last) = growing[0], growing[-1]
    survivors = first.history.survivors
    if survivors is None:
        return growing[-1] if rates.of_total(last).low > rates.of_total(first).high else growing[0]
    if first.is_floor or rule.verdict is not rule_of_last.verdict:
        return growing[0]
    _, few = rates.of_survivors(first, survivors)
    _, many = rates.of_floor(last, survivors)
    return growing[-1] if last.is_floor and few < HALF * many else growing[0]


def judgement_of(case: Case, rule: Rule) -> Judgement:
    history, account = case.history, case.account
    reason = rule.reason(case)
    if rule.verdict is not Verdict.LEAK:
        foreseen: float | None = history.facts.bound if rule.verdict is Verdict.BOUNDED else None
        if rule.verdict is Verdict.FILLING:
            foreseen = reasons.foreseen(case)
        onset = step_at(account.onset) if account.events else None
        return Judgement(
            rule.verdict, reason, history.step, onset, foreseen=foreseen, events=account.events, age=case.age
        )
    survivors = history.survivors
    if survivors is None:
        size, count = rates.of_total(case), account.rise / account.exposure
    elif case.is_floor:
        size, count = rates.of_floor(case, survivors)
    else:
        size, count = rates.of_survivors(case, survivors)
    return Judgement(
        rule.verdict,
        reason,
        history.step,
        step_at(account.onset),
        size,
        count,
        events=account.events,
        age=case.age,
    )


def step_at(time: float) -> int:
    """The nearest step, of two the later: round() takes the even one, which is another one step later."""
    return math.floor(time + HALF)


def replaced(history: History) -> Judgement | None:
    """REPLACED where blocks give way to larger ones: their bytes climb, the last half of the time adds as
    much as the first, and that is neither chance nor because there are more blocks.

    Only who holds them knows whether the new block took over what the old one had; a holder that says no ends
    it.
    """
    known = [row for row in history.sizes if row[0] > history.warmup and row[1]]
    points = [(step, size) for step, _, size in known]
    if len(points) < LEAST_EVENTS - 1 or history.facts.carries_over is False:
        return None
    whole = trends.slope_of(points, DEVIATIONS)
    middle = HALF * (points[0][0] + points[-1][0])
    late = trends.slope_of([point for point in points if point[0] >= middle], 0)
    if whole is None or whole.low <= 0 or (late is not None and late.value < HALF * whole.value):
        return None
    if not are_larger(known):
        return None
    step, size = points[-1]
    onset = step_at(max(history.warmup, min(points[0][0], step - size / whole.value)))
    reason = f"replaced by larger ones: {points[0][1]:,.0f} bytes at step {points[0][0]:,}, {size:,.0f} bytes at step {step:,}"
    return Judgement(Verdict.REPLACED, reason, history.step, onset, whole, 0.0, events=len(points))


def rise_of_few(history: History) -> float | None:
    """Bytes a step that the block, or blocks, grew by where each of the readings met more, and these are too
    few for `replaced`, or for it to know uneven leaps from chance, and of a quarter of the run at least; None
    else.

    The last reading may be nearer to the one before it than the others are, and meets what that did.
    """
    known = [(step, size) for step, _, size in history.sizes if step > history.warmup]
    gaps = [after - before for (before, _), (after, _) in itertools.pairwise(known)]
    if gaps[1:] and gaps[-1] < max(gaps[:-1]):
        known.pop()
    if not 1 < len(known) < (LEAST_EVENTS - 1) / HALF or history.facts.carries_over is False:
        return None
    (first, least), (last, most) = known[0], known[-1]
    if not least or last - first < HALF * HALF * (history.step - history.warmup):
        return None
    rises = all(before < after for (_, before), (_, after) in itertools.pairwise(known))
    return (most - least) / (last - first) if rises else None


def are_larger(known: Sequence[tuple[int, float, float]]) -> bool:
    """True if the bytes of blocks, or their mean size where the count varies, rise by more than chance has
    it, and the count by less than about the share by which the mean size does.

    Shares are slopes of logarithms: those of count and mean size add up to that of the bytes, however each
    is bent, and the bytes vary less by chance than the mean size does.
    """
    totals = [(step, size) for step, _, size in known]
    means = [(step, size / count) for step, count, size in known]
    by_count = slope_of_logarithm([(step, count) for step, count, _ in known])
    if by_count > (1 - PART) * (slope_of_logarithm(totals) - by_count):
        return False
    return trends.drifts(totals, RISK) or trends.drifts(means, RISK)


def slope_of_logarithm(points: Sequence[trends.Point]) -> float:
    return trends.slope([(step, math.log(value)) for step, value in points if value > 0])
