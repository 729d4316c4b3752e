"""One verdict for each thing that could grow: a table of rules, the first that applies."""

import math

from leakprobe.evidence import cohorts
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


def judge(history: History) -> Judgement:
    age = cohorts.oldest_death(history)
    V = Verdict
    rises = cohorts.rises_of_survivors(history, age)
    kept = cohorts.account_of(history, rises)
    v, why = verdict_of(history, kept)
    if v is V.LEAK and cohorts.floor_share(history, rises, kept.onset) < 0.5:
        v, why = V.TURNOVER, "level"
    if v is V.LEAK:
        return Judgement(v, "kept", history.step, round(kept.onset), *rate_kept(history, kept, age))
    floor = cohorts.account_of(history, cohorts.rises_of_floor(history))
    if age > LAG:
        v2, why2 = verdict_of(history, floor)
        if v2 is V.LEAK:
            if cohorts.lift(history, floor.onset) <= 0:
                v2, why2 = V.TURNOVER, "lift"
            elif kept_old(history, floor) < 0.5 * floor.rise:
                v2, why2 = V.TURNOVER, "young"
            else:
                return Judgement(v2, "floor", history.step, round(floor.onset), *rate_floor(history, floor))
        if kept is None or v is V.TOO_EARLY:
            v, why = v2, why2
    return Judgement(v, why, history.step, None)


def kept_old(h, a):
    return sum(r[2] for r in h.survivors.rows if r[1] < h.step - LAG)


def verdict_of(h, a):
    V = Verdict
    if a is None:
        return (V.TURNOVER if cohorts.died(h) else V.TOO_EARLY), "nothing"
    if a.exposure < max(th.LEAST_STEPS, 2 * h.spans.width) or a.events < th.LEAST_EVENTS:
        return (V.TURNOVER if cohorts.died(h) else V.TOO_EARLY), "few"
    if a.is_stopped:
        return V.STOPPED, "stopped"
    if a.losses and a.exposure < times_longer(a.losses, th.LOSS_RISK) * a.longest_loss:
        return V.TURNOVER, "losses"
    n = a.effective
    if a.centroid < th.LEAST_CENTROID and (a.centroid - 0.5) * math.sqrt(12 * n) < -th.DEVIATIONS:
        return V.FILLING, "centroid"
    if a.exponent < min(th.LEAST_EXPONENT, math.exp(-th.DEVIATIONS / math.sqrt(n))):
        return V.FILLING, "exponent"
    return V.LEAK, "leak"


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
