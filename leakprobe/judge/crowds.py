"""What is replaced all the time, in ever more places: each wrapper, hook or callback that steps leave keeps
its latest output.

By births and deaths it is demand: each step makes more of it, and none of it gets old.  What tells it apart
from a batch that gets larger is what keeps it, which gets old; so the items are dated by that.
"""

import dataclasses
from collections.abc import Iterable

from leakprobe.evidence import cohorts
from leakprobe.evidence.readings import of_uncounted, survivors_of_series
from leakprobe.judge.cases import floor_case
from leakprobe.judge.entries import Seen, main_member, series_of, stack_of
from leakprobe.judge.holders import with_members
from leakprobe.judge.looks import Ranges, Suspect
from leakprobe.judge.merging import put_together
from leakprobe.judge.verdicts import RULES, is_demand, judge, judgement_of
from leakprobe.model.entry import Entry
from leakprobe.model.frames import FrameTuple, innermost_user_frame
from leakprobe.model.history import Facts
from leakprobe.model.thresholds import HALF, LAG
from leakprobe.model.verdict import Judgement, Rate, Verdict


@dataclasses.dataclass(frozen=True, slots=True)
class Crowd:
    """A line of which nothing gets old, and whose total climbs, ``by`` so much.  What is made behind ever
    more wrappers has a stack for each of them: ``parts``.
    """

    parts: tuple[Suspect, ...]
    by: Judgement

    @property
    def fastest(self) -> Suspect:
        """With the verdict on the total."""
        return dataclasses.replace(self.parts[0], judgement=self.by)


def crowds_among(suspects: Iterable[Suspect], limit: float) -> list[Crowd]:
    """The lines whose total climbs all the time by more than the limit."""
    lines: dict[FrameTuple | int, list[tuple[float, Suspect, Judgement | None]]] = {}
    for suspect in suspects:
        if suspect.judgement.verdict is Verdict.TURNOVER:
            by = climbing(suspect)
            line = innermost_user_frame(stack_of(suspect.site)) or suspect.site
            lines.setdefault(line, []).append((by.rate if by is not None else 0.0, suspect, by))
    found = []
    for parts in lines.values():
        rate, _, by = max(parts, key=first_of)
        if by is not None and rate > limit:
            found.append(Crowd(tuple(s for _, s, _ in sorted(parts, key=first_of, reverse=True)), by))
    return found


def first_of(part: tuple[float, Suspect, Judgement | None]) -> float:
    rate, _, _ = part
    return rate


def climbing(suspect: Suspect) -> Judgement | None:
    """The verdict on the floor of the total, where it says LEAK but for the age of what is alive.  The rate
    is at the mean size of all: what was born since the last mark may be all there is.
    """
    history = suspect.history
    if history.survivors is None or not suspect.live_count:
        return None
    case = floor_case(history, LAG, cohorts.rises_of_floor(history))
    rule = next(rule for rule in RULES if rule.applies is not is_demand and rule.applies(case))
    if rule.verdict is not Verdict.LEAK:
        return None
    found = judgement_of(case, rule)
    value = (found.count_per_step or 0.0) * suspect.live_bytes / suspect.live_count
    return dataclasses.replace(found, bytes_per_step=Rate(value, value, value))


def crowd_of(entries: Iterable[Entry], crowd: Crowd, step: int, warmup: int, merged: Ranges) -> Seen | None:
    """The crowd below its largest holder, if what keeps it was left by steps.  Of the entries the members are
    dated by what keeps them.
    """
    keys = {s.key for s in crowd.parts}
    every = (Seen(entry, step, merged=merged) for entry in entries)
    parts = [with_members(one, [m for m in one.entry.members if m.key in keys]) for one in every]
    if sum(one.entry.bytes for one in parts) < HALF * sum(s.live_bytes for s in crowd.parts):
        return None
    kept = [one for one in parts if one.entry.members]
    whole = put_together(max(kept, key=lambda one: one.entry.bytes), kept)
    survivors = survivors_of_series(step, series_of(whole.entry), merged, warmup)
    by = judge(of_uncounted(step, warmup, survivors, Facts()))
    if by.verdict is not Verdict.LEAK:
        return None
    count = main_member(whole.entry).count
    reason = f"{count:,} alive in what {by.events:,} steps have left, and replaced since; {crowd.by.reason}"
    return dataclasses.replace(whole, judgement=dataclasses.replace(by, reason=reason))
