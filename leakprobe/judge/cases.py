"""Which accounts of an entity a verdict may rest on, and what the rules ask beside them."""

import dataclasses

from leakprobe.evidence import cohorts
from leakprobe.evidence.cohorts import NOTHING, Account, Loss, Rises
from leakprobe.model.history import History, Survivors
from leakprobe.model.thresholds import HALF, LAG, LEAST_EVENTS, LEAST_STEPS, OUTLIVE


@dataclasses.dataclass(frozen=True, slots=True)
class Case:
    """One account of an entity, and what the rules ask beside it.

    ``age``: the most steps that something which died is known to have lived.  ``early``: the account with the
    warm-up's births, where growth began with the watch.  ``since``: the mark at which the floor of a late
    account bent, 0 for the others.
    """

    history: History
    age: float
    rises: Rises
    account: Account
    early: Account = NOTHING
    is_floor: bool = False
    lost: tuple[Loss, ...] = ()
    since: float = 0

    @property
    def has_died(self) -> bool:
        return self.age > 0 or cohorts.has_died(self.history)


def cases_of(history: History) -> list[Case]:
    """The survivors' account, and the floor's where items die that are older than what may be in flight: of a
    line, or of a holder's part of it that has as many items as a verdict needs births.

    Of a site, judge() asks for the floor since its bend too (late_case), where the whole run has turned over.
    Of a plain total there is the floor's only: over the whole run, and since the bend of what was level
    before.
    """
    floor = cohorts.rises_of_floor(history)
    if history.survivors is None:
        bent = cohorts.since(floor, cohorts.bend_of(history.spans))
        return [floor_case(history, 0, floor), floor_case(history, 0, bent)]
    case = survivors_case(history, history.survivors)
    items = sum(count for *_, count, _ in history.survivors.rows)
    if case.age <= max(LAG, history.flight) or items < LEAST_EVENTS:
        return [case]
    return [case, floor_case(history, case.age, floor)]


def late_case(whole: Case) -> Case | None:
    """The floor's account since it bent, where the count stands above all that was before by OUTLIVE times
    the most that was ever lost, and has risen for a quarter of the steps before, as growth must that begins
    late: what wanders comes back sooner.
    """
    history, spans = whole.history, whole.history.spans
    if not whole.is_floor or history.survivors is None:
        return None
    bend = cohorts.bend_of(spans)
    case = floor_case(history, whole.age, cohorts.since(whole.rises, bend))
    onset, before = case.account.onset, [x for i, x in enumerate(spans.highs) if spans.mark_of(i) < bend]
    if not before or case.account.exposure < HALF * HALF * (onset - history.warmup):
        return None
    above = cohorts.lowest_of_late(history, onset) - max(before)
    is_above = above > OUTLIVE * cohorts.deepest_fall(spans, 0, history.live)
    return dataclasses.replace(case, since=bend) if is_above else None


def survivors_case(history: History, survivors: Survivors) -> Case:
    """Deaths after the onset are known from scans, and from what the total lost."""
    spans, first = history.spans, history.warmup
    age = cohorts.longest_life(history)
    rises = cohorts.rises_of_survivors(survivors, spans, first, age)
    account = cohorts.account_of(rises)
    after = cohorts.great(cohorts.losses_of(spans, account.onset, history.step)) if account.events else []
    older = max((loss.age for loss in after), default=0)
    if older > age:
        age, rises = older, cohorts.rises_of_survivors(survivors, spans, first, older)
        account = cohorts.account_of(rises)
    early = NOTHING
    if account.is_from_start:
        early = cohorts.account_of(cohorts.rises_of_survivors(survivors, spans, 1, age))
    return Case(history, age, rises, account, early, lost=lost_before(history, account))


def floor_case(history: History, age: float, rises: Rises) -> Case:
    account = cohorts.account_of(rises)
    return Case(history, age, rises, account, is_floor=True, lost=lost_before(history, account))


def lost_before(history: History, account: Account) -> tuple[Loss, ...]:
    """The ramps that were lost before the onset: falls that took at least half of what had come to be, and
    more than what is only in flight, or than what comes in fewer steps than growth is judged from.
    """
    losses = cohorts.losses_of(history.spans, 0, account.onset)
    flight, least = max(history.age, LAG), LEAST_STEPS * account.rise / max(1, account.exposure)
    ramps = [x for x in losses if x.age > flight and x.size >= max(least, HALF * x.height)]
    return tuple(ramps) if set(ramps) & set(cohorts.great(losses)) else ()
