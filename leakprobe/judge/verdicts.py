"""One verdict for each thing that could grow: a table of rules, the first that applies."""

import math

from leakprobe.evidence import cohorts, trends
from leakprobe.judge import thresholds as th
from leakprobe.model.history import LAG, History
from leakprobe.model.verdict import Judgement, Rate, Verdict


def times_longer(losses: int, risk: float) -> float:
    """How many times longer than the longest of so many lost ramps the present one must be: the least c with
    1 / C(losses + c, c) <= risk, which is exact where ramps end at random (Renyi 1953: E exp(-c max) = prod i / (i + c))."""
    if losses == 0:
        return 0.0
    low, high = 0.0, 2 / risk
    for _ in range(40):
        c = (low + high) / 2
        if math.lgamma(losses + c + 1) - math.lgamma(losses + 1) - math.lgamma(c + 1) < -math.log(risk):
            low = c
        else:
            high = c
    return max(2.0, high)


def judge(h: History) -> Judgement:
    V = Verdict
    r = replaced(h)
    if r is not None:
        return Judgement(V.REPLACED, "replaced", h.step, r[0], Rate(r[1].value, r[1].low, r[1].high), 0.0)
    age = cohorts.oldest_death(h)
    rises = cohorts.rises_of_survivors(h, age)
    kept = cohorts.account_of(rises)
    if kept is not None:
        after = cohorts.great_losses(h, kept.onset, h.step)
        older = max([x.age for x in after], default=0)
        if older > age:
            age = older
            rises = cohorts.rises_of_survivors(h, age)
            kept = cohorts.account_of(rises)
    v, why = V.TURNOVER, "old"
    if kept is not None and h.step - kept.onset >= th.OUTLIVE * age:
        early = cohorts.account_of(cohorts.rises_of_survivors(h, age, 1)) if kept.is_from_start else None
        v, why = verdict_of(h, kept, early)
        if v is V.LEAK and cohorts.floor_share(h, rises, kept.onset) < 0.5:
            v, why = V.TURNOVER, "level"
    elif kept is None and age <= LAG:
        v, why = (V.TURNOVER if cohorts.died(h) else V.TOO_EARLY), "nothing"
    if v is V.LEAK:
        return Judgement(v, "kept", h.step, round(kept.onset), *rate_kept(h, kept, age))
    if age > LAG:
        floor = cohorts.account_of(cohorts.rises_of_floor(h))
        v2, why2 = verdict_of(h, floor, None, 1.0)
        if v2 is V.LEAK:
            if floor.centroid < th.LEAST_CENTROID:
                v2, why2 = V.FILLING, "floor"
            elif not cohorts.climbs(h, floor.onset):
                v2, why2 = V.TURNOVER, "level"
            elif sum(r[2] for r in h.survivors.rows if r[1] < h.step - LAG) < 0.5 * floor.rise:
                v2, why2 = V.TURNOVER, "young"
            else:
                return Judgement(v2, "floor", h.step, round(floor.onset), *rate_floor(h, floor))
        if why == "old" or v is V.TOO_EARLY:
            v, why = v2, why2
    return Judgement(v, why, h.step, None)


def replaced(h):
    """(onset, slope) where a few blocks give way to larger ones, again and again."""
    points = [(s, b) for s, n, b in h.sizes if s > h.warmup and n]
    if len(points) < th.LEAST_EVENTS or any(n > 2 for _, n, _ in h.sizes):
        return None
    if len({n for s, n, b in h.sizes if s > h.warmup}) > 1:
        return None
    half = len(points) // 2
    mid = (points[0][0] + points[-1][0]) / 2
    all_, late = trends.slope_of(points, th.DEVIATIONS), trends.slope_of([p for p in points if p[0] >= mid], 0)
    if all_.low <= 0:
        return None
    if late is not None and late.value < 0.5 * all_.value:
        return None
    began = points[-1][0] - points[-1][1] / all_.value
    return round(max(h.warmup, min(began, points[0][0]))), all_


def verdict_of(h, a, early, factor=th.GAP_FACTOR):
    V = Verdict
    if a is None:
        return (V.TURNOVER if cohorts.died(h) else V.TOO_EARLY), "nothing"
    if a.exposure < max(th.LEAST_STEPS, 2 * h.spans.width) or a.events < th.LEAST_EVENTS:
        return (V.TURNOVER if cohorts.died(h) else V.TOO_EARLY), "few"
    if a.end_gap >= th.LEAST_END and a.end_gap > factor * a.longest_gap and cohorts.is_unlike(a.end_gap, a.events, a.span, th.STOP_RISK):
        return V.STOPPED, "stopped"
    lost = cohorts.great_losses(h, 0, a.onset)
    if lost and a.exposure < times_longer(len(lost), th.LOSS_RISK) * max(x.age for x in lost):
        return V.TURNOVER, "losses"
    why = slowing(h, a, early)
    if why:
        return V.FILLING, why
    return V.LEAK, "leak"


def slowing(h, a, early):
    if a.centroid < th.LEAST_CENTROID and (is_low(a) or early is not None and is_low(early)):
        return "centroid"
    return None


def is_low(a):
    return (a.centroid - 0.5) * math.sqrt(12 * a.effective) < -th.DEVIATIONS


def rate_kept(h, a, age):
    rows = [r for r in h.survivors.rows if r[0] >= a.onset - 1 and r[1] < h.step - max(age, LAG)]
    count, size = sum(r[2] for r in rows), sum(r[3] for r in rows)
    margin = 1.96 * math.sqrt(sum(r[3] ** 2 for r in rows)) / a.exposure
    value = size / a.exposure
    return Rate(value, max(0.0, value - margin), value + margin), count / a.exposure


def rate_floor(h, a):
    live = [r for r in h.survivors.rows if r[0] >= a.onset]
    n, size = sum(r[2] for r in live), sum(r[3] for r in live)
    share = min(1.0, a.rise / n) if n else 1.0
    value = size * share / a.exposure
    return Rate(value, value, value), a.rise / a.exposure
