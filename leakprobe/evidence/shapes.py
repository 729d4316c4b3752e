"""In which shape growth slows down: a rhythm that gets slower, a step down, or less and less all the time."""

import itertools
import math
from collections.abc import Sequence

from leakprobe.model.facts import EVEN_VARIANCE, SQUARES_VARIANCE
from leakprobe.model.thresholds import DEVIATIONS, HALF, LEAST_EVENTS


def is_rhythm(times: Sequence[float], width: int) -> bool:
    """True if times (in spans of ``width``) keep a rhythm, which may get slower: each distance is too like
    the next for chance.

    Of two neighbouring distances that sum up to s spans, chance makes the first any of 1 to s - 1: its share
    of s is even but for whole spans, with EVEN_VARIANCE less 2 / s of it about HALF.  Two of one span each
    tell nothing.
    """
    # two in one span are less than one apart: no chance for that is reckoned, so they count as one
    gaps = [max(1, round((b - a) / width)) for a, b in itertools.pairwise(times)]
    pairs = [(a / (a + b) - HALF, a + b) for a, b in itertools.pairwise(gaps) if is_telling(a, b)]
    if not pairs:
        return False
    squares = [off * off / (EVEN_VARIANCE - EVEN_VARIANCE / (HALF * total)) for off, total in pairs]
    least = 1 - DEVIATIONS * math.sqrt(SQUARES_VARIANCE / len(pairs))
    return sum(squares) / len(pairs) < min(HALF * HALF, least)


def is_telling(a: int, b: int) -> bool:
    """True of two distances whose sum can be made up in ways that are unlike."""
    return min(a, b) > 1 or abs(a - b) > 1


def is_power(shares: Sequence[float], amounts: Sequence[float], exponent: float, effective: float) -> bool:
    """True if amounts that came until these ``shares`` of the time rather go like a power of time than at
    two steady rates, one after the other.

    By the likelihoods of the two, events of even amount counting as so many as tell as much.  The second
    may choose one number more, for which it pays as G. Schwarz has it ("Estimating the dimension of a
    model", 1978).
    """
    if not 0 < exponent < math.inf:
        return False
    total, so_far, best = sum(amounts), 0.0, 0.0
    for i, (share, amount) in enumerate(zip(shares, amounts), 1):
        so_far += amount
        if LEAST_EVENTS <= i <= len(amounts) - LEAST_EVENTS and share < 1:
            part = so_far / total
            step = part * math.log(part / share) + (1 - part) * math.log((1 - part) / (1 - share))
            best = max(best, step)
    power = math.log(exponent) + 1 / exponent - 1
    return effective * (power - best) > -HALF * math.log(max(1, effective))
