"""leakprobe's model of growth (leakprobe/judge/verdicts.py), with a scan whenever a fifth of the run went by
since the last one.
"""

import math

from benchmarks.rhythms import history as simulated
from benchmarks.rhythms.loop import WARMUP
from benchmarks.rhythms.verdict import Answer, Decider, Verdict
from leakprobe.evidence import cohorts
from leakprobe.evidence.readings import folded
from leakprobe.judge import cases, verdicts
from leakprobe.model.history import History, Spans, Survivors
from leakprobe.model.verdict import Judgement
from leakprobe.model.verdict import Verdict as Kind

#: The next scan comes at so many times the steps of the last one, and the newest scans before it are kept.
STRETCH, KEPT_SCANS = 1.2, 3
ANSWERS = {kind: Answer[kind.name] if kind.name in Answer.__members__ else Answer.TURNOVER for kind in Kind}


def spans_of(spans: simulated.Spans) -> Spans:
    """The first span's first mark lies at the end of its first step."""
    return Spans(
        spans.first + 1,
        spans.width,
        tuple(spans.low.tolist()),
        tuple(spans.high.tolist()),
    )


def survivors_of(scan: simulated.Scan) -> Survivors:
    births, counts, sizes = scan.birth.tolist(), scan.count.tolist(), scan.bytes.tolist()
    last = scan.width - 1
    return Survivors(
        scan.mark, folded(scan.mark, [(b, b + last, n, size) for b, n, size in zip(births, counts, sizes)])
    )


class Follower:
    """One site, from mark to mark."""

    def __init__(self):
        self._next = 0
        self._verdict = Verdict(Answer.TOO_EARLY)
        self._scans: list[Survivors] = []
        self._sizes: list[tuple[int, int, float]] = []

    def __call__(self, history: simulated.History) -> Verdict:
        if (history.mark < self._next and not history.is_end) or len(history.spans) == 0:
            return self._verdict
        self._next = max(history.mark + 1, math.floor(history.mark * STRETCH))
        known = self.known(history)
        self._verdict = verdict_of(verdicts.judge(known), statistics_of(known))
        return self._verdict

    def known(self, history: simulated.History) -> History:
        scan = survivors_of(history.scan())
        self._sizes.append((scan.step, history.live, sum(size for *_, size in scan.rows)))
        earlier, self._scans = tuple(self._scans), [*self._scans, scan][-KEPT_SCANS:]
        spans = spans_of(history.spans)
        deaths = int(history.spans.deaths.sum())
        sizes = tuple(self._sizes)
        return History(history.mark, WARMUP, history.live, spans, deaths, scan, earlier, sizes)


def verdict_of(judgement: Judgement, statistics: dict[str, float]) -> Verdict:
    return Verdict(ANSWERS[judgement.verdict], judgement.onset, judgement.rate, statistics=statistics)


def statistics_of(known: History) -> dict[str, float]:
    """What the verdict rests on: of the survivors' account if it has one, else of the floor's."""
    case = next((c for c in cases.cases_of(known) if c.account.events), None)
    if case is None:
        return {}
    account = case.account
    longest = max((loss.ramp for loss in case.lost), default=1)
    return {
        "centroid": account.centroid,
        "events": account.events,
        "exposure over oldest death": account.exposure / max(1.0, case.age),
        "exposure over lost ramp": account.exposure / longest,
        "end gap over longest": account.end_gap / account.longest_gap,
        "floor over survivors": cohorts.floor_share(known, case.rises, account.onset),
    }


MODEL = Decider(
    "model",
    Follower,
    {
        "centroid": 1,
        "events": 1,
        "exposure over oldest death": 1,
        "exposure over lost ramp": 1,
        "end gap over longest": -1,
        "floor over survivors": 1,
    },
)
