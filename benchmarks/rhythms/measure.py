"""One decider over one loop: what it says at each mark, against the truth."""

import dataclasses
import math

from benchmarks.rhythms.history import Counters, History
from benchmarks.rhythms.loop import LIMIT, WARMUP, Loop
from benchmarks.rhythms.verdict import FOUND, Decider, Verdict

#: The first mark at which anything is asked, and how much later the next is: deciders are asked at a
#: geometric grid of marks.
FIRST_MARK, STRETCH = WARMUP + 3, 1.05
#: An onset is right within so many steps, or this share of the steps since it.
ONSET_STEPS, ONSET_SHARE = 10, 0.1
#: A rate is right within this share.
RATE_SHARE = 0.2


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What came of a loop: told as of its last mark, and on the way there."""

    kind: str
    steps: int
    seed: int
    grows: bool
    due: bool  # a verdict is owed: growth had time and births enough; turnover has shown itself
    told: bool  # a finding as of the last mark; where the loop grows, of a site that does
    answers: tuple[str, ...]  # the last verdict, site by site
    onset_error: int | None  # steps, told less true
    onset_right: bool | None
    rate_ratio: float | None  # told over true
    rate_right: bool | None
    told_at: int | None  # the first mark behind the onset with a finding, perhaps withdrawn later
    until_told: int | None  # steps from the onset to the first mark since which the finding stands
    told_before_onset: bool
    withdrawn: int  # findings that a later mark took back
    findings: int
    false_sites: int  # sites that turn over, told to grow as of the last mark
    scans: int  # taken, over all sites
    statistics: dict[str, float]


def marks_of(steps: int, stretch: float = STRETCH) -> list[int]:
    """The marks at which deciders are asked: each about a twentieth later than the one before, and the
    last.
    """
    marks, mark = [], FIRST_MARK
    while mark < steps:
        marks.append(mark)
        mark = max(mark + 1, math.floor(mark * stretch))
    return [*marks, steps]


def is_finding(verdict: Verdict) -> bool:
    return verdict.kind in FOUND and verdict.bytes_per_step > LIMIT


@dataclasses.dataclass
class Course:
    """What was said on the way, mark by mark."""

    told: list[bool]  # site by site, as of the last mark
    told_at: int | None = None
    stands_since: int | None = None
    before_onset: bool = False
    withdrawn: int = 0

    def add(self, loop: Loop, mark: int, told: list[bool]) -> None:
        self.withdrawn += sum(was and not now for was, now in zip(self.told, told))
        self.told = told
        found = any(now and (site.grows or not loop.grows) for now, site in zip(told, loop.sites))
        if found and loop.grows and mark <= loop.onset:
            self.before_onset = True
        elif found and self.told_at is None:
            self.told_at = mark
        self.stands_since = (self.stands_since or mark) if found else None


def measure(loop: Loop, decider: Decider, marks=None) -> Outcome:
    """The outcome of a loop under a decider that is asked at these marks."""
    histories = [History(Counters(site, loop.steps)) for site in loop.sites]
    decides = [decider.begin() for _ in loop.sites]
    course = Course([False] * len(histories))
    for mark in marks or marks_of(loop.steps):
        for history in histories:
            history.move_to(mark)
        verdicts = [decide(history) for decide, history in zip(decides, histories)]
        course.add(loop, mark, [is_finding(verdict) for verdict in verdicts])
    return concluded(loop, decider, verdicts, course, sum(len(history.scans) for history in histories))


def concluded(loop: Loop, decider: Decider, verdicts, course: Course, scans: int) -> Outcome:
    sites = list(zip(loop.sites, verdicts))
    right = [v for site, v in sites if is_finding(v) and (site.grows or not loop.grows)]
    told = bool(right)
    onset = error = ratio = None
    if told and loop.grows:
        onset = min((v.onset for v in right if v.onset is not None), default=None)
        error = None if onset is None else int(onset - loop.onset)
        ratio = sum(v.bytes_per_step for v in right) / loop.rate()
    since = course.stands_since
    slack = max(ONSET_STEPS, ONSET_SHARE * (loop.steps - loop.onset))
    return Outcome(
        kind=loop.kind,
        steps=loop.steps,
        seed=loop.seed,
        grows=loop.grows,
        due=loop.is_due(),
        told=told,
        answers=tuple(v.kind.value for v in verdicts),
        onset_error=error,
        onset_right=None if error is None else abs(error) <= slack,
        rate_ratio=ratio,
        rate_right=None if ratio is None else abs(ratio - 1) <= RATE_SHARE,
        told_at=course.told_at,
        until_told=max(0, since - loop.onset) if since is not None and loop.grows else None,
        told_before_onset=course.before_onset,
        withdrawn=course.withdrawn,
        findings=findings_of(sites),
        false_sites=sum(is_finding(v) and not site.grows for site, v in sites),
        scans=scans,
        statistics=most_like_growth(sites, loop.grows, decider.statistics),
    )


def findings_of(sites) -> int:
    """Findings of the loop: what one holder keeps is one, however many sites bear it."""
    by_holder: dict[str, int] = {}
    for site, verdict in sites:
        if is_finding(verdict):
            by_holder[site.holder] = max(by_holder.get(site.holder, 0), verdict.findings)
    return sum(by_holder.values())


def most_like_growth(sites, grows: bool, directions: dict[str, int]) -> dict[str, float]:
    """Each statistic of the site that is most like growth by it; where the loop grows, of its growing
    sites.
    """
    found = {}
    for name, direction in directions.items():
        values = [
            v.statistics[name] for site, v in sites if name in v.statistics and (site.grows or not grows)
        ]
        if values:
            found[name] = float(max(values, key=lambda value: direction * value))
    return found
