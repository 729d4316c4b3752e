"""What is replaced all the time, in ever more places: each wrapper, hook or callback that steps leave keeps
its latest output.

By births and deaths it is demand: each step makes more of it, and none of it gets old.  What tells it apart
from a batch that gets larger is what keeps it, which gets old; so the items are dated by that.
"""

import dataclasses
from collections.abc import Sequence

from leakprobe.evidence import cohorts
from leakprobe.evidence.readings import of_part, survivors_of_series
from leakprobe.judge.cases import floor_case
from leakprobe.judge.entries import Seen, main_member, series_of, stack_of
from leakprobe.judge.looks import Ranges, Suspect
from leakprobe.judge.merging import put_together
from leakprobe.judge.verdicts import RULES, is_demand, judge, judgement_of
from leakprobe.model.entry import Entry
from leakprobe.model.frames import innermost_user_frame
from leakprobe.model.history import Facts, History
from leakprobe.model.thresholds import HALF, LAG
from leakprobe.model.verdict import Judgement, Verdict


@dataclasses.dataclass(frozen=True, slots=True)
class Crowd:
    """A line whose total climbs, with that verdict, and the other stacks that lead to it."""

    suspect: Suspect
    others: tuple[Suspect, ...]

    @property
    def parts(self) -> list[Suspect]:
        return [self.suspect, *self.others]


def crowds_among(suspects: Sequence[Suspect], limit: float) -> list[Crowd]:
    """Lines of which nothing gets old, and whose total climbs all the time by more than the limit.  What is
    made behind ever more wrappers has a stack for each of them: it is of one line still.
    """
    turning = [s for s in suspects if s.judgement.verdict is Verdict.TURNOVER]
    found = []
    for suspect in turning:
        by = climbing(suspect.history)
        if by is not None and by.rate > limit:
            line = innermost_user_frame(stack_of(suspect.site))
            others = (s for s in turning if s is not suspect and line is not None)
            same = [s for s in others if innermost_user_frame(stack_of(s.site)) == line]
            found.append(Crowd(dataclasses.replace(suspect, judgement=by), tuple(same)))
    return found


def climbing(history: History) -> Judgement | None:
    """The verdict on the floor of the total, where it says LEAK but for the age of what is alive."""
    if history.survivors is None:
        return None
    case = floor_case(history, LAG, cohorts.rises_of_floor(history))
    rule = next(rule for rule in RULES if rule.applies is not is_demand and rule.applies(case))
    return judgement_of(case, rule) if rule.verdict is Verdict.LEAK else None


def crowd_of(entries: Sequence[Entry], crowd: Crowd, step: int, warmup: int, merged: Ranges) -> Seen | None:
    """The crowd below its largest holder, if what keeps it was left by steps.  Of the entries the members are
    dated by what keeps them.
    """
    if sum(entry.bytes for entry in entries) < HALF * sum(s.live_bytes for s in crowd.parts):
        return None
    parts = [Seen(entry, step, merged=merged) for entry in entries]
    whole = put_together(max(parts, key=lambda seen: seen.entry.bytes), parts)
    survivors = survivors_of_series(step, series_of(whole.entry), merged)
    by = judge(of_part(None, step, warmup, survivors, Facts()))
    if by.verdict is not Verdict.LEAK:
        return None
    count, by_total = main_member(whole.entry).count, crowd.suspect.judgement.reason
    reason = f"{count:,} alive in what {by.events:,} steps have left, and replaced since; {by_total}"
    return dataclasses.replace(whole, judgement=dataclasses.replace(by, reason=reason))
